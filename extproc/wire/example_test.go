package wire_test

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/metadata"

	"github.com/crossdoor/crossdoor/extproc/wire"
)

// A server whose handler lets everything pass, but marks the request.
func ExampleRegister() {
	server := grpc.NewServer(
		grpc.ForceServerCodecV2(wire.Codec{}),
		experimental.BufferPool(wire.BufferPool()),
		grpc.MaxRecvMsgSize(33<<20),
	)
	wire.Register(server, func(s wire.Stream) error {
		role := metadata.ValueFromIncomingContext(s.Context(), "x-crossdoor-role")
		var in wire.Request
		var out wire.Response
		defer in.Release()
		for {
			switch err := s.Recv(&in); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			out.Reset()
			out.Kind = in.Kind
			if in.Kind == wire.KindRequestHeaders && len(role) > 0 {
				out.Set = append(out.Set, wire.HeaderField{Name: "x-seen-by", Value: role[0]})
			}
			if err := s.Send(&out); err != nil {
				return err
			}
		}
	})
	for name, info := range server.GetServiceInfo() {
		fmt.Println(name, info.Methods[0].Name)
	}
	fmt.Println("buffers in use:", wire.Live())
	// Output:
	// envoy.service.ext_proc.v3.ExternalProcessor Process
	// buffers in use: 0
}
