package test

import (
	"slices"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestReport63_TimeoutsDoNotAddUp: a target that never answers costs its attempt
// once, and nothing takes longer than the total. Times are a fifth of the
// report's.
func TestReport63_TimeoutsDoNotAddUp(t *testing.T) {
	limits := "timeouts: {attempt: 1s, first_token: 1s, hold: 1s, total: 2400ms}"
	silent := fakeplatform.Silence()
	answering := goodOf(cpaws, false).After(200 * time.Millisecond)
	chain := []string{fp, cpaws}
	// With the retry that a route may ask for, two attempts of 1s come before.
	retries := []string{"same_target_retries: 1", "actions: {timeout: retry}", "backoff: {base: 1ms, max: 1ms}"}
	patient := append(slices.Clip(retries), "timeouts: {attempt: 1s, first_token: 1s, hold: 1s, total: 3500ms}")
	retry := append(slices.Clip(retries), limits)
	one := report{flow: flow{
		// A timeout fails over at once unless the route says otherwise.
		lane: wrenLane("r63", chain, limits, "same_target_retries: 1"), scripts: [][]fakeplatform.Answer{{silent, silent, silent}, {answering}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a timeout failover, b ok serve", min: 1190 * time.Millisecond, max: 1200*time.Millisecond + slack,
	}}
	stream := one
	stream.lane = wrenLane("r63-stream", chain, limits)
	stream.call.stream = true
	stream.scripts = [][]fakeplatform.Answer{{silent}, {goodOf(cpaws, true).After(200 * time.Millisecond)}}
	twice := report{flow: flow{
		lane: wrenLane("r63-retry", chain, patient...), scripts: [][]fakeplatform.Answer{{silent, silent, silent}, {answering}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a timeout retry, a timeout failover, b ok serve", min: 2190 * time.Millisecond, max: 3500*time.Millisecond + slack,
	}}
	never := report{flow: flow{
		// The third attempt has 400 ms left: it ends with the total.
		lane: wrenLane("r63-never", chain, retry...), scripts: [][]fakeplatform.Answer{{silent, silent, silent}, {silent, silent}},
		status: 504, kind: "timeout_error", outcome: "exhausted", attempts: "a timeout retry, a timeout failover, b *", min: 2300 * time.Millisecond, max: 2400*time.Millisecond + slack,
	}}
	client := report{flow: flow{
		// The client's own patience shortens the total (2s less 500ms).
		lane: wrenLane("r63-client", chain, retry...), call: call{header: header("X-Stainless-Timeout", "2")}, scripts: [][]fakeplatform.Answer{{silent, silent, silent}, {silent}},
		status: 504, kind: "timeout_error", outcome: "exhausted", attempts: "a timeout retry, a *", min: 1400 * time.Millisecond, max: 1500*time.Millisecond + slack,
	}}
	runReports(t, options{}, one, stream, twice, never, client)
}

// TestReport65_SlowFailuresAreBounded: five platforms that each fail late. What
// comes first ends it: the total, or the number of attempts. Then the client has
// the last platform's own answer; when the total ran out, a 504.
func TestReport65_SlowFailuresAreBounded(t *testing.T) {
	chain := []string{fp, foundry, cpaws, fp, foundry}
	late := func(d time.Duration) [][]fakeplatform.Answer {
		var all [][]fakeplatform.Answer
		for range chain {
			all = append(all, []fakeplatform.Answer{fakeplatform.Error(500, "boom").After(d)})
		}
		return all
	}
	times := report{flow: flow{
		lane: wrenLane("r65-total", chain, "max_attempts: 3", "timeouts: {attempt: 1400ms, first_token: 1400ms, hold: 1400ms, total: 1500ms}"), scripts: late(time.Second),
		status: 504, kind: "timeout_error", outcome: "exhausted", attempts: "a server_error failover, b *", min: 1400 * time.Millisecond, max: 1500*time.Millisecond + slack,
		more: atMost(2),
	}}
	attempts := report{flow: flow{
		lane: wrenLane("r65-attempts", chain, "max_attempts: 3", "timeouts: {total: 20s}"), scripts: late(300 * time.Millisecond),
		status: 500, served: "c", outcome: "exhausted", attempts: "a server_error failover, b server_error failover, c server_error *", body: fakeplatform.Error(500, "boom").Body(),
		min: 900 * time.Millisecond, max: 900*time.Millisecond + slack, more: atMost(3),
	}}
	// Retries on the same target count as attempts too.
	retries := report{flow: flow{
		lane:    wrenLane("r65-retries", chain, "max_attempts: 3", "same_target_retries: 5", "actions: {server_error: retry}", "backoff: {base: 1ms, max: 1ms}"),
		prepare: func(l *laneRun) { l.fakes[0].Always(fakeplatform.Error(500, "boom")) },
		status:  500, served: "a", outcome: "exhausted", attempts: "a server_error retry, a server_error retry, a server_error *", more: atMost(3),
	}}
	// The most telling answer: of a 429 and a broken connection the 429.
	telling := report{flow: flow{
		lane: wrenLane("r65-telling", chain, "max_attempts: 2"), scripts: [][]fakeplatform.Answer{{limited("retry-after", "7")}, {fakeplatform.ResetBeforeHeaders()}},
		status: 429, served: "a", outcome: "exhausted", attempts: "a rate_limit failover, b connection *", body: limited().Body(), more: atMost(2),
	}}
	runReports(t, options{}, times, attempts, retries, telling)
}

// atMost checks the number of requests at all platforms.
func atMost(n int) func(testing.TB, *laneRun, *answer, record) {
	return func(t testing.TB, l *laneRun, _ *answer, _ record) {
		t.Helper()
		if got := l.total(); got != n {
			t.Errorf("%d requests at platforms, want %d", got, n)
		}
	}
}
