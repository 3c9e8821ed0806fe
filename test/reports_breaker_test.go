package test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// limited is a 429 with the given header lines (name, value, ...).
func limited(kv ...string) fakeplatform.Answer {
	return fakeplatform.Error(429, "Number of requests has exceeded your rate limit", fields(kv...)()...)
}

// TestReport23_EachRetryAfterCounts: every wait is that of the failure before it;
// where it does not fit into the total, the answer goes to the client at once.
func TestReport23_EachRetryAfterCounts(t *testing.T) {
	retry := []string{"same_target_retries: 3", "actions: {rate_limit: retry}"}
	answers := [][]fakeplatform.Answer{{limited("retry-after", "1"), limited("retry-after", "4")}}
	gaps := report{flow: flow{
		lane: wrenLane("r23", []string{fp}, retry...), scripts: answers,
		status: 200, served: "a", outcome: "served", attempts: "a rate_limit retry, a rate_limit retry, a ok serve", min: 5 * time.Second, max: 7 * time.Second,
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			got := l.fakes[0].Requests()
			for i, want := range []time.Duration{time.Second, 4 * time.Second} {
				if gap := got[i+1].Headed.Sub(got[i].Answered); gap < want {
					t.Errorf("request %d came %v after the answer before it, want at least %v", i+2, gap, want)
				}
			}
		},
	}}
	late := report{flow: flow{
		lane: wrenLane("r23-budget", []string{fp}, append(retry, "timeouts: {total: 3s}")...), scripts: answers,
		status: 429, served: "a", outcome: "exhausted", attempts: "a rate_limit retry, a rate_limit stop", max: time.Second + slack, body: answers[0][1].Body(),
		more: func(t testing.TB, _ *laneRun, a *answer, _ record) {
			if got := a.header.Get("retry-after"); got != "4" {
				t.Errorf("retry-after %q is not that of the answer", got)
			}
		},
	}}
	moved := report{flow: flow{
		lane: wrenLane("r23-moved", []string{fp, cpaws}, append(retry, "retry_after: {max: 2s}")...), scripts: answers,
		status: 200, served: "b", outcome: "failed_over", attempts: "a rate_limit retry, a rate_limit failover, b ok serve", min: time.Second, max: time.Second + slack,
	}}
	runReports(t, options{}, gaps, late, moved)
}

// TestReport25_AllCooling: Crossdoor's own answer when every target cools down
// says in a header when the soonest is back.
func TestReport25_AllCooling(t *testing.T) {
	e := startReports(t, options{}, wrenLane("r25", []string{fp, foundry, cpaws}))
	l := e.lane("r25")
	for i, after := range []string{"40", "12", "75"} {
		l.fakes[i].Script(limited("retry-after", after))
	}
	if a := l.ask(call{}); a.status != 429 || a.header.Get("retry-after") != "75" {
		t.Fatalf("the last platform's own 429: %d, retry-after %q", a.status, a.header.Get("retry-after"))
	}
	for _, stream := range []bool{false, true} {
		a := l.ask(call{stream: stream})
		kind, _, err := messagesError(a)
		if a.status != 529 || kind != "overloaded_error" || err != nil {
			t.Errorf("%d %s (%v)", a.status, kind, err)
		}
		// A whole number, rounded up: 12, or 11 on a machine that took a second.
		if s, err := strconv.Atoi(a.header.Get("retry-after")); err != nil || s > 12 || s < 11 {
			t.Errorf("retry-after %q, want 12", a.header.Get("retry-after"))
		}
		if a.header.Get("x-should-retry") != "false" || a.header.Get("x-crossdoor-attempts") != "0" {
			t.Errorf("headers %v", a.header)
		}
		if r := l.byID(a.id()); r.skips() != "a ejected, b ejected, c ejected" || r.Outcome != "exhausted" || len(r.Attempts) != 0 {
			t.Errorf("record %s", r.line)
		}
	}
	if n := l.total(); n != 3 {
		t.Errorf("%d requests at platforms, want 3", n)
	}
	e.metric(2, "skipped_total", "target", "r25-a", "reason", "ejected")
}

