package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// The access-log service, as in als.proto.
const (
	logsService = "envoy.service.accesslog.v3.AccessLogService"
	logsMethod  = "StreamAccessLogs"
)

// logsDesc is the stream's kind: many messages, one answer at the end.
var logsDesc = grpc.StreamDesc{StreamName: logsMethod, ClientStreams: true}

// LogHandler serves one stream of access-log entries, in a goroutine of its own.
// The stream ends when it returns.
type LogHandler func(LogStream) error

// LogStream is one stream of access-log entries. Not for concurrent use.
type LogStream struct {
	grpc grpc.ServerStream
}

// NewLogStream wraps a server stream of the StreamAccessLogs method.
func NewLogStream(s grpc.ServerStream) LogStream { return LogStream{grpc: s} }

// Recv waits for the next message and reads it into m. It releases what m held
// before it waits. io.EOF is a peer that closed its side and waits for Close; a
// message that is no StreamAccessLogsMessage is an error with code Internal.
func (s LogStream) Recv(m *LogMessage) error {
	m.Release()
	return s.grpc.RecvMsg(m)
}

// Close answers a peer that closed its side: all it sent was read.
func (s LogStream) Close() error { return s.grpc.SendMsg(&logsAnswer{}) }

// RegisterLogs adds the access-log service to a server, which must be made with
// grpc.ForceServerCodecV2(Codec{}).
func RegisterLogs(s grpc.ServiceRegistrar, h LogHandler) {
	desc := logsDesc
	desc.Handler = func(_ any, s grpc.ServerStream) error { return h(NewLogStream(s)) }
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: logsService,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{desc},
		Metadata:    "envoy/service/accesslog/v3/als.proto",
	}, h)
}

// EncodedLogs is an encoded StreamAccessLogsMessage. Whoever holds it may read
// it; nobody writes to it.
type EncodedLogs []byte

// EncodeLog is the message of the named log with the one entry, which is
// LogEntry.Raw and copied. The log's name must be UTF-8, as LogMessage.Log is.
func EncodeLog(log string, entry []byte) EncodedLogs {
	identifier := fieldSizeUnless0(len(log))
	logs := fieldSize(len(entry))
	b := make([]byte, 0, fieldSize(identifier)+fieldSize(logs))
	b = appendLength(b, 1, identifier)
	if log != "" {
		b = appendString(b, 2, log)
	}
	b = appendLength(b, 2, logs)
	b = appendLength(b, 1, len(entry))
	return append(b, entry...)
}

// SendLogs hands one message to the access-log service at the other end of conn,
// on a stream of its own. Without an error the service has read it. The call
// ends with ctx.
func SendLogs(ctx context.Context, conn *grpc.ClientConn, m EncodedLogs) error {
	ctx, cancel := context.WithCancel(ctx) // frees the stream on every way out
	defer cancel()
	s, err := conn.NewStream(ctx, &logsDesc, "/"+logsService+"/"+logsMethod, grpc.ForceCodecV2(Codec{}))
	if err != nil {
		return err
	}
	// EOF: the stream is over already, and RecvMsg says why.
	if err := s.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	return s.RecvMsg(&logsAnswer{})
}

// logsAnswer is StreamAccessLogsResponse, which has no fields.
type logsAnswer struct{}

// unmarshal reads an answer: fields of a later version are let go.
func (*logsAnswer) unmarshal(data mem.BufferSlice) error {
	return check(data.Materialize(), &flatShape, maxDepth)
}
