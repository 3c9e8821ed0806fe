package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// noop is the service of side N, and the access-log sink of side D: stock gRPC,
// generated types, every message answered with nothing to change. Windows,
// buffers, limits and the keepalive policy are those of Crossdoor's server.
type noop struct {
	extprocv3.UnimplementedExternalProcessorServer
	accesslogv3.UnimplementedAccessLogServiceServer
}

// serveNoop is the body of the process that `bench noop ADDRESS` is.
func serveNoop(ctx context.Context, address string) error {
	const window = 32 << 20
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("no-op service: %w", err)
	}
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(routeBuffer+1<<20),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.WriteBufferSize(256<<10),
		grpc.ReadBufferSize(256<<10),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	extprocv3.RegisterExternalProcessorServer(server, noop{})
	accesslogv3.RegisterAccessLogServiceServer(server, noop{})
	healthv1.RegisterHealthServer(server, health.NewServer())
	return server.Serve(listener)
}

// Process answers each message of one filter's stream.
func (noop) Process(stream grpc.BidiStreamingServer[extprocv3.ProcessingRequest, extprocv3.ProcessingResponse]) error {
	for {
		req, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // EOF and Canceled are how Envoy ends a stream
		}
		if err := stream.Send(unchanged(req)); err != nil {
			return err
		}
	}
}

func unchanged(req *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	switch req.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}}}
	case *extprocv3.ProcessingRequest_RequestBody:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{}}}
	default:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{}}}
	}
}

// StreamAccessLogs takes entries and forgets them.
func (noop) StreamAccessLogs(stream grpc.ClientStreamingServer[accesslogv3.StreamAccessLogsMessage, accesslogv3.StreamAccessLogsResponse]) error {
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return stream.SendAndClose(&accesslogv3.StreamAccessLogsResponse{})
		} else if err != nil {
			return err
		}
	}
}
