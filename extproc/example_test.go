package extproc_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/credential"
)

// A Server answers on a gRPC server that was made with GRPCOptions.
func ExampleServer() {
	file := `
version: 1
targets:
  anthropic: {platform: anthropic, keys: [{env: ANTHROPIC_API_KEY}]}
routes:
  - {name: all, models: ["claude-*"], chain: [anthropic]}
`
	p, err := config.Load("crossdoor.yaml", []byte(file), extproc.Catalog())
	if err != nil {
		fmt.Println(err)
		return
	}
	s := extproc.NewServer(extproc.Options{
		Policy:  p,
		Health:  policy.NewHealth(p, nil, policy.Observer{}),
		Keys:    credential.NewStatic(nil),
		Trail:   trail.NewSink(p.Trail.Recent, nil),
		Metrics: extproc.NewMetrics(prometheus.NewRegistry(), nil),
		Log:     slog.New(slog.DiscardHandler),
	})
	g := grpc.NewServer(extproc.GRPCOptions()...)
	s.Register(g)
	for _, name := range slices.Sorted(maps.Keys(g.GetServiceInfo())) {
		fmt.Println(name)
	}
	fmt.Println("running:", s.Inflight(), "config:", s.RenderState())
	// Output:
	// envoy.service.accesslog.v3.AccessLogService
	// envoy.service.ext_proc.v3.ExternalProcessor
	// running: 0 config: unknown
}
