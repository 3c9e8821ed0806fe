package test

import (
	"math"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

func TestSameTargetRetries(t *testing.T) {
	boom := fakeplatform.Error(500, "boom")
	limited := func(after string) fakeplatform.Answer {
		return fakeplatform.Error(429, "slow down", fakeplatform.Field{Name: "retry-after", Value: after})
	}
	twice := []string{"same_target_retries: 2", "actions: {server_error: retry, connection: retry}", "backoff: {base: 200ms, max: 300ms}"}
	var flows []flow
	add := func(f flow) { flows = append(flows, both(f)...) }
	add(flow{lane: lane{name: "then-next", route: twice}, scripts: [][]fakeplatform.Answer{{boom, boom, boom}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a server_error retry, a server_error retry, a server_error failover, b ok serve", more: checkBackoff(200*time.Millisecond, 300*time.Millisecond)})
	add(flow{lane: lane{name: "helps", route: twice}, scripts: [][]fakeplatform.Answer{{boom}},
		status: 200, served: "a", outcome: "served", attempts: "a server_error retry, a ok serve", more: checkBackoff(200*time.Millisecond, 300*time.Millisecond)})
	add(flow{lane: lane{name: "resets", route: twice}, scripts: [][]fakeplatform.Answer{{fakeplatform.ResetBeforeHeaders(), fakeplatform.ResetBeforeHeaders()}},
		status: 200, served: "a", outcome: "served", attempts: "a connection retry, a connection retry, a ok serve"})
	add(flow{lane: lane{name: "other-kind", route: twice}, scripts: [][]fakeplatform.Answer{{boom, fakeplatform.Error(529, "x")}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a server_error retry, a overloaded failover, b ok serve"})
	add(flow{lane: lane{name: "waits", route: []string{"same_target_retries: 1", "actions: {rate_limit: retry}"}}, scripts: [][]fakeplatform.Answer{{limited("1")}},
		status: 200, served: "a", outcome: "served", attempts: "a rate_limit retry, a ok serve", min: time.Second, max: time.Second + slack,
		more: func(t testing.TB, _ *laneRun, _ *answer, r record) {
			if w := r.Attempts[0].WaitedMS + r.Attempts[1].WaitedMS; w < 1000 {
				t.Errorf("waited_ms %v", w)
			}
		}})
	add(flow{lane: lane{name: "too-long", route: []string{"same_target_retries: 1", "actions: {rate_limit: retry}", "retry_after: {max: 2s}"}}, scripts: [][]fakeplatform.Answer{{limited("3")}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a rate_limit failover, b ok serve", max: slack})
	add(flow{lane: lane{name: "past-total", route: []string{"same_target_retries: 1", "actions: {rate_limit: retry}", "timeouts: {total: 3s}"}}, scripts: [][]fakeplatform.Answer{{limited("4")}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a rate_limit failover, b ok serve", max: slack})
	runFlows(t, options{}, flows...)
}

// checkBackoff: full jitter over base, 2·base, ... up to the limit.
func checkBackoff(base, limit time.Duration) func(testing.TB, *laneRun, *answer, record) {
	return func(t testing.TB, _ *laneRun, _ *answer, r record) {
		t.Helper()
		n := 0
		for i, at := range r.Attempts {
			if at.Decision != "retry" {
				continue
			}
			most := min(float64(limit.Milliseconds()), float64(base.Milliseconds())*math.Pow(2, float64(n)))
			gap := r.Attempts[i+1].StartMS - at.StartMS - at.MS
			if gap > most+300 {
				t.Errorf("retry %d began %vms after the failure, want at most %v", n+1, gap, most)
			}
			n++
		}
	}
}

func TestChainShapes(t *testing.T) {
	busy := fakeplatform.Error(529, "Overloaded")
	var flows []flow
	add := func(f flow) { flows = append(flows, both(f)...) }
	add(flow{lane: lane{name: "max-attempts", targets: append(two(), target{}), route: []string{"max_attempts: 2"}}, scripts: [][]fakeplatform.Answer{{busy}, {busy}},
		status: 529, served: "b", outcome: "exhausted", attempts: "a overloaded failover, b overloaded *", body: busy.Body()})
	add(flow{lane: lane{name: "one-attempt", route: []string{"max_attempts: 1"}}, scripts: [][]fakeplatform.Answer{{busy}},
		status: 529, served: "a", outcome: "exhausted", attempts: "a overloaded *", body: busy.Body()})
	add(flow{lane: lane{name: "other-model", targets: []target{{}}, chain: "[@a, {target: @a, model: claude-haiku-5-5}]"}, scripts: [][]fakeplatform.Answer{{busy}},
		status: 200, served: "a", attempts: "a overloaded failover, a ok serve", outcome: "failed_over", more: checkOtherModel})
	add(flow{lane: lane{name: "aba", chain: "[@a, @b, @a]"}, scripts: [][]fakeplatform.Answer{{busy}, {busy}},
		status: 200, served: "a", outcome: "failed_over", attempts: "a overloaded failover, b overloaded failover, a ok serve", more: checkABA})
	runFlows(t, options{}, flows...)
}

func checkOtherModel(t testing.TB, l *laneRun, a *answer, r record) {
	t.Helper()
	got := l.fakes[0].Requests()
	if len(got) != 2 || got[0].Model != l.model() || got[1].Model != "claude-haiku-5-5" {
		t.Fatalf("models at the platform: %s", r.line)
	}
	if m := a.header.Get("x-crossdoor-model"); m != "claude-haiku-5-5" {
		t.Errorf("x-crossdoor-model %q", m)
	}
	want := replaceModel(goodBody(l.model(), got[0].Stream, 0), l.model(), "claude-haiku-5-5")
	if string(got[1].Body) != string(want) {
		t.Errorf("second body %q, want %q", got[1].Body, want)
	}
}

func checkABA(t testing.TB, l *laneRun, _ *answer, _ record) {
	t.Helper()
	a, b := l.fakes[0].Requests(), l.fakes[1].Requests()
	if len(a) != 2 || len(b) != 1 {
		t.Fatalf("%d and %d requests", len(a), len(b))
	}
	// Keys are checked by the platforms; what else differs must go back too.
	if sameHeaders(a[0], a[1]) != "" {
		t.Errorf("the third attempt differs from the first: %s", sameHeaders(a[0], a[1]))
	}
	if b[0].Get("anthropic-workspace-id") != l.workspace() || a[1].Count("anthropic-workspace-id") != 0 {
		t.Error("the workspace header is not where it belongs")
	}
	if a[0].BodySHA256 != a[1].BodySHA256 {
		t.Error("the bodies differ")
	}
}
