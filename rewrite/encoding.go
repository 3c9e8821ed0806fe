package rewrite

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// expansion is the most that deflate can make of one byte (RFC 1951: 258 bytes
// from a match coded in two bits); it bounds what a length that the client
// states can make us allocate.
const expansion = 1032

// unpacker is a gzip reader with the source it reads, which is emptied after
// use: a pooled reader must not keep a request's body alive.
type unpacker struct {
	gzip   gzip.Reader
	source bytes.Reader
}

var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// Decode takes a request's content coding off. encoding is the header's value:
// empty or "identity" returns body itself; "gzip" (and its old name "x-gzip",
// RFC 9110 section 8.4.1.3) returns a new slice, the caller's own. limit is in
// bytes of the result. The error is a *RequestError: 413 above the limit, 400
// for bytes that are no gzip, 415 for any other coding.
func Decode(encoding string, body []byte, limit int64) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		if int64(len(body)) > limit {
			return nil, TooLarge(limit)
		}
		return body, nil
	case "gzip", "x-gzip":
		return gunzip(body, limit)
	}
	return nil, &RequestError{
		Status:  415,
		Type:    TypeInvalidRequest,
		Message: "content-encoding: this coding is not supported: send the body as it is, or with gzip.",
	}
}

// Readable is what can be read of an answer's body, which may be cut: body itself
// without a coding, up to limit bytes of it without gzip, nothing of any other
// coding.
func Readable(encoding string, body []byte, limit int64) []byte {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil
		}
		out, _ := io.ReadAll(io.LimitReader(r, limit)) // what is there before a cut is good
		return out
	}
	return nil
}

func gunzip(body []byte, limit int64) ([]byte, error) {
	u := unpackers.Get().(*unpacker)
	defer func() {
		u.source.Reset(nil)
		unpackers.Put(u)
	}()
	u.source.Reset(body)
	if err := u.gzip.Reset(&u.source); err != nil {
		return nil, corrupt()
	}
	out := bytes.NewBuffer(make([]byte, 0, expected(body, limit)))
	n, err := io.Copy(out, io.LimitReader(&u.gzip, limit+1))
	switch {
	case n > limit:
		return nil, TooLarge(limit)
	case err != nil:
		return nil, corrupt()
	}
	return out.Bytes(), nil
}

// expected is the length that the trailer states, as far as it can be true, and
// the room that the buffer wants to see the end without growing.
func expected(body []byte, limit int64) int64 {
	if len(body) < 18 { // header and trailer alone
		return 0
	}
	stated := int64(binary.LittleEndian.Uint32(body[len(body)-4:]))
	return min(stated, limit, int64(len(body))*expansion) + bytes.MinRead
}

func corrupt() error {
	return invalid("content-encoding: the body is not valid gzip: check that it is whole and encoded once.")
}

// TooLarge is the refusal of a body above limit bytes.
func TooLarge(limit int64) *RequestError {
	return &RequestError{
		Status:  413,
		Type:    TypeTooLarge,
		Message: fmt.Sprintf("Request exceeds the maximum size of %d bytes.", limit),
	}
}

// AsRequestError returns err as the refusal it is, or nil.
func AsRequestError(err error) *RequestError {
	if refusal, ok := errors.AsType[*RequestError](err); ok {
		return refusal
	}
	return nil
}
