package test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// at waits until the lane's target has n requests.
func (l *laneRun) at(target, n int) {
	l.e.t.Helper()
	eventually(l.e.t, 5*time.Second, fmt.Sprintf("%d requests at %s", n, l.targetName(target)), func() error {
		if got := len(l.fakes[target].Requests()); got != n {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
}

// later makes the call in the background.
func (l *laneRun) later(c call) <-chan *answer {
	out := make(chan *answer, 1)
	go func() {
		a, err := l.try(c)
		if err != nil {
			a = &answer{err: err}
		}
		out <- a
	}()
	return out
}

// TestEnvoyStartsFirst: both start in any order; a service that comes later is
// used within seconds.
func TestEnvoyStartsFirst(t *testing.T) {
	e := start(t, options{envoyFirst: true}, lane{name: "first", targets: two(), uncounted: true})
	l := e.lane("first")
	eventually(t, 10*time.Second, "Envoy listens", func() error {
		_, err := get(fmt.Sprintf("http://127.0.0.1:%d/ready", e.admin))
		return err
	})
	// Its first look at the service has failed by now.
	stat := fmt.Sprintf("crossdoor::127.0.0.1:%d::health_flags::/failed_active_hc", e.service().grpc)
	eventually(t, 5*time.Second, "Envoy misses the service", func() error {
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/clusters", e.admin))
		if err == nil && !strings.Contains(text, stat) {
			err = errNotYet
		}
		return err
	})
	if a := l.send(call{}); a.status != 503 {
		t.Errorf("without a service: %d", a.status)
	}
	e.service().start()
	e.service().waitReady()
	eventually(t, 5*time.Second, "the service is used", func() error {
		if got := servedBy(l, call{}); got != "200 first-a" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// TestServiceDown: a clear answer at once, and everything again afterwards.
func TestServiceDown(t *testing.T) {
	e := start(t, options{}, lane{name: "down", targets: two(), uncounted: true})
	l := e.lane("down")
	if got := servedBy(l, call{}); got != "200 down-a" {
		t.Fatal(got)
	}
	e.service().proc.kill()
	for _, c := range []struct {
		name string
		call call
	}{{"json", call{}}, {"sse", call{stream: true}}, {"1 MB", call{pad: 1 << 20}}, {"h2", call{h2: true}}} {
		t.Run(c.name, func(t *testing.T) {
			a := l.in(t).send(c.call)
			if kind, _, err := messagesError(a); a.status != 503 || kind != "overloaded_error" || err != nil {
				t.Errorf("got %d %q (%v)", a.status, kind, err)
			}
			checkNoEnvoy(t, a)
			if a.total > 4*time.Second {
				t.Errorf("after %v", a.total)
			}
		})
	}
	e.service().start()
	e.waitReady()
	eventually(t, 5*time.Second, "served again", func() error {
		if got := servedBy(l, call{}); got != "200 down-a" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// TestEnvoySurvivesADeadService: the moments after the service died, when Envoy
// still tries to reach it, with bodies that take more than one read.
func TestEnvoySurvivesADeadService(t *testing.T) {
	e := start(t, options{}, lane{name: "dies", targets: two(), uncounted: true})
	l := e.lane("dies")
	for _, pad := range []int{100 << 10, 500 << 10, 4 << 20} {
		e.service().proc.kill()
		for n := range 15 {
			a, err := l.try(call{pad: pad, stream: n%2 == 0})
			if err != nil || a.status != 503 {
				t.Fatalf("%d bytes, request %d: %s", pad, n, describe(a, err))
			}
		}
		e.service().start()
		e.waitReady()
	}
}

// TestServiceDownDirect: unrewritten to the named target.
func TestServiceDownDirect(t *testing.T) {
	e := start(t, options{top: []string{"on_service_down: {direct: direct-a}"}}, lane{
		name: "direct", uncounted: true, route: []string{"clients: authenticated"},
		targets: []target{{keyYAML: "[passthrough]", rules: &fakeplatform.Rules{Keys: []string{"sk-client-direct"}}}, {}},
	})
	l := e.lane("direct")
	if got := servedBy(l, call{}); got != "200 direct-a" {
		t.Fatal(got)
	}
	e.service().proc.kill()
	a := l.send(call{})
	reqs := l.fakes[0].Requests()
	if a.status != 200 || len(reqs) != 2 || reqs[1].BodySHA256 != hash(goodBody("direct", false, 0)) {
		t.Errorf("got %d with %d requests: %.200s", a.status, len(reqs), a.body)
	}
	if got := l.send(call{stream: true}); got.status != 200 || !bytes.Contains(got.body, []byte("message_stop")) {
		t.Errorf("a stream: %d %.200q", got.status, got.body)
	}
}

// TestKilledWhileTheTargetThinks: the answer passes; a failed one too.
func TestKilledWhileTheTargetThinks(t *testing.T) {
	e := start(t, options{}, lane{name: "good", targets: two(), uncounted: true}, lane{name: "bad", targets: two(), uncounted: true})
	gate := make(chan struct{})
	good, bad := e.lane("good"), e.lane("bad")
	good.fakes[0].Script(fakeplatform.Message("m", "good", "made it").Held(gate))
	bad.fakes[0].Script(fakeplatform.Error(500, "boom").Held(gate))
	first, second := good.later(call{}), bad.later(call{})
	good.at(0, 1)
	bad.at(0, 1)
	e.service().proc.kill()
	close(gate)
	if a := <-first; a.status != 200 || !bytes.Contains(a.body, []byte("made it")) {
		t.Errorf("good: %d %.200s %v", a.status, a.body, a.err)
	}
	if a := <-second; a.status != 500 && a.status != 503 {
		t.Errorf("bad: %d %.200s %v", a.status, a.body, a.err)
	}
	e.service().start()
	e.waitReady()
	if got := servedBy(good, call{}); got != "200 good-a" {
		t.Errorf("after the restart: %s", got)
	}
}

// TestKilledWithAStream: held ones are released, committed ones not touched.
func TestKilledWithAStream(t *testing.T) {
	e := start(t, options{}, lane{name: "held", targets: two(), uncounted: true}, lane{name: "committed", targets: two(), uncounted: true})
	gate := make(chan struct{})
	all := append([][]byte{startEvent, ping}, wholeTail...)
	mk := func(at int) fakeplatform.Answer {
		s := fakeplatform.Stream(all...)
		s.Mid, s.MidPart = gate, at
		return s
	}
	held, committed := e.lane("held"), e.lane("committed")
	held.fakes[0].Script(mk(2))
	committed.fakes[0].Script(mk(4))
	first := held.later(call{stream: true})
	resp, err := committed.open(call{stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	e.metric(1, "held_streams")
	e.service().proc.kill()
	close(gate)
	want := bytes.Join(all, nil)
	if a := <-first; a.status != 200 || a.err != nil || !bytes.Equal(a.body, want) {
		t.Errorf("held: %d %q %v", a.status, a.body, a.err)
	}
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("committed: %q %v", got, err)
	}
}

// TestKilledBetweenAttempts: 503 in the schema, never another target's key.
func TestKilledBetweenAttempts(t *testing.T) {
	e := start(t, options{}, lane{name: "between", targets: two(), uncounted: true, route: []string{"same_target_retries: 1", "actions: {rate_limit: retry}"}})
	l := e.lane("between")
	l.fakes[0].Script(fakeplatform.Error(429, "x", fakeplatform.Field{Name: "retry-after", Value: "20"}))
	waiting := l.later(call{})
	l.at(0, 1)
	eventually(t, 2*time.Second, "the retry waits", func() error {
		if l.fakes[0].Requests()[0].Ended.IsZero() {
			return errNotYet
		}
		return nil
	})
	e.service().proc.kill()
	a := <-waiting
	// Killed while the judge waits releases what was held; killed after it, the
	// attempt fails closed.
	if a.status != 429 && a.status != 503 {
		t.Errorf("got %d %.200s %v", a.status, a.body, a.err)
	}
	if _, _, err := messagesError(a); err != nil {
		t.Error(err)
	}
	if n := len(l.fakes[0].Requests()) + len(l.fakes[1].Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestRestartUnderLoad: every request gets an answer in the schema.
func TestRestartUnderLoad(t *testing.T) {
	e := start(t, options{concurrency: "2"}, lane{name: "load", targets: two(), uncounted: true})
	l := e.lane("load")
	l.fakes[0].Always(entitlement)
	load := l.load(6)
	for range 2 {
		load.more(30)
		e.service().proc.kill()
		e.service().start()
	}
	e.waitReady()
	load.more(30)
	load.stop()
	for _, r := range load.results {
		if r.status != 200 && r.status != 429 && r.status != 503 {
			t.Errorf("status %d", r.status)
		}
	}
	if got := servedBy(l, call{}); got != "200 load-b" {
		t.Errorf("at the end: %s", got)
	}
	e.metric(0, "inflight")
}
