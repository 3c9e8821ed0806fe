package extproc

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/credential"
)

// twoTargets is the policy that most tests run under.
const twoTargets = `
version: 1
targets:
  a: {platform: anthropic, url: "http://127.0.0.1:9101", plaintext: true, keys: [{env: KEY_A}]}
  b: {platform: anthropic, url: "http://127.0.0.1:9102", plaintext: true, keys: [{env: KEY_B}]}
routes:
  - {name: main, models: ["claude-*"], chain: [a, b]}
`

// withTimeouts is twoTargets with a route's timeouts.
func withTimeouts(timeouts string) string { return withRoute("timeouts: {" + timeouts + "}") }

// withRoute is twoTargets with more members of its route.
func withRoute(members string) string {
	return strings.Replace(twoTargets, "chain: [a, b]", "chain: [a, b], "+members, 1)
}

// The keys' values, which must be in no log.
var secrets = map[string]string{"KEY_A": "sk-a-secret", "KEY_B": "sk-b-secret", "KEY_C": "sk-c-secret", "KEY_D": "sk-d-secret"}

// world is one bubble's network: replicas of the service behind one peer that
// plays Envoy.
type world struct {
	*testing.T

	log      lockedBuffer
	replicas []*replica
}

// replica is one running service and a connection to it.
type replica struct {
	*world

	server   *Server
	health   *policy.Health
	sink     *trail.Sink
	registry *prometheus.Registry
	policy   *config.Policy
	conn     *grpc.ClientConn
	stop     func()
}

// inWorld runs f in a bubble with one replica of the service and checks
// afterwards that nothing is left: no exchange, no body, no slot, no goroutine
// (a bubble cannot end while one is blocked), no buffer, no secret in the log.
func inWorld(t *testing.T, yaml string, f func(r *replica)) {
	t.Helper()
	setSecrets(t)
	before := wire.Live()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t}
		defer w.close()
		f(w.replica(yaml, ""))
	})
	noBuffers(t, before)
}

// pass lets d go by on the world's own clock: nothing really waits.
func pass(d time.Duration) { <-time.After(d) }

func setSecrets(t *testing.T) {
	t.Helper()
	for name, value := range secrets {
		t.Setenv(name, value)
	}
}

func loadPolicy(tb testing.TB, yaml string) *config.Policy {
	tb.Helper()
	p, err := config.Load("crossdoor.yaml", []byte(yaml), Catalog())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// newServer is a Server over a policy, without listeners.
func newServer(tb testing.TB, p *config.Policy, node string, peers *Peers, log *slog.Logger) (*Server, *prometheus.Registry) {
	tb.Helper()
	keys := credential.NewStatic(nil)
	sources := make([]credential.Source, 0, len(secrets))
	for name := range secrets {
		sources = append(sources, credential.Source{Env: name})
	}
	keys.Use(sources)
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry, nil)
	health := policy.NewHealth(p, nil, policy.Observer{Opened: metrics.Opened})
	return NewServer(Options{
		Policy: p, Health: health, Keys: keys, Trail: trail.NewSink(100, nil), Metrics: metrics, Log: log, Node: node, Peers: peers,
	}), registry
}

// replica adds one to the world.
func (w *world) replica(yaml, node string) *replica {
	w.Helper()
	p := loadPolicy(w, yaml)
	s, registry := newServer(w, p, node, nil, slog.New(slog.NewTextHandler(&w.log, nil)))
	r := &replica{world: w, server: s, health: s.health, sink: s.trail, registry: registry, policy: p}
	r.listen()
	w.replicas = append(w.replicas, r)
	return r
}

func (r *replica) listen() {
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer(GRPCOptions()...)
	r.server.Register(g)
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///crossdoor",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		r.Fatal(err)
	}
	r.conn = conn
	r.stop = func() { _ = conn.Close(); g.Stop(); <-served }
}

// close ends the peers' streams, lets what waits come to its end, and checks
// what is left.
func (w *world) close() {
	w.Helper()
	for _, r := range w.replicas {
		r.stop()
	}
	// Joined exchanges go on their own, after the longest per-try timeout.
	pass(config.MaxAutoAttempt + 2*orphanWait + joinGrace)
	synctest.Wait()
	for _, r := range w.replicas {
		r.idle()
	}
	for name, value := range secrets {
		if strings.Contains(w.log.String(), value) {
			w.Errorf("the value of %s is in the log", name)
		}
	}
}

// idle checks that nothing is in use.
func (r *replica) idle() {
	r.Helper()
	s := r.server
	if n := s.table.all(); n != 0 {
		r.Errorf("%d exchanges are left", n)
	}
	if n := s.table.Bytes(); n != 0 {
		r.Errorf("%d bytes of bodies are left", n)
	}
	if n := s.sessions.Load(); n != 0 {
		r.Errorf("%d plan streams are left", n)
	}
	if n := r.metric("crossdoor_held_streams"); n != 0 {
		r.Errorf("%v held streams are left", n)
	}
	if n := r.metric("crossdoor_held_bytes"); n != 0 {
		r.Errorf("%v held bytes are left", n)
	}
	for _, stack := range handlers() {
		r.Errorf("a goroutine is left:\n%s", stack)
	}
	for _, t := range r.policy.Targets {
		if t.MaxConcurrency == 0 {
			continue
		}
		if v := r.health.Look(t, "any", nil); v.Skip == policy.SkipBusy {
			r.Errorf("slots of %s are left taken", t.Name)
		}
	}
}

// all counts the joined exchanges, too.
func (t *Table) all() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.live)
}

// handlers are the stacks of the goroutines that run this package's code, tests
// aside.
func handlers() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		for line := range strings.Lines(stack) {
			if strings.HasPrefix(line, "\t") && strings.Contains(line, "/extproc/") && !strings.Contains(line, "_test.go:") {
				out = append(out, stack)
				break
			}
		}
	}
	return out
}

// metric is the sum of a metric's series whose labels include the given pairs.
func (r *replica) metric(name string, labels ...string) float64 {
	r.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	series:
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if have[labels[i]] != labels[i+1] {
					continue series
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// records are the trail's, oldest first.
func (r *replica) records() []*trail.Record { return r.sink.Recent(trail.Filter{}) }

// record is the only one, which must be there within a second of the end.
func (r *replica) record() *trail.Record {
	r.Helper()
	pass(time.Second)
	all := r.records()
	if len(all) != 1 {
		r.Fatalf("%d records, want exactly one", len(all))
	}
	if n := r.metric("crossdoor_requests_total"); n != 1 {
		r.Errorf("requests_total is %v, want exactly one", n)
	}
	return all[0]
}

// lateRecord is record for an exchange whose plan stream ended while its answer
// was on its way, and of which no entry tells. Envoys before 1.39 end that stream
// with the answer's headers, and the answer may take as long as idle (5 minutes)
// after each byte: the exchange is kept for orphanWait, no shorter and no longer.
// Once a newer Envoy was seen the end of the stream is that of the answer, and
// the record is there with the others.
func (r *replica) lateRecord() *trail.Record {
	r.Helper()
	const moment = 2 * time.Second // at most, since the stream ended
	pass(orphanWait - moment)
	if n := len(r.records()); n != 0 {
		r.Fatalf("%d records of an answer that may be on its way", n)
	}
	pass(moment)
	return r.record()
}

// noBuffers checks that no pooled buffer is in use that was not before. What gRPC dropped with a
// connection comes back with the collector (wire/share.go).
func noBuffers(t *testing.T, before int64) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); wire.Live() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d buffers are left in use", wire.Live()-before)
		}
		runtime.GC()
	}
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
