package extproc

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/credential"
)

var errNoRoute = errors.New("no route of the policy takes this model")

// Options are what a Server is made of. Node, Peers and Pressure may be left out.
type Options struct {
	Policy *config.Policy
	Health *policy.Health
	Keys   *credential.Static
	// Issued are the credentials that clouds issue; nil is none.
	Issued  *credential.Issued
	Trail   *trail.Sink
	Metrics *Metrics
	Log     *slog.Logger
	// Node is this replica's address as its peers dial it, "" without peers.
	Node string
	// Pressure, when set, is told in coarse steps how many bytes the exchanges
	// that run come to, bodies and all. It must not wait.
	Pressure func(bytes int64)
	// Peers hands access-log entries on; nil without peers.
	Peers *Peers
}

// maxMessage is above what Envoy buffers for the largest limits.body there is.
// The policy's own limit is checked by the plan, so that a reload can change it.
const maxMessage = 1<<30 + 128<<20

// Server answers Envoy's filters. It is safe for concurrent use.
type Server struct {
	policy  atomic.Pointer[config.Policy]
	health  *policy.Health
	keys    *credential.Static
	issued  *credential.Issued
	trail   *trail.Sink
	metrics *Metrics
	log     *slog.Logger
	node    string
	peers   *Peers
	table   *Table
	files   fileCache
	loose   looseEntries

	envoys    versions
	began     time.Time
	strangers sync.Once // said that another replica's entries come here
	draining  atomic.Bool
	sessions  atomic.Int64 // open plan streams
	render    renderState
}

// NewServer returns a server without listeners; Register adds it to a gRPC one.
func NewServer(o Options) *Server {
	s := &Server{
		health: o.Health, keys: o.Keys, trail: o.Trail, metrics: o.Metrics, log: o.Log, node: o.Node, peers: o.Peers,
		table: NewTable(o.Policy.Limits.Memory), began: time.Now(),
	}
	s.table.pressure = o.Pressure
	if s.issued = o.Issued; s.issued == nil {
		s.issued = credential.NewIssued(o.Log, nil)
	}
	s.policy.Store(o.Policy)
	s.render.learn(o.Policy)
	s.metrics.watch(s)
	return s
}

// GRPCOptions are what a gRPC server must be made with to carry a Server.
func GRPCOptions() []grpc.ServerOption {
	const (
		window        = 32 << 20
		streamWorkers = 32
	)
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.WriteBufferSize(256 << 10),
		grpc.ReadBufferSize(256 << 10),
		// Streams begin on goroutines whose stacks have grown already.
		grpc.NumStreamWorkers(streamWorkers),
		experimental.BufferPool(wire.BufferPool()),
		// Envoy pings every 5 s; the default policy would drop its connections
		// (envoy.md, rule 18).
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.StatsHandler(connections{}),
	}
}

// Register adds the ext_proc and the access-log service to g.
func (s *Server) Register(g *grpc.Server) {
	wire.Register(g, s.process)
	wire.RegisterLogs(g, s.logs)
}

// process sends a stream to the handler of its role.
func (s *Server) process(raw wire.Stream) error {
	role := first(raw.Context(), names.Role)
	stream := s.metrics.stream(role, raw)
	switch role {
	case names.RolePlan:
		s.render.seen(first(raw.Context(), names.Render))
		return s.plan(stream)
	case names.RoleAttempt:
		return s.attempt(stream)
	case names.RoleJudge:
		return s.judge(stream)
	}
	return status.Errorf(codes.InvalidArgument, "%s: want plan, attempt or judge", names.Role)
}

func first(ctx context.Context, key string) string {
	if v := metadata.ValueFromIncomingContext(ctx, key); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Reload makes p the policy of exchanges that begin from now on.
func (s *Server) Reload(p *config.Policy) {
	s.render.learn(p)
	s.policy.Store(p)
	s.table.SetLimit(p.Limits.Memory)
}

// Policy is the one that new exchanges begin with.
func (s *Server) Policy() *config.Policy { return s.policy.Load() }

// Inflight is the number of exchanges that run here.
func (s *Server) Inflight() int { return s.table.Len() }

// drainEntries is how long a drain waits for log entries when no plan stream is
// open any more.
const drainEntries = 2 * time.Second

// Drain refuses new plan streams and returns when no exchange is left, or with
// ctx's error. Attempts, judges and log entries are still served.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	streamsOver := time.Now()
	for s.table.Len() > 0 || s.sessions.Load() > 0 {
		if s.sessions.Load() > 0 {
			streamsOver = time.Now()
		} else if time.Since(streamsOver) > drainEntries {
			return nil // what is left only waits for entries that may never come
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// newID is a ULID (github.com/ulid/spec): its order is the order in time.
func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// rendered reports whether Envoy, by the config it runs, has a target's
// cluster.
func (s *Server) rendered(t *config.Target) bool { return s.render.has(s.policy.Load(), t) }
