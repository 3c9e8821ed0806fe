package wire

import (
	"errors"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// What a message can be refused for. The texts carry no content.
var (
	errWire  = errors.New("wire: the message is not valid protobuf (truncated, or a wrong tag or length)")
	errText  = errors.New("wire: a string field of the message is not valid UTF-8")
	errDepth = errors.New("wire: the message nests deeper than 10000 levels")
)

// cursor walks the fields of one message. After next: num and typ name the
// field; val is its contents when typ is BytesType, u its value when VarintType
// or Fixed64Type. Other fixed and group fields are stepped over. How a tag is read, and what is an
// error, is that of protobuf-go's internal/impl/decode.go.
type cursor struct {
	b   []byte
	num protowire.Number
	typ protowire.Type
	val []byte
	u   uint64
	err error
}

// next moves to the next field; false at the end or after an error.
func (c *cursor) next() bool {
	if len(c.b) == 0 || c.err != nil {
		return false
	}
	num, typ, n := protowire.ConsumeTag(c.b)
	if n < 0 || num > protowire.MaxValidNumber {
		return c.fail(errWire)
	}
	c.num, c.typ, c.b = num, typ, c.b[n:]
	switch typ {
	case protowire.BytesType:
		c.val, n = protowire.ConsumeBytes(c.b)
	case protowire.VarintType:
		c.u, n = protowire.ConsumeVarint(c.b)
	case protowire.Fixed64Type:
		c.u, n = protowire.ConsumeFixed64(c.b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, c.b)
	}
	if n < 0 {
		return c.fail(errWire)
	}
	c.b = c.b[n:]
	return true
}

// fail ends the walk with err; it returns false for use in conditions.
func (c *cursor) fail(err error) bool {
	c.err = err
	return false
}

// bytes says whether the field is num with a length-delimited value. A known
// number with another wire type is an unknown field: valid, and stepped over.
func (c *cursor) bytes(num protowire.Number) bool {
	return c.num == num && c.typ == protowire.BytesType
}

func (c *cursor) varint(num protowire.Number) bool {
	return c.num == num && c.typ == protowire.VarintType
}

// text is val, checked as proto3 strings are.
func (c *cursor) text() []byte {
	if !utf8.Valid(c.val) {
		c.fail(errText)
	}
	return c.val
}
