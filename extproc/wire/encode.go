package wire

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crossdoor/crossdoor/envoy/names"
)

const (
	// inPlace is the size from which a body is sent by reference: below, a copy
	// costs less than another buffer in gRPC's hands.
	inPlace = 4 << 10
	// headSpace is what fits into a head without a second allocation; with it a
	// head fills the allocator's 512 byte class.
	headSpace = 448
)

// head is the encoded message up to a body in place. It is left to the
// collector: it is small, and gRPC does not free what a dead connection had
// still to write. gRPC's list of buffers lives in it too.
type head struct {
	slice mem.SliceBuffer
	parts [2]mem.Buffer
	space [headSpace]byte
}

// sizes of the nested messages, each without its own tag and length.
type sizes struct {
	mutation int // HeaderMutation
	body     int // BodyMutation, with the body
	common   int // CommonResponse, HeaderMutation of trailers, ImmediateResponse
	meta     int // Struct of the namespace
	inline   int // bytes of the body that are copied into the head
	total    int
}

// marshal encodes the message. The body goes last, so that it can follow as a
// buffer of its own; protobuf lets fields come in any order.
func (m *Response) marshal() (mem.BufferSlice, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	z := m.measure()
	placed := m.Body.Len() - z.inline
	h := &head{}
	b := h.space[:0]
	if n := z.total - placed; n > headSpace {
		b = make([]byte, 0, n)
	}
	h.slice = m.append(b, &z)
	h.parts[0] = &h.slice
	if placed == 0 {
		return h.parts[:1:1], nil
	}
	h.parts[1] = share(m.Body)
	return h.parts[:], nil
}

func (m *Response) measure() (z sizes) {
	if n := m.Body.Len(); n <= inPlace {
		z.inline = n
	}
	if len(m.Meta) > 0 {
		z.meta = metaSize(m.Meta)
		z.total += fieldSize(nested3(z.meta))
	}
	if m.AskBody {
		z.total += len(askBody)
	}
	switch {
	case m.Kind == KindImmediate:
		z.mutation = mutationSize(m.Immediate.Headers, nil)
		z.common = immediateSize(m.Immediate, z.mutation)
		z.total += fieldSize(z.common)
	case m.Kind.isTrailers():
		z.common = mutationSize(m.Set, m.Remove)
		z.total += fieldSize(fieldSizeUnless0(z.common))
	default:
		z.mutation = mutationSize(m.Set, m.Remove)
		z.body = m.bodySize()
		z.common = m.commonSize(&z)
		z.total += fieldSize(fieldSizeUnless0(z.common))
	}
	return z
}

// append writes ProcessingResponse, without the bytes of a body in place.
func (m *Response) append(b []byte, z *sizes) []byte {
	if len(m.Meta) > 0 {
		b = appendMeta(b, m.Meta, z.meta)
	}
	if m.AskBody {
		b = append(b, askBody...)
	}
	num := m.Kind.answerField()
	if m.Kind == KindImmediate {
		b = appendLength(b, num, z.common)
		return appendImmediate(b, m.Immediate, z.mutation)
	}
	// HeadersResponse, BodyResponse and TrailersResponse have one member, field 1.
	b = appendLength(b, num, fieldSizeUnless0(z.common))
	if z.common == 0 {
		return b
	}
	b = appendLength(b, 1, z.common)
	if m.Kind.isTrailers() {
		return appendMutation(b, m.Set, m.Remove)
	}
	return m.appendCommon(b, z)
}

// bodySize is the size of BodyMutation, with the body's bytes.
func (m *Response) bodySize() int {
	switch {
	case m.ClearBody:
		return 2
	case m.mutatesBody():
		return fieldSize(m.Body.Len())
	}
	return 0
}

func (m *Response) commonSize(z *sizes) int {
	n := fieldSizeUnless0(z.mutation) + fieldSizeUnless0(z.body)
	if m.Replace {
		n += 2
	}
	if m.ClearRouteCache {
		n += 2
	}
	return n
}

// appendCommon writes CommonResponse, the body mutation last.
func (m *Response) appendCommon(b []byte, z *sizes) []byte {
	if m.Replace {
		b = appendNumber(b, 1, 1) // status: CONTINUE_AND_REPLACE
	}
	if z.mutation > 0 {
		b = appendLength(b, 2, z.mutation)
		b = appendMutation(b, m.Set, m.Remove)
	}
	if m.ClearRouteCache {
		b = appendNumber(b, 5, 1)
	}
	switch {
	case z.body == 0:
	case m.ClearBody:
		b = appendLength(b, 3, z.body)
		b = appendNumber(b, 2, 1)
	default:
		b = appendLength(b, 3, z.body)
		b = appendLength(b, 1, m.Body.Len())
		if z.inline > 0 {
			b = append(b, m.Body.Bytes()...)
		}
	}
	return b
}

// askBody is mode_override (field 9): request_header_mode SEND,
// response_header_mode SKIP, request_body_mode BUFFERED; the rest is NONE.
const askBody = "\x4a\x06\x08\x01\x10\x02\x18\x02"

// fieldSize is the size of a length-delimited field with a number below 16.
func fieldSize(n int) int { return 1 + protowire.SizeBytes(n) }

func fieldSizeUnless0(n int) int {
	if n == 0 {
		return 0
	}
	return fieldSize(n)
}

// appendLength writes tag and length of a length-delimited field.
func appendLength(b []byte, num protowire.Number, n int) []byte {
	b = append(b, byte(num)<<3|byte(protowire.BytesType))
	return protowire.AppendVarint(b, uint64(n))
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	return append(appendLength(b, num, len(s)), s...)
}

func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	b = append(b, byte(num)<<3|byte(protowire.VarintType))
	return protowire.AppendVarint(b, v)
}

// metaSize is the size of the Struct with the strings.
func metaSize(meta []HeaderField) int {
	n := 0
	for i := range meta {
		n += fieldSize(metaEntrySize(&meta[i]))
	}
	return n
}

// metaEntrySize: key, and a Value with string_value.
func metaEntrySize(f *HeaderField) int {
	return fieldSize(len(f.Name)) + fieldSize(fieldSize(len(f.Value)))
}

// nested3 is the size of the outer Struct: one entry, whose Value holds the
// inner Struct of n bytes.
func nested3(n int) int {
	return fieldSize(fieldSize(len(names.Namespace)) + fieldSize(fieldSize(n)))
}

// appendMeta writes dynamic_metadata (field 8): {"crossdoor": {name: value}}.
func appendMeta(b []byte, meta []HeaderField, size int) []byte {
	b = appendLength(b, 8, nested3(size))
	b = appendLength(b, 1, fieldSize(len(names.Namespace))+fieldSize(fieldSize(size)))
	b = appendString(b, 1, names.Namespace)
	b = appendLength(b, 2, fieldSize(size))
	b = appendLength(b, 5, size) // struct_value
	for i := range meta {
		f := &meta[i]
		b = appendLength(b, 1, metaEntrySize(f))
		b = appendString(b, 1, f.Name)
		b = appendLength(b, 2, fieldSize(len(f.Value)))
		b = appendString(b, 3, f.Value) // string_value
	}
	return b
}
