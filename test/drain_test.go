package test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestDrain: SIGTERM loses nothing, failovers included, and takes nothing new.
func TestDrain(t *testing.T) {
	e := start(t, options{serve: []string{"--drain", "20s"}}, lane{name: "running", targets: two()}, lane{name: "streaming", targets: two()}, lane{name: "late", targets: two(), uncounted: true})
	gate := make(chan struct{})
	running, streaming := e.lane("running"), e.lane("streaming")
	running.fakes[0].Script(fakeplatform.Error(529, "x").Held(gate))
	held := fakeplatform.Stream(startEvent, ping, fakeplatform.StreamError("overloaded_error", "x"))
	held.Mid, held.MidPart = gate, 2
	streaming.fakes[0].Script(held)
	first, second := running.later(call{}), streaming.later(call{stream: true})
	running.at(0, 1)
	streaming.at(0, 1)
	if err := e.service().proc.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Second, "/readyz says no", func() error {
		if _, err := get(fmt.Sprintf("http://127.0.0.1:%d/readyz", e.service().admin)); err == nil {
			return errNotYet
		}
		return nil
	})
	if _, err := get(fmt.Sprintf("http://127.0.0.1:%d/healthz", e.service().admin)); err != nil {
		t.Errorf("/healthz while draining: %v", err)
	}
	a := e.lane("late").send(call{})
	if kind, _, err := messagesError(a); a.status != 503 || kind != "overloaded_error" || err != nil {
		t.Errorf("a new request: %d %q (%v)", a.status, kind, err)
	}
	// By now Envoy knows that nothing new goes here. What runs is still decided.
	stat := fmt.Sprintf("crossdoor::127.0.0.1:%d::health_flags::/failed_active_hc", e.service().grpc)
	eventually(t, 5*time.Second, "Envoy sees the drain", func() error {
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/clusters", e.admin))
		if err == nil && !strings.Contains(text, stat) {
			err = errNotYet
		}
		return err
	})
	close(gate)
	if a := <-first; a.status != 200 || a.header.Get("x-crossdoor-served-by") != "running-b" {
		t.Errorf("running: %s", describe(a, a.err))
	}
	if a := <-second; a.status != 200 || a.header.Get("x-crossdoor-served-by") != "streaming-b" {
		t.Errorf("streaming: %s", describe(a, a.err))
	}
	select {
	case <-e.service().proc.done:
		if e.service().proc.err != nil {
			t.Errorf("it ended with %v", e.service().proc.err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it did not end when nothing was left")
	}
	for _, l := range []*laneRun{running, streaming} {
		if r := l.nth(1); r.summary() != "a overloaded failover, b ok serve" {
			t.Errorf("record %s", r.line)
		}
	}
}

// TestDrainLimit: what does not end is left after --drain.
func TestDrainLimit(t *testing.T) {
	t.Parallel()
	e := start(t, options{serve: []string{"--drain", "1s"}}, lane{name: "stuck", targets: two(), uncounted: true})
	l := e.lane("stuck")
	gate := make(chan struct{})
	l.fakes[0].Script(fakeplatform.Message("m", "stuck", "late").Held(gate))
	answered := l.later(call{})
	l.at(0, 1)
	began := time.Now()
	if !e.service().proc.stop(10 * time.Second) {
		t.Error("it did not end")
	}
	if d := time.Since(began); d < 900*time.Millisecond || d > 4*time.Second {
		t.Errorf("it ended after %v", d)
	}
	close(gate)
	if a := <-answered; a.status != 200 {
		t.Errorf("the running request: %s", describe(a, a.err))
	}
}
