package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/crossdoor/crossdoor/internal/operate"
)

const serveHelp = `Run the service that Envoy asks: ext_proc, access log and gRPC health on --grpc;
/metrics, /healthz, /readyz and the trail on --admin.

Whoever can dial --grpc gets credentials: an address that is neither loopback
nor unix: needs --grpc-cert, --grpc-key and --grpc-client-ca (mTLS), or
--grpc-mesh-mtls when the mesh does it. An --admin that is not loopback needs
--admin-token-file, --admin-cert and --admin-key.

The policy is read again when its file changes and on SIGHUP; a broken one is
refused and the old one stays. SIGTERM: /readyz turns 503, no new request is
planned, running ones finish, failovers included, for at most --drain. With
--peers, --drain-delay lets the other replicas take over before this one
refuses.`

const serveExamples = `  crossdoor serve --policy crossdoor.yaml
  crossdoor serve --policy crossdoor.yaml --grpc unix:/run/crossdoor.sock --metrics 0.0.0.0:9090
  crossdoor serve --policy crossdoor.yaml --grpc 0.0.0.0:9002 --grpc-mesh-mtls \
    --advertise $POD_IP:9002 --peers crossdoor-headless:9002 --log json`

// serveFlags is the command line of `serve`.
type serveFlags struct {
	policy                      string
	grpc, admin, metrics        string
	advertise, peers            string
	grpcSecurity, adminSecurity operate.Security
	log                         string
	drain, drainDelay           time.Duration
}

func serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Run the service that Envoy asks", Long: serveHelp, Example: serveExamples,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	fs := c.Flags()
	fs.StringVar(&f.policy, "policy", "", policyFlagHelp)
	fs.StringVar(&f.grpc, "grpc", "127.0.0.1:9002", "where Envoy asks: HOST:PORT or unix:PATH")
	fs.StringVar(&f.grpcSecurity.Cert, "grpc-cert", "", "certificate of the gRPC server")
	fs.StringVar(&f.grpcSecurity.Key, "grpc-key", "", "its key")
	fs.StringVar(&f.grpcSecurity.ClientCA, "grpc-client-ca", "", "CA that client certificates must be from")
	fs.BoolVar(&f.grpcSecurity.Mesh, "grpc-mesh-mtls", false, "the mesh does mTLS on --grpc")
	fs.StringVar(&f.admin, "admin", "127.0.0.1:9003", "admin API: HOST:PORT or unix:PATH")
	fs.StringVar(&f.adminSecurity.Cert, "admin-cert", "", "certificate of the admin server")
	fs.StringVar(&f.adminSecurity.Key, "admin-key", "", "its key")
	fs.StringVar(&f.adminSecurity.TokenFile, "admin-token-file", "", "token that admin callers must show")
	fs.StringVar(&f.metrics, "metrics", "", "metrics and probes alone, without names: HOST:PORT")
	fs.StringVar(&f.advertise, "advertise", "", "this replica's --grpc as its peers dial it, HOST:PORT")
	fs.StringVar(&f.peers, "peers", "", "the other replicas: HOST:PORT, several with commas; a name may stand for several addresses")
	fs.StringVar(&f.log, "log", "text", "text or json")
	fs.DurationVar(&f.drainDelay, "drain-delay", 0, "how long new requests are still planned after SIGTERM, while Envoys notice that health says NOT_SERVING (default 2s with --peers, else 0)")
	fs.DurationVar(&f.drain, "drain", time.Minute, "how long running requests may take after SIGTERM")
	return c
}

func (f *serveFlags) run(ctx context.Context) error {
	shareProcessors()
	path, err := policyPath(f.policy)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return usageError{err}
	}
	p, err := loadPolicy(path)
	if err != nil {
		return err
	}
	log, err := newLogger(f.log)
	if err != nil {
		return usageError{err}
	}
	s, err := newService(f, path, p, log)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

func (f *serveFlags) check() error {
	if err := operate.CheckAddress(operate.GRPC, f.grpc, f.grpcSecurity); err != nil {
		return err
	}
	if err := operate.CheckAddress(operate.Admin, f.admin, f.adminSecurity); err != nil {
		return err
	}
	if f.metrics != "" {
		if err := operate.CheckAddress(operate.Metrics, f.metrics, operate.Security{}); err != nil {
			return err
		}
	}
	if f.peers != "" && f.advertise == "" {
		return errors.New("--peers: the peers must know this replica as well: give --advertise HOST:PORT")
	}
	if f.drain < 0 || f.drainDelay < 0 {
		return errors.New("--drain, --drain-delay: cannot be negative")
	}
	if f.adminSecurity.TokenFile == "" {
		return nil
	}
	_, err := operate.ReadToken(f.adminSecurity.TokenFile)
	return err
}

// drainDelayOrDefault: with peers there is somebody to take over.
func (f *serveFlags) drainDelayOrDefault() time.Duration {
	if f.drainDelay == 0 && f.peers != "" {
		return 2 * time.Second
	}
	return f.drainDelay
}

// peerNames is the --peers list.
func (f *serveFlags) peerNames() []string {
	var out []string
	for one := range strings.SplitSeq(f.peers, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

func newLogger(format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, nil)), nil
	}
	return nil, fmt.Errorf("--log %q: want text or json", format)
}
