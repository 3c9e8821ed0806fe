package wire

import (
	"google.golang.org/grpc/mem"
)

// Header is one header, or one string of the state. Both slices alias the
// message: see Request.
type Header struct {
	Name  []byte
	Value []byte // raw_value, or value when raw_value is empty
}

// Request is one ProcessingRequest. The zero value is ready; pass the same one
// to Recv again and again. Not safe for concurrent use.
//
// Headers and State alias the message: they hold until the next Recv or
// Release. Copy what must outlive it.
type Request struct {
	Kind        Kind
	Headers     []Header // of a headers or trailers message, in Envoy's order
	EndOfStream bool     // false for trailers
	Body        *Buffer  // of a body message, never nil there; owned by the Request until TakeBody
	State       []Header // the strings in filter_metadata["crossdoor"], in no order

	msg *Buffer // the whole message
}

// Header is the first value of the header with that exact name. Envoy's names
// are lower case. The bytes alias the message.
func (r *Request) Header(name string) ([]byte, bool) {
	for i := range r.Headers {
		if string(r.Headers[i].Name) == name {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}

// Meta is the string with that name in the state, a copy; "" when absent.
func (r *Request) Meta(name string) string { return metaOf(r.State, name) }

// TakeBody moves the body and its reference to the caller, who frees it. Nil
// when the message has none or it was taken before. State stays valid.
func (r *Request) TakeBody() *Buffer {
	b := r.Body
	r.Body = nil
	return b
}

// Release lets go of the message and of a body that was not taken, and empties
// the Request. It can be called at any time and more than once.
func (r *Request) Release() {
	r.Body.Free()
	r.msg.Free()
	// Old pointers behind the length would keep a large array from the collector.
	clear(r.Headers)
	clear(r.State)
	*r = Request{Headers: r.Headers[:0], State: r.State[:0]}
}

// unmarshal reads a message that gRPC frees after the call: the one copy of its
// bytes is made here. After an error the Request is empty.
func (r *Request) unmarshal(data mem.BufferSlice) error {
	r.Release()
	msg := NewBuffer(data.Len())
	data.CopyTo(msg.data)
	r.msg = msg
	body, err := r.parse(msg.data)
	if err != nil {
		r.Release()
		return err
	}
	if r.Kind.isBody() {
		msg.window(body)
		msg.Ref()
		r.Body = msg
	}
	return nil
}