// TestReport27_RetryTimes: every form of a retry time counts, that of the
// exhausted bucket alone among several; garbage is no time.
func TestReport27_RetryTimes(t *testing.T) {
	in := func(d time.Duration, layout string) string { return time.Now().Add(d).UTC().Format(layout) }
	buckets := func() []string {
		return []string{
			"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", in(20*time.Second, time.RFC3339),
			"anthropic-ratelimit-input-tokens-remaining", "16000", "anthropic-ratelimit-input-tokens-reset", in(50*time.Second, time.RFC3339),
		}
	}
	var reports []report
	for _, c := range []struct {
		name   string
		header func() []string
		lo, hi time.Duration // retry_after_ms; 0 is none
	}{
		{"bucket", buckets, 14 * time.Second, 20 * time.Second},
		{"ms", func() []string { return []string{"retry-after-ms", "1500"} }, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"date", func() []string { return []string{"retry-after", in(20*time.Second, http.TimeFormat)} }, 14 * time.Second, 20 * time.Second},
		{"past", func() []string { return []string{"retry-after", "Wed, 21 Oct 2020 07:28:00 GMT"} }, 0, 0},
		{"unit", func() []string { return []string{"retry-after", "120s"} }, 0, 0},
		{"empty", func() []string { return []string{"retry-after", ""} }, 0, 0},
		{"negative", func() []string { return []string{"retry-after", "-7"} }, 0, 0},
		{"garbage-then-bucket", func() []string { return append(buckets(), "retry-after", "120s") }, 14 * time.Second, 20 * time.Second},
	} {
		reports = append(reports, report{flow: flow{
			lane:    wrenLane("r27-"+c.name, []string{fp, cpaws}, "retry_after: {default: 900ms}"),
			prepare: func(l *laneRun) { l.fakes[0].Script(limited(c.header()...)) },
			status:  200, served: "b", outcome: "failed_over", attempts: "a rate_limit failover, b ok serve",
			more: func(t testing.TB, l *laneRun, a *answer, r record) {
				if got := time.Duration(r.Attempts[0].RetryAfterMS * float64(time.Millisecond)); got < c.lo || got > c.hi {
					t.Errorf("retry_after_ms %v, want %v to %v", got, c.lo, c.hi)
				}
				if a.header.Get("retry-after") != "" {
					t.Errorf("retry-after %q of another attempt", a.header.Get("retry-after"))
				}
				// The cool-down is as long as that: the default is over in a second.
				back := l.back(2500 * time.Millisecond)
				if want := c.hi < 2*time.Second; back != want {
					t.Errorf("the target came back within 2.5s: %v, want %v", back, want)
				}
			},
		}})
	}
	runReports(t, options{}, reports...)
}

// back reports whether the first target serves again within the limit.
func (l *laneRun) back(limit time.Duration) bool {
	return poll(limit, func() error {
		if l.ask(call{}).header.Get("x-crossdoor-served-by") != l.targetName(0) {
			return errNotYet
		}
		return nil
	}) == nil
}

