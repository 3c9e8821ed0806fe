package test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// entitlement is a failure that blames nothing, for cases that repeat it.
var entitlement = fakeplatform.ErrorOf(429, "rate_limit_error", "Extra usage is required for long context requests.", "")

// TestTwoReplicas: attempts and log entries land on a replica that did not plan.
func TestTwoReplicas(t *testing.T) {
	e := start(t, options{replicas: 2, concurrency: "2"}, lane{name: "json", targets: two()}, lane{name: "sse", targets: two()})
	for _, name := range []string{"json", "sse"} {
		l := e.lane(name)
		l.fakes[0].Always(entitlement)
		want := goodBody(name, name == "sse", 3000)
		for range 30 {
			if got := servedBy(l, call{stream: name == "sse", pad: 3000}); got != "200 "+name+"-b" {
				t.Errorf("%s: %s", name, got)
			}
		}
		for _, r := range l.fakes[1].Requests() {
			if r.BodySHA256 != hash(want) {
				t.Errorf("%s: another body arrived (%d bytes)", name, r.BodySize)
			}
		}
		eventually(t, 3*time.Second, "30 records of "+name, func() error {
			if n := len(l.records()); n != 30 {
				return fmt.Errorf("%d records", n)
			}
			return nil
		})
		for _, r := range l.records() {
			if r.summary() != "a entitlement failover, b ok serve" || r.Outcome != "failed_over" {
				t.Errorf("%s: %s: skips %q, attempts %q, outcome %q", name, r.ID, r.skips(), r.summary(), r.Outcome)
			}
		}
		e.metric(30, "requests_total", "route", name, "outcome", "failed_over")
		e.metric(30, "attempts_total", "target", name+"-a", "outcome", "entitlement")
		e.metric(30, "attempts_total", "target", name+"-b", "outcome", "ok")
	}
	if n, err := e.sum("join_miss_total"); err != nil || n == 0 {
		t.Errorf("no attempt landed on the other replica (%v, %v): the case shows nothing", n, err)
	}
	e.metric(0, "inflight")
}

// TestOneReplicaDead: no request fails.
func TestOneReplicaDead(t *testing.T) {
	e := start(t, options{replicas: 2}, lane{name: "dead", targets: two(), uncounted: true})
	l := e.lane("dead")
	l.fakes[0].Always(entitlement)
	servedBy(l, call{})
	e.services[1].proc.kill()
	// The first that meets it takes it out; a health check would cost half of them.
	failed := 0
	for range 50 {
		if got := servedBy(l, call{}); got != "200 dead-b" {
			failed++
		}
	}
	if failed > 5 {
		t.Errorf("%d of 50 requests failed before the health check", failed)
	}
	e.leftOut(e.services[1], "/failed_active_hc")
	for i := range 200 {
		if got := servedBy(l, call{}); got != "200 dead-b" {
			t.Errorf("request %d: %s", i, got)
		}
	}
}

// leftOut waits until both of Envoy's clusters of the service have the flag on a
// replica.
func (e *env) leftOut(s *service, flag string) {
	e.t.Helper()
	eventually(e.t, 15*time.Second, "Envoy leaves the replica out: "+flag, func() error {
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/clusters", e.admin))
		if err != nil {
			return err
		}
		for _, cluster := range []string{"crossdoor", "crossdoor-running"} {
			_, rest, _ := strings.Cut(text, fmt.Sprintf("%s::127.0.0.1:%d::health_flags::", cluster, s.grpc))
			if flags, _, _ := strings.Cut(rest, "\n"); !strings.Contains(flags, flag) {
				return fmt.Errorf("%s has %q", cluster, flags)
			}
		}
		return nil
	})
}

// TestReplicaDiesUnderLoad: every request is answered, in the client's schema;
// once Envoy knows, none fails.
func TestReplicaDiesUnderLoad(t *testing.T) {
	e := start(t, options{replicas: 2, concurrency: "2"}, lane{name: "load", targets: two(), uncounted: true})
	l := e.lane("load")
	l.fakes[0].Always(entitlement)
	load := l.load(8)
	load.more(40)
	e.services[1].proc.kill()
	e.leftOut(e.services[1], "/failed_")
	// Envoy's workers are told right after; a busy machine takes its time.
	known := time.Now().Add(500 * time.Millisecond)
	waitUntil(t, known)
	load.more(40)
	load.stop()
	for _, r := range load.results {
		switch {
		// 429 is attempt 1's answer whose judge was on the dead replica: it is released.
		case r.status == 200, (r.status == 429 || r.status == 503) && r.began.Before(known):
		default:
			t.Errorf("%d to a request %v after the replica was known to be dead", r.status, r.began.Sub(known))
		}
	}
}

// loader sends requests one after the other from several clients.
type loader struct {
	t    testing.TB
	quit chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	results []result
}

type result struct {
	began  time.Time
	status int
}

// load begins to send; every second client asks for streams.
func (l *laneRun) load(clients int) *loader {
	ld := &loader{t: l.e.t, quit: make(chan struct{})}
	for n := range clients {
		ld.wg.Go(func() {
			for {
				select {
				case <-ld.quit:
					return
				default:
				}
				began := time.Now()
				a := l.send(call{stream: n%2 == 0})
				if _, _, err := messagesError(a); a.status != 200 && err != nil {
					ld.t.Errorf("%d: %v", a.status, err)
				}
				ld.mu.Lock()
				ld.results = append(ld.results, result{began, a.status})
				ld.mu.Unlock()
			}
		})
	}
	return ld
}

// more waits for n further 200s.
func (ld *loader) more(n int) {
	ld.t.Helper()
	want := ld.good() + n
	eventually(ld.t, 20*time.Second, "requests are served", func() error {
		if got := ld.good(); got < want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})
}

func (ld *loader) good() int {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	n := 0
	for _, r := range ld.results {
		if r.status == 200 {
			n++
		}
	}
	return n
}

func (ld *loader) stop() {
	close(ld.quit)
	ld.wg.Wait()
}
