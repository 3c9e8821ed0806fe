package wire

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// stock is gRPC's codec for the generated types: importing its package
// registered it.
var stock = encoding.GetCodecV2(proto.Name)

// Codec encodes *Response and EncodedLogs and decodes *Request and *LogMessage
// by hand and leaves every other message (health) to gRPC's own codec. Give it
// to the server with grpc.ForceServerCodecV2. Safe for concurrent use.
type Codec struct{}

// Name is that of the protobuf codec: on the wire there is no difference.
func (Codec) Name() string { return proto.Name }

// Marshal encodes v. A Response's body goes by reference: gRPC gets a reference
// of its own; the one in the Response stays with the caller (Stream.Send drops
// it). After an error nothing is held.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *Response:
		return m.marshal()
	case EncodedLogs:
		return mem.BufferSlice{mem.SliceBuffer(m)}, nil
	case *logsAnswer:
		return nil, nil
	case *Request, *LogMessage:
		return nil, fmt.Errorf("wire: a %T is only read, never sent", v)
	}
	return stock.Marshal(v)
}

// Unmarshal decodes data into v. What a Request or LogMessage held before is released first,
// also when data turns out to be invalid; it is empty then.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *Request:
		return m.unmarshal(data)
	case *LogMessage:
		return m.unmarshal(data)
	case *logsAnswer:
		return m.unmarshal(data)
	case *Response, EncodedLogs:
		return fmt.Errorf("wire: a %T is only sent, never read", v)
	}
	return stock.Unmarshal(data, v)
}
