package extproc

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
)

// healthyAllocs is what planning, serving and ending one healthy request of
// plain JSON may allocate in this package and below it; gRPC's own work is not
// among it. It is close to what is measured: more is a change to look at.
const healthyAllocs = 90

// memoryStream is a server stream that reads encoded messages from memory and
// encodes what it is sent.
type memoryStream struct {
	ctx  context.Context
	in   []mem.BufferSlice
	sent int
}

func (m *memoryStream) Context() context.Context   { return m.ctx }
func (*memoryStream) SetHeader(metadata.MD) error  { return nil }
func (*memoryStream) SendHeader(metadata.MD) error { return nil }
func (*memoryStream) SetTrailer(metadata.MD)       {}

func (m *memoryStream) RecvMsg(v any) error {
	if len(m.in) == 0 {
		return io.EOF
	}
	next := m.in[0]
	m.in = m.in[1:]
	return wire.Codec{}.Unmarshal(next, v)
}

func (m *memoryStream) SendMsg(v any) error {
	out, err := wire.Codec{}.Marshal(v)
	if err != nil {
		return err
	}
	out.Free()
	m.sent++
	return nil
}

func encoded(tb testing.TB, m *extprocv3.ProcessingRequest) mem.BufferSlice {
	tb.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}
}

// healthyMessages are the three of a healthy request.
func healthyMessages(tb testing.TB) []mem.BufferSlice {
	tb.Helper()
	headers := clientHeadersOf("/v1/messages", "content-length", itoa(len(plainBody)))
	answer := from(200, "application/json")
	maps.Copy(answer, map[string]string{"request-id": "req_1"})
	return []mem.BufferSlice{
		encoded(tb, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: httpHeaders(headers, false)}}),
		encoded(tb, &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(plainBody), EndOfStream: true}}}),
		encoded(tb, &extprocv3.ProcessingRequest{
			Request:         &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: httpHeaders(answer, false)},
			MetadataContext: &corev3.Metadata{},
		}),
	}
}

// healthyExchange is a function that runs one healthy request through the plan's
// handler and ends it.
func healthyExchange(tb testing.TB) func() {
	tb.Helper()
	s, _ := newServer(tb, loadPolicy(tb, twoTargets), "", nil, slog.New(slog.DiscardHandler))
	messages := healthyMessages(tb)
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs(names.Role, names.RolePlan))
	return func() {
		stream := &memoryStream{ctx: ctx, in: messages}
		if err := s.process(wire.NewStream(stream)); err != nil || stream.sent != 3 {
			tb.Fatalf("%v after %d answers", err, stream.sent)
		}
		s.endAll()
	}
}

// endAll ends what waits for entries of the access log.
func (s *Server) endAll() {
	s.table.mu.Lock()
	all := make([]*exchange, 0, len(s.table.live))
	for _, x := range s.table.live {
		all = append(all, x)
	}
	s.table.mu.Unlock()
	for _, x := range all {
		s.endAnyway(x)
	}
}

func TestHealthyAllocs(t *testing.T) {
	setSecrets(t)
	before := wire.Live()
	run := healthyExchange(t)
	run()
	got := testing.AllocsPerRun(200, run)
	t.Logf("%v allocations", got)
	if got > healthyAllocs {
		t.Errorf("%v allocations for one healthy request, want at most %d", got, healthyAllocs)
	}
	noBuffers(t, before)
}

func BenchmarkHealthy(b *testing.B) {
	for name, value := range secrets {
		b.Setenv(name, value)
	}
	run := healthyExchange(b)
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}
