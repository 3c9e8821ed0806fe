package eventstream

import (
	"encoding/binary"
	"hash/crc32"
)

// Kind is what a frame is, by its :message-type.
type Kind uint8

// The kinds. KindOther is a frame without a known :message-type.
const (
	KindOther Kind = iota
	KindEvent
	KindException // a modelled error; EventType "" and ExceptionType set
	KindError     // an error that the service's model does not know
)

var kinds = [...]string{KindEvent: "event", KindException: "exception", KindError: "error"}

// String is the kind as :message-type spells it.
func (k Kind) String() string {
	if k == KindOther || int(k) >= len(kinds) {
		return "other"
	}
	return kinds[k]
}

// Frame is one frame. Fields are the values of the headers of these names, empty
// when the frame has none or one that is no string; other headers are passed
// over. Of a header that comes twice the last counts, as in AWS's SDKs.
type Frame struct {
	Kind          Kind
	EventType     []byte // :event-type
	ExceptionType []byte // :exception-type, lower camel case
	ErrorCode     []byte // :error-code
	ErrorMessage  []byte // :error-message
	ContentType   []byte // :content-type
	Payload       []byte
}

// typeString is the one type of header values that matters.
const typeString = 7

// valueLen is the length in bytes of a value by its type: true, false, byte,
// short, integer, long, bytes, string, timestamp, UUID. lengthFirst: two bytes
// before it say.
var valueLen = [...]int{0, 0, 1, 2, 4, 8, lengthFirst, lengthFirst, 8, 16}

const lengthFirst = -1

// read makes f the frame that message is, all of it and nothing after it; its
// prelude has been checked.
func (f *Frame) read(message []byte) error {
	body, sum := message[:len(message)-checksumLen], message[len(message)-checksumLen:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return ErrCorruptMessage
	}
	end := preludeLen + int(binary.BigEndian.Uint32(message[4:]))
	f.Payload = body[end:]
	for headers := body[preludeLen:end]; len(headers) > 0; {
		var ok bool
		if headers, ok = f.header(headers); !ok {
			return ErrBadHeader
		}
	}
	return nil
}

// header takes the first header and returns the rest.
func (f *Frame) header(b []byte) (rest []byte, ok bool) {
	n := int(b[0])
	if n == 0 || len(b) < 1+n+1 {
		return nil, false
	}
	name, kind, b := b[1:1+n], b[1+n], b[1+n+1:]
	if int(kind) >= len(valueLen) {
		return nil, false
	}
	n = valueLen[kind]
	if n == lengthFirst {
		if len(b) < 2 {
			return nil, false
		}
		n, b = int(binary.BigEndian.Uint16(b)), b[2:]
	}
	if len(b) < n {
		return nil, false
	}
	if kind == typeString {
		f.set(name, b[:n])
	}
	return b[n:], true
}

// set takes a header that is a string.
func (f *Frame) set(name, value []byte) {
	switch string(name) {
	case ":message-type":
		f.Kind = kindOf(value)
	case ":event-type":
		f.EventType = value
	case ":exception-type":
		f.ExceptionType = value
	case ":error-code":
		f.ErrorCode = value
	case ":error-message":
		f.ErrorMessage = value
	case ":content-type":
		f.ContentType = value
	}
}

func kindOf(value []byte) Kind {
	for k := KindEvent; int(k) < len(kinds); k++ {
		if string(value) == kinds[k] {
			return k
		}
	}
	return KindOther
}
