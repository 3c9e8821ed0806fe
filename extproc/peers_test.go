package extproc

import (
	"log/slog"
	"net"
	"testing"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// encodedEntry is what Envoy sends of an exchange's end.
func encodedEntry(t *testing.T, e *envoy) []byte {
	t.Helper()
	raw, err := proto.Marshal(e.entry(names.LogExchange, ended{}))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Entries reach the replica that planned over its own access-log service; what it
// does not take comes back.
func TestPeersOverTheNetwork(t *testing.T) {
	setSecrets(t)
	quiet := slog.New(slog.DiscardHandler)
	p := loadPolicy(t, twoTargets)
	s, _ := newServer(t, p, "", nil, quiet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(GRPCOptions()...)
	s.Register(g)
	go func() { _ = g.Serve(listener) }()
	defer g.Stop()
	node := listener.Addr().String()
	x := &exchange{id: "ours", policy: p, started: time.Now(), node: node}
	s.table.add(x)

	peers := NewPeers([]string{node}, insecure.NewCredentials(), quiet)
	defer peers.Close()
	e := &envoy{headers: map[string]string{names.ID: "ours"}, meta: map[string]string{names.MetaNode: node}}
	raw := encodedEntry(t, e)
	failed := make(chan struct{}, 1)
	onFail := func() { failed <- struct{}{} }
	if peers.handOn("127.0.0.1:1", names.LogExchange, raw, onFail) {
		t.Error("handed to an address that is no peer's")
	}
	if !peers.handOn(node, names.LogExchange, raw, onFail) {
		t.Fatal("not handed on")
	}
	told := func() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.end.exchange != nil }
	for deadline := time.Now().Add(10 * time.Second); !told(); {
		select {
		case <-failed:
			t.Fatal("the replica did not take it")
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not arrive")
		}
	}
	g.Stop()
	if peers.handOn(node, names.LogExchange, raw, onFail) {
		<-failed
	} else {
		t.Error("a known peer was refused before it was dialled")
	}
	peers.Close()
	if peers.handOn(node, names.LogExchange, raw, onFail) {
		t.Error("handed on after the end")
	}
}

func TestPeersNone(t *testing.T) {
	var p *Peers
	if p.handOn("a:1", names.LogExchange, nil, nil) {
		t.Error("handed to nobody")
	}
	p.Close()
}

// Names stand for the addresses behind them; one that does not resolve is only
// itself.
func TestPeersResolve(t *testing.T) {
	known := resolve([]string{"localhost:9002", "no port", "x.invalid:1"})
	for _, want := range []string{"localhost:9002", "127.0.0.1:9002", "no port", "x.invalid:1"} {
		if !known[want] {
			t.Errorf("%s is not among %v", want, known)
		}
	}
}

// A replica that is slow to take entries does not pile them up.
func TestPeersQueueIsBounded(t *testing.T) {
	p := NewPeers(nil, insecure.NewCredentials(), slog.New(slog.DiscardHandler))
	p.known, p.resolved = map[string]bool{"a:1": true}, time.Now()
	p.peers["a:1"] = &peer{queue: make(chan handover, 2)}
	e := &envoy{headers: map[string]string{names.ID: "ours"}}
	raw := encodedEntry(t, e)
	var taken int
	for range 5 {
		if p.handOn("a:1", names.LogExchange, raw, nil) {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("%d taken, want 2", taken)
	}
	raw[0] ^= 0xff // the caller's again: a queued entry must be a copy
	var msg accesslogv3.StreamAccessLogsMessage
	if err := proto.Unmarshal((<-p.peers["a:1"].queue).msg, &msg); err != nil {
		t.Fatal(err)
	}
	entries := msg.GetHttpLogs().GetLogEntry()
	if log := msg.GetIdentifier().GetLogName(); log != names.LogExchange || len(entries) != 1 {
		t.Fatalf("handed on log %q with %d entries", log, len(entries))
	}
	if id := entries[0].GetCommonProperties().GetMetadata().GetFilterMetadata()[names.Namespace].GetFields()[names.MetaID].GetStringValue(); id != "ours" {
		t.Errorf("handed on the entry of %q", id)
	}
}
