package test

import (
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestTotalRunsOut: one answer in time, whatever the request was doing.
func TestTotalRunsOut(t *testing.T) {
	silent := fakeplatform.Silence()
	pings := fakeplatform.StreamOf(fakeplatform.Part{Data: startEvent}, fakeplatform.Part{Data: ping, Wait: 50 * time.Millisecond, Repeat: -1})
	end := func(f flow) flow {
		f.status, f.kind, f.outcome = 504, "timeout_error", "exhausted"
		f.min, f.max = 1900*time.Millisecond, 2*time.Second+slack
		f.more = checkCounted
		return f
	}
	stainless := flow{
		lane: lane{name: "stainless", route: []string{"timeouts: {attempt: 1m}"}}, scripts: [][]fakeplatform.Answer{{silent}}, call: call{header: header("x-stainless-timeout", "2")},
		status: 504, kind: "timeout_error", outcome: "exhausted", attempts: "a *", min: 1400 * time.Millisecond, max: 1500*time.Millisecond + slack,
	}
	runFlows(t, options{},
		end(flow{lane: lane{name: "thinking", route: []string{"timeouts: {attempt: 1500ms, total: 2s}"}}, scripts: [][]fakeplatform.Answer{{silent}, {silent}}, attempts: "a timeout failover, b *"}),
		end(flow{lane: lane{name: "thinking-stream", route: []string{"timeouts: {first_token: 1500ms, hold: 1500ms, total: 2s}"}}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{silent}, {silent}}, attempts: "a timeout failover, b *"}),
		end(flow{lane: lane{name: "holding", route: []string{"timeouts: {first_token: 1500ms, hold: 1500ms, total: 2s}"}}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{pings}, {pings}}, attempts: "a timeout failover, b *"}),
		stainless,
		flow{lane: lane{name: "auto-half", route: []string{"timeouts: {total: 3s}"}}, scripts: [][]fakeplatform.Answer{{silent}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a timeout failover, b ok serve", min: 1400 * time.Millisecond, max: 1500*time.Millisecond + slack},
		flow{lane: lane{name: "committed", route: []string{"timeouts: {first_token: 1s, hold: 1s, total: 2s}"}}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{lateStream()}},
			status: 200, served: "a", outcome: "served", attempts: "a ok serve", body: lateStream().Body()},
	)
}

// TestBackoffDoesNotOutliveTheTotal: a wait that does not fit is not begun; what
// the platform said last, or the timeout, comes in time.
func TestBackoffDoesNotOutliveTheTotal(t *testing.T) {
	e := start(t, options{}, lane{name: "waiting", targets: []target{{}}, route: []string{"same_target_retries: 9", "max_attempts: 20", "actions: {overloaded: retry}", "backoff: {base: 2s, max: 60s}", "timeouts: {total: 2s}"}})
	l := e.lane("waiting")
	l.fakes[0].Always(fakeplatform.Error(529, "Overloaded"))
	a := l.send(call{})
	if a.headers > 2*time.Second+slack {
		t.Errorf("the answer came after %v", a.headers)
	}
	kind, _, err := messagesError(a)
	expected := a.status == 529 && kind == "overloaded_error" || a.status == 504 && kind == "timeout_error"
	if err != nil || !expected {
		t.Errorf("got %d %q (%v)", a.status, kind, err)
	}
	if r := l.nth(1); r.Outcome != "exhausted" || r.Status != a.status || len(r.Attempts) != len(l.fakes[0].Requests()) {
		t.Errorf("record %s", r.line)
	}
}

// lateStream commits at once and ends after the total of its route.
func lateStream() fakeplatform.Answer {
	parts := []fakeplatform.Part{{Data: startEvent}, {Data: deltaEvent}, {Data: deltaEvent, Wait: 100 * time.Millisecond, Repeat: 30}}
	return fakeplatform.StreamOf(append(parts, partsOf(wholeTail)...)...)
}

func checkCounted(t testing.TB, _ *laneRun, _ *answer, r record) {
	t.Helper()
	if r.MS < 1900 || r.MS > 4000 {
		t.Errorf("ms %v", r.MS)
	}
}

// TestTimersAreSharp: attempt, first_token and total hold within 250 ms. These
// run one after the other, with nothing beside them.
func TestTimersAreSharp(t *testing.T) {
	e := start(t, options{},
		lane{name: "attempt", targets: two(), route: []string{"timeouts: {attempt: 800ms}"}},
		lane{name: "token", targets: two(), route: []string{"timeouts: {first_token: 800ms, hold: 800ms}"}},
		lane{name: "total", targets: two(), route: []string{"timeouts: {attempt: 700ms, total: 800ms}"}},
		lane{name: "refused", targets: []target{{url: refusing(t)}, {}}},
	)
	for _, c := range []struct {
		name     string
		stream   bool
		answer   fakeplatform.Answer
		lo, hi   time.Duration
		at       int // the target that the answer is for
		noScript bool
	}{
		{"attempt", false, fakeplatform.Silence(), 800 * time.Millisecond, 1050 * time.Millisecond, 0, false},
		{"token", true, fakeplatform.Stream(startEvent).Ending(fakeplatform.EndStall), 800 * time.Millisecond, 1050 * time.Millisecond, 0, false},
		{"total", false, fakeplatform.Silence(), 800 * time.Millisecond, 1050 * time.Millisecond, 0, false},
		{"refused", false, fakeplatform.Answer{}, 0, 250 * time.Millisecond, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			shared := e.lane(c.name)
			if !c.noScript {
				shared.fakes[0].Script(c.answer)
			}
			if c.name == "total" {
				shared.fakes[1].Script(c.answer)
			}
			l := shared.in(t)
			a := l.send(call{stream: c.stream})
			if a.headers < c.lo || a.headers > c.hi {
				t.Errorf("%d came after %v, want %v to %v", a.status, a.headers, c.lo, c.hi)
			}
		})
	}
}
