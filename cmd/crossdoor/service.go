package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/credential"
)

// firstCredentials is how long the service waits at its start for what clouds
// issue.
const firstCredentials = 2 * time.Second

// service is `serve` at work: the servers and what they share.
type service struct {
	flags   *serveFlags
	path    string
	log     *slog.Logger
	keys    *credential.Static
	issued  *credential.Issued
	health  *policy.Health
	sink    *trail.Sink
	trail   config.Trail // as the sink was opened
	peers   *extproc.Peers
	server  *extproc.Server
	grpc    *grpc.Server
	checks  *health.Server
	reloads *prometheus.CounterVec
	state   serviceState
	admin   operate.Options
}

func newService(f *serveFlags, path string, p *config.Policy, log *slog.Logger) (*service, error) {
	s := &service{flags: f, path: path, log: log, checks: health.NewServer()}
	s.keys = credential.NewStatic(s.keyChanged)
	s.keys.Use(keySources(p))
	s.issued = credential.NewIssued(log, s.keyChanged)
	s.issued.Use(cloudSources(p))
	registry := prometheus.NewRegistry()
	known := knownModels(p)
	metrics := extproc.NewMetrics(registry, known)
	s.health = policy.NewHealth(p, known, policy.Observer{Opened: s.opened(metrics), Closed: s.closed})
	file, err := openTrail(p, log)
	if err != nil {
		return nil, err
	}
	s.sink, s.trail = trail.NewSink(p.Trail.Recent, file), p.Trail
	peerCreds, serverCreds, err := grpcCredentials(f)
	if err != nil {
		return nil, usageError{err}
	}
	if names := f.peerNames(); len(names) > 0 {
		s.peers = extproc.NewPeers(names, peerCreds, log)
	}
	s.server = extproc.NewServer(extproc.Options{
		Policy: p, Health: s.health, Keys: s.keys, Issued: s.issued, Trail: s.sink, Metrics: metrics, Log: log, Node: f.advertise, Peers: s.peers,
		Pressure: memoryPressure(),
	})
	options := extproc.GRPCOptions()
	if serverCreds != nil {
		options = append(options, grpc.Creds(serverCreds))
	}
	s.grpc = grpc.NewServer(options...)
	s.server.Register(s.grpc)
	healthv1.RegisterHealthServer(s.grpc, s.checks)
	s.checks.SetServingStatus(names.HealthRunning, healthv1.HealthCheckResponse_SERVING)
	s.registerOwn(registry)
	s.admin = operate.Options{
		Ready: s.ready, Recent: s.sink.Recent, TokenFile: f.adminSecurity.TokenFile,
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}
	return s, nil
}

func (s *service) registerOwn(registry *prometheus.Registry) {
	s.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "crossdoor_policy_reloads_total", Help: "Policy reloads."}, []string{"result"})
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "crossdoor_build_info", Help: "Always 1."}, []string{"version"})
	build.WithLabelValues(buildVersion()).Set(1)
	stale := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crossdoor_render_stale", Help: "1 when Envoy's config must be rendered again."}, func() float64 {
		if s.server.Stale() {
			return 1
		}
		return 0
	})
	registry.MustRegister(s.reloads, build, stale, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

func openTrail(p *config.Policy, log *slog.Logger) (*trail.FileWriter, error) {
	if p.Trail.File == "" {
		return nil, nil //nolint:nilnil // no file is a nil writer, which the sink knows
	}
	return trail.OpenFile(p.Trail.File, log)
}

// run listens, serves until ctx ends, and drains.
func (s *service) run(ctx context.Context) error {
	listener, err := operate.Listen(s.flags.grpc)
	if err != nil {
		return fmt.Errorf("--grpc: %w", err)
	}
	failed := make(chan error, 3)
	go func() { failed <- s.grpc.Serve(listener) }()
	servers, err := s.serveHTTP(failed)
	if err != nil {
		s.grpc.Stop()
		return err
	}
	background, stop := context.WithCancel(context.Background())
	defer stop()
	go s.keys.Watch(background)
	go s.issued.Run(background)
	go s.watchPolicy(background)
	s.awaitCredentials(background)
	s.state.listening.Store(true)
	s.log.Info("serving", "policy", s.server.Policy().Hash, "grpc", s.flags.grpc, "admin", s.flags.admin, "version", buildVersion())
	for _, place := range append(s.keys.Missing(), s.issued.Missing()...) {
		s.log.Warn("no value for a key: its target is left out of plans", "key", place)
	}
	select {
	case err = <-failed:
		err = fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		s.drain()
	}
	s.grpc.Stop()
	for _, server := range servers {
		_ = server.Close()
	}
	s.peers.Close()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, s.sink.Close(closing))
}

// awaitCredentials gives the clouds a moment to issue the first ones: until then
// their targets are left out of plans.
func (s *service) awaitCredentials(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, firstCredentials)
	defer stop()
	s.issued.AwaitFirst(ctx)
}

// serveHTTP starts the admin and the metrics server.
func (s *service) serveHTTP(failed chan<- error) ([]*http.Server, error) {
	admin, err := operate.Listen(s.flags.admin)
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	server := operate.NewServer(operate.AdminHandler(s.admin), s.log)
	sec := s.flags.adminSecurity
	go func() {
		if sec.Cert != "" {
			failed <- server.ServeTLS(admin, sec.Cert, sec.Key)
			return
		}
		failed <- server.Serve(admin)
	}()
	servers := []*http.Server{server}
	if s.flags.metrics == "" {
		return servers, nil
	}
	var metrics net.Listener
	if metrics, err = operate.Listen(s.flags.metrics); err != nil {
		return nil, errors.Join(fmt.Errorf("--metrics: %w", err), server.Close())
	}
	second := operate.NewServer(operate.MetricsHandler(s.admin), s.log)
	go func() { failed <- second.Serve(metrics) }()
	return append(servers, second), nil
}

// drain finishes what runs (envoy.md, section 6).
func (s *service) drain() {
	s.state.draining.Store(true)
	// What runs still needs its attempts and judges: only new requests go elsewhere.
	s.checks.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	s.log.Info("draining", "inflight", s.server.Inflight(), "for", s.flags.drain.String())
	ctx, stop := context.WithTimeout(context.Background(), s.flags.drainDelayOrDefault()+s.flags.drain)
	defer stop()
	again, ignore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	select { // health says NOT_SERVING: Envoys turn to other replicas meanwhile
	case <-time.After(s.flags.drainDelayOrDefault()):
	case <-again.Done():
	}
	if err := s.server.Drain(again); err != nil {
		s.log.Warn("requests were cut off", "inflight", s.server.Inflight())
	}
}

// grpcCredentials are those of the gRPC server and, for hand-overs, those that
// peers are dialled with.
func grpcCredentials(f *serveFlags) (peers, server credentials.TransportCredentials, err error) {
	if f.grpcSecurity.Cert == "" {
		return plaintext(), nil, nil
	}
	return mutualTLS(f.grpcSecurity)
}
