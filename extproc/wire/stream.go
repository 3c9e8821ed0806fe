package wire

import (
	"context"

	"google.golang.org/grpc"
)

// serviceName and methodName as in external_processor.proto.
const (
	serviceName = "envoy.service.ext_proc.v3.ExternalProcessor"
	methodName  = "Process"
)

// Handler serves one stream, in a goroutine of its own. The stream ends when it
// returns: nil is OK, which tells Envoy to carry on alone.
type Handler func(Stream) error

// Stream is one ext_proc stream. One goroutine may Recv while another one
// Sends; neither may be called from two at once.
type Stream struct {
	grpc grpc.ServerStream
}

// NewStream wraps a server stream of the Process method.
func NewStream(s grpc.ServerStream) Stream { return Stream{grpc: s} }

// Context is the stream's: it carries the initial metadata and is cancelled
// when the stream ends, for whatever reason.
func (s Stream) Context() context.Context { return s.grpc.Context() }

// Recv waits for the next message and reads it into r. It releases what r held
// before it waits. io.EOF is the end by Envoy; Canceled is as normal an end. A
// message that is no ProcessingRequest is an error with code Internal.
func (s Stream) Recv(r *Request) error {
	r.Release()
	return s.grpc.RecvMsg(r)
}

// Send encodes m and queues it. It takes over the reference to m.Body, also
// when it fails, and leaves m.Body nil; everything else in m stays. The bytes
// of the body must not change after it.
func (s Stream) Send(m *Response) error {
	err := s.grpc.SendMsg(m)
	m.Body.Free()
	m.Body = nil
	return err
}

// Register adds the ext_proc service to a server, which must be made with
// grpc.ForceServerCodecV2(Codec{}).
func Register(s grpc.ServiceRegistrar, h Handler) {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    methodName,
			Handler:       func(_ any, s grpc.ServerStream) error { return h(NewStream(s)) },
			ServerStreams: true,
			ClientStreams: true,
		}},
		Metadata: "envoy/service/ext_proc/v3/external_processor.proto",
	}, h)
}
