package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

const bigBody = 32 << 20

// serve starts a server with the handler and connects a client to it. The
// returned stop ends both and waits for the handlers.
func serve(t testing.TB, h Handler) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	s := grpc.NewServer(
		grpc.ForceServerCodecV2(Codec{}), experimental.BufferPool(BufferPool()), grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(2*bigBody), grpc.InitialWindowSize(bigBody), grpc.InitialConnWindowSize(bigBody),
	)
	Register(s, h)
	healthv1.RegisterHealthServer(s, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*bigBody), grpc.MaxCallSendMsgSize(2*bigBody)),
		grpc.WithInitialWindowSize(bigBody), grpc.WithInitialConnWindowSize(bigBody),
	)
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

func open(ctx context.Context, t testing.TB, conn *grpc.ClientConn) extprocv3.ExternalProcessor_ProcessClient {
	t.Helper()
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func exchange(t testing.TB, stream extprocv3.ExternalProcessor_ProcessClient, m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	t.Helper()
	if err := stream.Send(m); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// echo answers headers with their state and a body with that body.
func echo(s Stream) error {
	var r Request
	var m Response
	defer r.Release()
	for {
		if err := s.Recv(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		m.Reset()
		m.Kind = r.Kind
		m.Meta = append(m.Meta, HeaderField{"id", r.Meta("id")})
		if r.Kind == KindRequestBody {
			m.Body = r.TakeBody()
		}
		if err := s.Send(&m); err != nil {
			return err
		}
	}
}

func TestStreamEcho(t *testing.T) {
	conn, stop := serve(t, echo)
	stream := open(t.Context(), t, conn)
	answer := exchange(t, stream, sample())
	if got := answer.GetDynamicMetadata().GetFields()["crossdoor"].GetStructValue().GetFields()["id"].GetStringValue(); got != "01J" {
		t.Errorf("state id came back as %q", got)
	}
	for _, n := range []int{0, 1, inPlace, inPlace + 1, 70000, bigBody, 5} {
		m := sampleBody(n)
		body := m.GetRequestBody().GetBody()
		for i := range body {
			body[i] = byte(i * 7 >> 3)
		}
		got := exchange(t, stream, m).GetRequestBody().GetResponse().GetBodyMutation().GetBody()
		if !bytes.Equal(got, body) {
			t.Errorf("a body of %d bytes came back changed, with %d bytes", n, len(got))
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the stream is %v", err)
	}
	reply, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health over the same codec: %v, %v", reply, err)
	}
	stop()
	wantLive(t, 0)
}

// TestStreamReleasesBeforeWaiting: a stream that waits for its next message
// holds nothing of the last one.
func TestStreamReleasesBeforeWaiting(t *testing.T) {
	var r Request
	s := NewStream(recvFunc{recv: func(m any) error {
		wantLive(t, 0)
		return Codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded(sampleBody(9000)))}, m)
	}})
	for range 3 {
		if err := s.Recv(&r); err != nil {
			t.Fatal(err)
		}
		wantLive(t, 1)
	}
	r.Release()
	wantLive(t, 0)
}

// recvFunc is a server stream of which only RecvMsg works.
type recvFunc struct {
	grpc.ServerStream

	recv func(any) error
}

func (s recvFunc) RecvMsg(m any) error { return s.recv(m) }

// rawBytes sends bytes as they are.
type rawBytes struct{}

func (rawBytes) Name() string { return "proto" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawBytes{}

func TestStreamInvalidMessage(t *testing.T) {
	conn, stop := serve(t, echo)
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/envoy.service.ext_proc.v3.ExternalProcessor/Process", grpc.ForceCodecV2(rawBytes{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg([]byte{0x22, 0x05, 0x0a}); err != nil {
		t.Fatal(err)
	}
	var got []byte
	if err := stream.RecvMsg(&got); status.Code(err) != codes.Internal {
		t.Errorf("a truncated message ended the stream with %v, want Internal", err)
	}
	stop()
	wantLive(t, 0)
}

// TestStreamRefusedAnswers: what cannot be sent is an error, and its body is
// freed all the same.
func TestStreamRefusedAnswers(t *testing.T) {
	cases := map[string]func() *Response{
		"invalid": func() *Response { return &Response{Kind: KindRequestTrailers, Body: bufferOf("x")} },
		"too large": func() *Response {
			return &Response{Kind: KindRequestBody, Body: NewBuffer(100000)}
		},
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			sent := make(chan error, 1)
			lis := bufconn.Listen(1 << 20)
			s := grpc.NewServer(grpc.ForceServerCodecV2(Codec{}), grpc.MaxSendMsgSize(50000))
			Register(s, func(s Stream) error {
				m := answer()
				err := s.Send(m)
				if m.Body != nil {
					t.Error("Send left the body")
				}
				sent <- err
				return nil
			})
			go func() { _ = s.Serve(lis) }()
			conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
			if err != nil {
				t.Fatal(err)
			}
			open(t.Context(), t, conn)
			if err := <-sent; err == nil {
				t.Error("no error")
			}
			_ = conn.Close()
			s.Stop()
			wantLive(t, 0)
		})
	}
}

// TestStreamBroken: a client that goes while a large body is being sent to it
// leaves nothing behind: by cancelling its stream, or with its connection.
func TestStreamBroken(t *testing.T) {
	cases := map[string]func(cancel func(), conn *grpc.ClientConn){
		"cancelled":  func(cancel func(), _ *grpc.ClientConn) { cancel() },
		"connection": func(_ func(), conn *grpc.ClientConn) { _ = conn.Close() },
	}
	for name, leave := range cases {
		t.Run(name, func(t *testing.T) {
			queued, ended := make(chan struct{}), make(chan struct{})
			conn, stop := serve(t, func(s Stream) error {
				defer close(ended)
				var r Request
				defer r.Release()
				if err := s.Recv(&r); err != nil {
					return err
				}
				// More than the client's windows take, and more than one message.
				for range 3 {
					if err := s.Send(&Response{Kind: KindRequestBody, Body: NewBuffer(bigBody)}); err != nil {
						return err
					}
					select {
					case <-queued:
					default:
						close(queued)
					}
				}
				<-s.Context().Done()
				return s.Context().Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream := open(ctx, t, conn)
			if err := stream.Send(sample()); err != nil {
				t.Fatal(err)
			}
			<-queued
			leave(cancel, conn)
			<-ended
			stop()
			waitLive(t)
		})
	}
}

// waitLive waits for 0 live buffers: gRPC's writer drops its references in its
// own time, and those it forgets come back with the collections.
func waitLive(t *testing.T) {
	t.Helper()
	for range 1000 {
		if Live() == 0 {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
	wantLive(t, 0)
}
