package fakeplatform

import (
	"strings"
	"time"
)

// Request is one request as it came. The record is a copy: the caller owns it.
type Request struct {
	N      int // 1 for the first at this server
	Conn   int // the connection, 1 for the first
	Proto  string
	Method string
	Target string // request target with the query
	Header []Field
	// BodySize and BodySHA256 (hex) are of the whole body; Body is its beginning,
	// up to Server.KeepBody bytes.
	BodySize   int64
	BodySHA256 string
	Body       []byte
	Chunked    bool
	Model      string // of the path where the platform has it there, else of the body; "" when it has none
	Stream     bool   // by path or body, in the same way
	// Tokens is what a good answer to count_tokens says of the body.
	Tokens int

	Headed   time.Time // when the headers were there
	Received time.Time // when the body was there
	Answered time.Time // when the answer's headers were written; zero if never
	Ended    time.Time // when the answer ended; zero while it runs
	Gone     time.Time // when the caller was seen to leave during the answer; zero if not
	Sent     int64     // body bytes written
	Refusal  string    // why the platform refused it; "" if it did not
	Answer   string    // name of the answer

	call    call
	doc     *document // until the request is judged
	notJSON string
}

// Get returns the first value of a header, or "".
func (r Request) Get(name string) string {
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Count is how many header lines have the name.
func (r Request) Count(name string) int {
	n := 0
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			n++
		}
	}
	return n
}

// Path is the request target without its query.
func (r Request) Path() string {
	p, _, _ := strings.Cut(r.Target, "?")
	return p
}
