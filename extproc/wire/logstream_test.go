package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// serveLogs starts a server with the handler and connects a client to it. The
// returned stop ends both and waits for the handlers.
func serveLogs(t testing.TB, h LogHandler) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	s := grpc.NewServer(grpc.ForceServerCodecV2(Codec{}), experimental.BufferPool(BufferPool()), grpc.WaitForHandlers(true))
	RegisterLogs(s, h)
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	return conn, func() {
		_ = conn.Close()
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// seenLogs notes the logs and ids of what comes, and closes well.
func seenLogs(into *[]string) LogHandler {
	return func(s LogStream) error {
		var m LogMessage
		defer m.Release()
		for {
			if err := s.Recv(&m); err != nil {
				if errors.Is(err, io.EOF) {
					return s.Close()
				}
				return err
			}
			for i := range m.Entries {
				*into = append(*into, m.Log+" "+m.Entries[i].Meta("attempt"))
			}
		}
	}
}

// TestLogStream: a generated client and ours both reach the service.
func TestLogStream(t *testing.T) {
	var seen []string
	conn, stop := serveLogs(t, seenLogs(&seen))
	stream, err := accesslogv3.NewAccessLogServiceClient(conn).StreamAccessLogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 0, 2} {
		if err := stream.Send(sampleLogs(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Fatalf("the stream closed with %v", err)
	}
	entry := encoded(sampleLog())
	if err := SendLogs(t.Context(), conn, EncodeLog("attempt", entry)); err != nil {
		t.Fatalf("handed on: %v", err)
	}
	want := []string{"exchange 1", "exchange 1", "exchange 1", "attempt 1"}
	if len(seen) != len(want) {
		t.Fatalf("seen %q, want %q", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("entry %d is %q, want %q", i, seen[i], want[i])
		}
	}
	stop()
	wantLive(t, 0)
}

// TestSendLogsToGenerated: our client and a service of the generated types.
func TestSendLogsToGenerated(t *testing.T) {
	lis := bufconn.Listen(1 << 20)
	s := grpc.NewServer()
	g := &generatedLogs{}
	accesslogv3.RegisterAccessLogServiceServer(s, g)
	go func() { _ = s.Serve(lis) }()
	defer s.Stop()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := SendLogs(t.Context(), conn, EncodeLog("exchange", encoded(sampleLog()))); err != nil {
		t.Fatal(err)
	}
	if got := g.last.GetIdentifier().GetLogName(); got != "exchange" || len(g.last.GetHttpLogs().GetLogEntry()) != 1 {
		t.Errorf("log %q, %d entries", got, len(g.last.GetHttpLogs().GetLogEntry()))
	}
}

// generatedLogs keeps the last message.
type generatedLogs struct {
	accesslogv3.UnimplementedAccessLogServiceServer

	last *accesslogv3.StreamAccessLogsMessage
}

func (g *generatedLogs) StreamAccessLogs(s accesslogv3.AccessLogService_StreamAccessLogsServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return s.SendAndClose(&accesslogv3.StreamAccessLogsResponse{})
		}
		g.last = m
	}
}

// TestSendLogsRefused: what the service does not take is an error.
func TestSendLogsRefused(t *testing.T) {
	cases := map[string]struct {
		handler LogHandler
		message EncodedLogs
		want    codes.Code
	}{
		"not read":  {func(LogStream) error { return status.Error(codes.Unavailable, "draining") }, EncodeLog("exchange", nil), codes.Unavailable},
		"invalid":   {seenLogs(new([]string)), EncodedLogs{0x0a, 0x05}, codes.Internal},
		"no answer": {func(LogStream) error { return nil }, EncodeLog("exchange", nil), codes.Internal},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conn, stop := serveLogs(t, c.handler)
			if err := SendLogs(t.Context(), conn, c.message); status.Code(err) != c.want {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
			stop()
			wantLive(t, 0)
		})
	}
}

// TestLogsReleasesBeforeWaiting: a stream that waits for its next message holds
// nothing of the last one.
func TestLogsReleasesBeforeWaiting(t *testing.T) {
	var m LogMessage
	s := NewLogStream(recvFunc{recv: func(v any) error {
		wantLive(t, 0)
		return Codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded(sampleLogs(2)))}, v)
	}})
	for range 3 {
		if err := s.Recv(&m); err != nil {
			t.Fatal(err)
		}
		wantLive(t, 1)
	}
	m.Release()
	wantLive(t, 0)
}

// TestCodecDirections: what is only read is not sent, and the other way round.
func TestCodecDirections(t *testing.T) {
	for _, v := range []any{&Request{}, &LogMessage{}} {
		if _, err := (Codec{}).Marshal(v); err == nil {
			t.Errorf("a %T was sent", v)
		}
	}
	for _, v := range []any{&Response{}, EncodedLogs{}} {
		if err := (Codec{}).Unmarshal(nil, v); err == nil {
			t.Errorf("a %T was read", v)
		}
	}
	if err := (Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer{0x0a}}, &logsAnswer{}); err == nil {
		t.Error("a truncated answer was read")
	}
}