// TestReport29_OneProbe: at the instant the window ends 200 requests arrive at a
// target that can serve five at a time. One of them is let through; the others
// go to the next target without waiting for it.
func TestReport29_OneProbe(t *testing.T) {
	e := startReports(t, shortBreaker, wrenLane("r29", []string{fp, cpaws}))
	l := e.lane("r29")
	l.fakes[0].Script(busy529, busy529, busy529)
	for range 3 {
		l.ask(call{})
	}
	opened := time.Now()
	gate := make(chan struct{})
	var running, most atomic.Int64
	l.fakes[0].Respond(func(fakeplatform.Request) fakeplatform.Answer {
		most.Store(max(most.Load(), running.Add(1)))
		if running.Load() > 5 {
			return busy529
		}
		return goodOf(fp, false).Held(gate)
	})
	waitUntil(t, opened.Add(window+100*time.Millisecond))
	var wg sync.WaitGroup
	var byB atomic.Int64
	for range 200 {
		wg.Go(func() {
			a := l.ask(call{h2: true})
			if a.status != 200 {
				t.Errorf("status %d", a.status)
			}
			if a.header.Get("x-crossdoor-served-by") == "r29-b" {
				byB.Add(1)
			}
		})
	}
	eventually(t, 20*time.Second, "all but the probe are answered while it runs", func() error {
		if n := byB.Load(); n != 199 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	close(gate)
	wg.Wait()
	if most.Load() != 1 || len(l.fakes[0].Requests()) != 4 {
		t.Errorf("%d at once, %d requests in all at a recovering target, want 1 and 4", most.Load(), len(l.fakes[0].Requests()))
	}
	l.opened(t, 0, "")
	if got := l.ask(call{}).header.Get("x-crossdoor-served-by"); got != "r29-a" {
		t.Errorf("after one success: %s", got)
	}
}

// TestReport31_NothingInsideTheWindow: within a replica a target that asked to be
// left alone is. Replicas learn each for itself: at most one request a replica
// and window is what that costs after a 429 (`failures` a replica otherwise).
func TestReport31_NothingInsideTheWindow(t *testing.T) {
	const cool = 1500 * time.Millisecond
	for _, c := range []struct {
		name     string
		replicas int
	}{{"one", 1}, {"three", 3}} {
		t.Run(c.name, func(t *testing.T) {
			e := startReports(t, options{replicas: c.replicas}, wrenLane("r31", []string{fp, cpaws}))
			l := e.lane("r31")
			l.fakes[0].Always(limited("retry-after-ms", "1500"))
			end := time.Now().Add(4 * cool)
			for time.Now().Before(end) {
				if a := l.ask(call{client: ownClient()}); a.status != 200 || a.header.Get("x-crossdoor-served-by") != "r31-b" {
					t.Errorf("%d by %q", a.status, a.header.Get("x-crossdoor-served-by"))
				}
				waitUntil(t, time.Now().Add(30*time.Millisecond))
			}
			got := l.fakes[0].Requests()
			if len(got) < 2 {
				t.Errorf("%d requests: the target was never asked again", len(got))
			}
			for i := c.replicas; i < len(got); i++ {
				if gap := got[i].Headed.Sub(got[i-c.replicas].Headed); gap < cool {
					t.Errorf("%d requests within %v, want at most %d within %v", c.replicas+1, gap, c.replicas, cool)
				}
			}
		})
	}
}

// TestReport33_StrayFailures: one request in a hundred fails, evenly spread. Each
// fails over, and no count of them piles up.
func TestReport33_StrayFailures(t *testing.T) {
	const requests, clients = 1000, 4
	e := startReports(t, options{}, wrenLane("r33", []string{fp, cpaws}))
	l := e.lane("r33")
	var seen atomic.Int64
	l.fakes[0].Respond(func(r fakeplatform.Request) fakeplatform.Answer {
		if seen.Add(1)%100 == 50 {
			return fakeplatform.Error(503, "Unavailable")
		}
		return goodOf(fp, false)
	})
	var wg sync.WaitGroup
	var moved atomic.Int64
	for range clients {
		wg.Go(func() {
			for range requests / clients {
				a := l.ask(call{})
				if a.status != 200 {
					t.Errorf("status %d", a.status)
				}
				if a.header.Get("x-crossdoor-served-by") == "r33-b" {
					moved.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := len(l.fakes[0].Requests()); n != requests || moved.Load() != requests/100 {
		t.Errorf("%d requests at the first target, %d at the next; want %d and %d", n, moved.Load(), requests, requests/100)
	}
	l.opened(t, 0, "")
	e.metric(0, "breaker_opened_total", "target", "r33-a")
	e.metric(requests/100, "attempts_total", "target", "r33-a", "outcome", "overloaded")
	e.metric(requests/100, "requests_total", "route", "r33", "outcome", "failed_over")
	e.metric(requests-requests/100, "requests_total", "route", "r33", "outcome", "served")
}
