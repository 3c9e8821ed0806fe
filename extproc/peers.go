package extproc

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/crossdoor/crossdoor/extproc/wire"
)

const (
	// resolveEvery is how often the peers' name is looked up again.
	resolveEvery = 10 * time.Second
	// peerTimeout bounds one hand-over.
	peerTimeout = time.Second
	// peerQueue bounds the entries that wait for one peer.
	peerQueue = 1000
)

// Peers hands access-log entries to the replicas that planned their exchanges.
// A nil Peers hands on nothing. It is safe for concurrent use.
type Peers struct {
	names []string // HOST:PORT; a name may stand for several addresses
	creds credentials.TransportCredentials
	log   *slog.Logger

	mu       sync.Mutex
	known    map[string]bool // resolved
	resolved time.Time
	peers    map[string]*peer
	closed   bool
}

// NewPeers returns the replicas behind the given HOST:PORT names.
func NewPeers(names []string, creds credentials.TransportCredentials, log *slog.Logger) *Peers {
	return &Peers{names: names, creds: creds, log: log, peers: map[string]*peer{}}
}

// peer is one other replica.
type peer struct {
	queue chan handover
	conn  *grpc.ClientConn
}

type handover struct {
	msg    wire.EncodedLogs
	failed func()
}

// handOn queues a copy of an encoded entry for the replica at node. It reports
// whether it did; failed is called later when the replica does not take it.
func (p *Peers) handOn(node, log string, entry []byte, failed func()) bool {
	if p == nil || node == "" || !p.isKnown(node) {
		return false
	}
	to := p.peer(node)
	if to == nil {
		return false
	}
	select {
	case to.queue <- handover{msg: wire.EncodeLog(log, entry), failed: failed}:
		return true
	default:
		return false
	}
}

// isKnown reports whether node is one of the peers: entries name an address,
// and only these are dialled.
func (p *Peers) isKnown(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.resolved) > resolveEvery {
		p.resolved = time.Now()
		p.known = resolve(p.names)
	}
	return p.known[node]
}

func resolve(names []string) map[string]bool {
	known := map[string]bool{}
	ctx, stop := context.WithTimeout(context.Background(), peerTimeout)
	defer stop()
	for _, name := range names {
		known[name] = true
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			continue
		}
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			continue
		}
		for _, a := range addresses {
			known[net.JoinHostPort(a, port)] = true
		}
	}
	return known
}

func (p *Peers) peer(node string) *peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if to, ok := p.peers[node]; ok {
		return to
	}
	conn, err := grpc.NewClient(node, grpc.WithTransportCredentials(p.creds))
	if err != nil {
		p.log.Warn("peer", "address", node, "error", err)
		return nil
	}
	to := &peer{queue: make(chan handover, peerQueue), conn: conn}
	p.peers[node] = to
	go to.run()
	return to
}

// Close ends the hand-overs.
func (p *Peers) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, to := range p.peers {
		close(to.queue)
	}
	p.peers = nil
}

func (to *peer) run() {
	defer func() { _ = to.conn.Close() }()
	for h := range to.queue {
		if to.send(h.msg) != nil {
			h.failed()
		}
	}
}

// send hands one message over on a stream of its own: when the stream closes
// well the peer has read it.
func (to *peer) send(msg wire.EncodedLogs) error {
	ctx, stop := context.WithTimeout(context.Background(), peerTimeout)
	defer stop()
	return wire.SendLogs(ctx, to.conn, msg)
}
