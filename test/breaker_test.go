package test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// servedBy sends one request and says which target served it.
func servedBy(l *laneRun, c call) string {
	l.e.t.Helper()
	a := l.send(c)
	return fmt.Sprintf("%d %s", a.status, a.header.Get("x-crossdoor-served-by"))
}

// state waits for a breaker state of the first target.
func (l *laneRun) state(scope string, want float64) {
	l.e.t.Helper()
	eventually(l.e.t, 2*time.Second, fmt.Sprintf("breaker %s of %s is %v", scope, l.targetName(0), want), func() error {
		got, err := l.e.breaker(scope, l.targetName(0))
		if err == nil && max(got, 0) != want {
			err = fmt.Errorf("it is %v", got)
		}
		return err
	})
}

const window = 1500 * time.Millisecond

var shortBreaker = options{top: []string{"breaker: {failures: 3, window: 1500ms, max_window: 4s, long_window: 2s}"}}

// waitUntil waits for a moment that only the clock can bring.
func waitUntil(t testing.TB, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func TestBreakerOpensProbesCloses(t *testing.T) {
	e := start(t, shortBreaker, lane{name: "life", targets: two()})
	l := e.lane("life")
	busy := fakeplatform.Error(529, "x")
	l.fakes[0].Script(busy, busy, busy)
	for i := range 3 {
		if got := servedBy(l, call{}); got != "200 life-b" {
			t.Fatalf("request %d: %s", i, got)
		}
	}
	l.state("model", 2)
	e.metric(1, "breaker_opened_total", "target", "life-a")
	opened := time.Now()
	if got, n := servedBy(l, call{}), len(l.fakes[0].Requests()); got != "200 life-b" || n != 3 {
		t.Errorf("while open: %s, %d requests at a", got, n)
	}
	// The probe fails: the window doubles.
	waitUntil(t, opened.Add(window+100*time.Millisecond))
	l.fakes[0].Script(busy)
	if got, n := servedBy(l, call{}), len(l.fakes[0].Requests()); got != "200 life-b" || n != 4 {
		t.Errorf("failed probe: %s, %d requests at a", got, n)
	}
	reopened := time.Now()
	waitUntil(t, reopened.Add(window+200*time.Millisecond))
	if n := len(l.fakes[0].Requests()); n != 4 || servedBy(l, call{}) != "200 life-b" || len(l.fakes[0].Requests()) != 4 {
		t.Error("the window did not double")
	}
	// The probe succeeds: one success closes it.
	waitUntil(t, reopened.Add(2*window+200*time.Millisecond))
	if got := servedBy(l, call{}); got != "200 life-a" {
		t.Errorf("good probe: %s", got)
	}
	l.state("model", 0)
	if got := servedBy(l, call{}); got != "200 life-a" {
		t.Errorf("after it closed: %s", got)
	}
}

// TestBreakerScopes is the contract's column "blames".
func TestBreakerScopes(t *testing.T) {
	e := start(t, options{top: []string{"breaker: {failures: 2, window: 1m, max_window: 2m}"}},
		lane{name: "two-models", targets: two(), models: "two-x, two-y"},
		lane{name: "target", targets: []target{{}, {}}, models: "target-x, target-y"},
		lane{name: "keys", targets: []target{{keys: 2}, {}}, models: "keys-x, keys-y"},
		lane{name: "mixed", targets: two()},
	)
	ask := func(t *testing.T, lane, model string) string {
		t.Helper()
		l := e.lane(lane)
		return servedBy(l.in(t), call{body: goodBody(model, false, 0)})
	}
	t.Run("overloaded blames target and model", func(t *testing.T) {
		l := e.lane("two-models")
		l.fakes[0].Script(fakeplatform.Error(529, "x"), fakeplatform.Error(529, "x"))
		ask(t, "two-models", "two-x")
		ask(t, "two-models", "two-x")
		if got := ask(t, "two-models", "two-x"); got != "200 two-models-b" {
			t.Errorf("the failed model: %s", got)
		}
		if got := ask(t, "two-models", "two-y"); got != "200 two-models-a" {
			t.Errorf("the other model: %s", got)
		}
	})
	t.Run("connection blames the target", func(t *testing.T) {
		l := e.lane("target")
		l.fakes[0].Script(fakeplatform.ResetBeforeHeaders(), fakeplatform.ResetBeforeHeaders())
		ask(t, "target", "target-x")
		ask(t, "target", "target-x")
		if got := ask(t, "target", "target-y"); got != "200 target-b" {
			t.Errorf("another model: %s", got)
		}
	})
	t.Run("credential blames the key", func(t *testing.T) {
		l := e.lane("keys")
		l.fakes[0].Script(fakeplatform.Error(401, "x"))
		if got := ask(t, "keys", "keys-x"); got != "200 keys-a" {
			t.Errorf("the other key: %s", got)
		}
		bad := l.fakes[0].Requests()[0].Get("x-api-key")
		for range 4 {
			ask(t, "keys", "keys-y")
		}
		for _, r := range l.fakes[0].Requests()[1:] {
			if r.Get("x-api-key") == bad {
				t.Error("the refused key was used again")
			}
		}
	})
	t.Run("a success between failures", func(t *testing.T) {
		l := e.lane("mixed").in(t)
		for i := range 3 {
			l.fakes[0].Script(fakeplatform.Error(529, "x"))
			servedBy(l, call{})
			if got := servedBy(l, call{}); got != "200 mixed-a" {
				t.Errorf("after one failure: %s", got)
			}
			l.nth(2*i + 2) // a success counts when its end is known
		}
	})
}

// TestKeysAreSpread: several keys of one target take turns.
func TestKeysAreSpread(t *testing.T) {
	e := start(t, options{}, lane{name: "spread", targets: []target{{keys: 3}}})
	l := e.lane("spread")
	used := map[string]int{}
	for range 9 {
		l.send(call{})
	}
	for _, r := range l.fakes[0].Requests() {
		used[r.Get("x-api-key")]++
	}
	for _, k := range l.keys[0] {
		if used[k] != 3 {
			t.Errorf("a key was used %d times of 9, want 3", used[k])
		}
	}
}

func TestAllEjected(t *testing.T) {
	e := start(t, options{top: []string{"breaker: {failures: 1, window: 40s, max_window: 1m}"}}, lane{name: "none-left", targets: two()})
	l := e.lane("none-left")
	l.fakes[0].Script(fakeplatform.Error(529, "x"))
	l.fakes[1].Script(fakeplatform.Error(529, "x"))
	l.send(call{})
	before := len(l.fakes[0].Requests()) + len(l.fakes[1].Requests())
	a := l.send(call{})
	kind, _, err := messagesError(a)
	if a.status != 529 || kind != "overloaded_error" || err != nil {
		t.Errorf("got %d %s (%v)", a.status, kind, err)
	}
	if s, err := strconv.Atoi(a.header.Get("retry-after")); err != nil || s < 30 || s > 40 {
		t.Errorf("retry-after %q", a.header.Get("retry-after"))
	}
	if a.header.Get("x-should-retry") != "false" || a.header.Get("x-crossdoor-attempts") != "0" || a.header.Get("x-crossdoor-served-by") != "" {
		t.Errorf("headers %v", a.header)
	}
	if n := len(l.fakes[0].Requests()) + len(l.fakes[1].Requests()); n != before {
		t.Error("a request was sent all the same")
	}
	if r := l.byID(a.id()); r.Outcome != "exhausted" || r.skips() != "a ejected, b ejected" || len(r.Attempts) != 0 {
		t.Errorf("record %s", r.line)
	}
}

// TestOneProbe: half-open lets exactly one of 50 through.
func TestOneProbe(t *testing.T) {
	e := start(t, shortBreaker, lane{name: "probe", targets: two()})
	l := e.lane("probe")
	busy := fakeplatform.Error(529, "x")
	l.fakes[0].Script(busy, busy, busy)
	for range 3 {
		l.send(call{})
	}
	opened := time.Now()
	gate := make(chan struct{})
	l.fakes[0].Script(fakeplatform.Message("m", "probe", "probe").Held(gate))
	waitUntil(t, opened.Add(window+150*time.Millisecond))
	var wg sync.WaitGroup
	var mu sync.Mutex
	by := map[string]int{}
	for range 50 {
		wg.Go(func() {
			got := servedBy(l, call{})
			mu.Lock()
			defer mu.Unlock()
			by[got]++
		})
	}
	eventually(t, 10*time.Second, "all but the probe are answered", func() error {
		mu.Lock()
		defer mu.Unlock()
		if by["200 probe-b"] != 49 {
			return fmt.Errorf("%v", by)
		}
		return nil
	})
	l.state("model", 1)
	close(gate)
	wg.Wait()
	if by["200 probe-a"] != 1 || len(l.fakes[0].Requests()) != 4 {
		t.Errorf("%v, %d requests at a", by, len(l.fakes[0].Requests()))
	}
	l.state("model", 0)
}

// TestCancelledProbe gives its slot back and counts as nothing.
func TestCancelledProbe(t *testing.T) {
	e := start(t, shortBreaker, lane{name: "gone", targets: two()})
	l := e.lane("gone")
	busy := fakeplatform.Error(529, "x")
	l.fakes[0].Script(busy, busy, busy, fakeplatform.Silence())
	for range 3 {
		l.send(call{})
	}
	waitUntil(t, time.Now().Add(window+150*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.try(call{ctx: ctx, client: ownClient()})
		done <- err
	}()
	eventually(t, 3*time.Second, "the probe is at the platform", func() error {
		if len(l.fakes[0].Requests()) != 4 {
			return errNotYet
		}
		return nil
	})
	cancel()
	<-done
	l.nth(4)
	eventually(t, 2*time.Second, "another probe is let through", func() error {
		if got := servedBy(l, call{}); got != "200 gone-a" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	l.state("model", 0)
}

// TestBusy: above max_concurrency a target is left out.
func TestBusy(t *testing.T) {
	e := start(t, options{}, lane{name: "busy", targets: []target{{yaml: []string{"max_concurrency: 1"}}, {}}})
	l := e.lane("busy")
	gate := make(chan struct{})
	l.fakes[0].Script(fakeplatform.Message("m", "m", "x").Held(gate))
	done := make(chan string, 1)
	go func() { done <- servedBy(l, call{}) }()
	eventually(t, 3*time.Second, "the first is at the platform", func() error {
		if len(l.fakes[0].Requests()) != 1 {
			return errNotYet
		}
		return nil
	})
	a := l.send(call{})
	if got := a.header.Get("x-crossdoor-served-by"); a.status != http.StatusOK || got != "busy-b" {
		t.Errorf("the second: %d %s", a.status, got)
	}
	if r := l.byID(a.id()); r.skips() != "a busy" {
		t.Errorf("skips %q", r.skips())
	}
	close(gate)
	if got := <-done; got != "200 busy-a" {
		t.Errorf("the first: %s", got)
	}
	eventually(t, 2*time.Second, "it is free again", func() error {
		if got := servedBy(l, call{}); got != "200 busy-a" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}
