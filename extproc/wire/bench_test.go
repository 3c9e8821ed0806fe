package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// stockEcho is echo with the generated types.
type stockEcho struct {
	extprocv3.UnimplementedExternalProcessorServer
}

func (stockEcho) Process(s extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		out := &extprocv3.ProcessingResponse{}
		if body := m.GetRequestBody(); body != nil {
			out.Response = &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{
				BodyMutation: &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: body.GetBody()}},
			}}}
		} else {
			out.Response = &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}}
		}
		if err := s.Send(out); err != nil {
			return err
		}
	}
}

// sides are the servers that are compared, over a unix socket as in a sidecar.
// The client sends bytes encoded beforehand and decodes nothing.
var sides = []struct {
	name    string
	options []grpc.ServerOption
	add     func(*grpc.Server)
}{
	{"stock", nil, func(s *grpc.Server) { extprocv3.RegisterExternalProcessorServer(s, stockEcho{}) }},
	{"wire, gRPC's pool", []grpc.ServerOption{grpc.ForceServerCodecV2(Codec{})}, func(s *grpc.Server) { Register(s, echo) }},
	{"wire", []grpc.ServerOption{grpc.ForceServerCodecV2(Codec{}), experimental.BufferPool(BufferPool())}, func(s *grpc.Server) { Register(s, echo) }},
}

func BenchmarkStream(b *testing.B) {
	messages := []struct {
		name string
		m    *extprocv3.ProcessingRequest
	}{{"headers", sample()}}
	for _, n := range []int{1 << 10, 64 << 10, 1 << 20, bigBody} {
		messages = append(messages, struct {
			name string
			m    *extprocv3.ProcessingRequest
		}{fmt.Sprintf("body %d KB and back", n>>10), sampleBody(n)})
	}
	for _, m := range messages {
		raw := encoded(m.m)
		for _, side := range sides {
			b.Run(m.name+"/"+side.name, func(b *testing.B) {
				stream, stop := benchStream(b, side.options, side.add)
				defer stop()
				turn := func() {
					if err := stream.SendMsg(raw); err != nil {
						b.Fatal(err)
					}
					if err := stream.RecvMsg(nil); err != nil {
						b.Fatal(err)
					}
				}
				turn()
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					turn()
				}
			})
		}
	}
}

// discard is rawBytes without looking at what comes back.
type discard struct{ rawBytes }

func (discard) Unmarshal(mem.BufferSlice, any) error { return nil }

func benchStream(b *testing.B, options []grpc.ServerOption, add func(*grpc.Server)) (grpc.ClientStream, func()) {
	b.Helper()
	socket := filepath.Join(b.TempDir(), "s")
	lis, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(2*bigBody), grpc.MaxSendMsgSize(2*bigBody),
		grpc.InitialWindowSize(bigBody), grpc.InitialConnWindowSize(bigBody))...)
	add(s)
	go func() { _ = s.Serve(lis) }()
	// The client's own pool of frames, so that its cost is the same on all sides.
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		experimental.WithBufferPool(new(framePool)), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(discard{}), grpc.MaxCallRecvMsgSize(2*bigBody)),
		grpc.WithInitialWindowSize(bigBody), grpc.WithInitialConnWindowSize(bigBody))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+serviceName+"/"+methodName)
	if err != nil {
		b.Fatal(err)
	}
	return stream, func() {
		cancel()
		_ = conn.Close()
		s.Stop()
	}
}

func BenchmarkRead(b *testing.B) {
	for name, m := range map[string]proto.Message{"headers": sample(), "body 64 KB": sampleBody(64 << 10)} {
		raw := encoded(m)
		data := mem.BufferSlice{mem.SliceBuffer(raw)}
		b.Run(name+"/stock", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := stock.Unmarshal(data, &extprocv3.ProcessingRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/wire", func(b *testing.B) {
			var r Request
			b.ReportAllocs()
			for b.Loop() {
				if err := (Codec{}).Unmarshal(data, &r); err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}

func BenchmarkReadLogs(b *testing.B) {
	for _, n := range []int{1, 20} {
		data := mem.BufferSlice{mem.SliceBuffer(encoded(sampleLogs(n)))}
		b.Run(fmt.Sprintf("%d entries/stock", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := stock.Unmarshal(data, &accesslogv3.StreamAccessLogsMessage{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d entries/wire", n), func(b *testing.B) {
			var m LogMessage
			b.ReportAllocs()
			for b.Loop() {
				if err := (Codec{}).Unmarshal(data, &m); err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	m := plannedAnswer()
	generated := stockOf(m)
	for name, marshal := range map[string]func() (mem.BufferSlice, error){
		"stock": func() (mem.BufferSlice, error) { return stock.Marshal(generated) },
		"wire":  func() (mem.BufferSlice, error) { return Codec{}.Marshal(m) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parts, err := marshal()
				if err != nil {
					b.Fatal(err)
				}
				parts.Free()
			}
		})
	}
}
