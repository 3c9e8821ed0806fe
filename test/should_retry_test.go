package test

import (
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestShouldRetry: SDKs try most errors twice more. Where everything was tried
// already the platform's own last answer tells them not to; an answer that was
// not tried again for what it is, or that is none of these, goes as it came.
func TestShouldRetry(t *testing.T) {
	t.Parallel()
	says := func(want string) func(testing.TB, *laneRun, *answer, record) {
		return func(t testing.TB, _ *laneRun, a *answer, _ record) {
			t.Helper()
			got := a.header.Values("x-should-retry")
			if (want == "" && len(got) != 0) || (want != "" && (len(got) != 1 || got[0] != want)) {
				t.Errorf("x-should-retry %q, want %q", got, want)
			}
		}
	}
	retry := func(v string) fakeplatform.Field { return fakeplatform.Field{Name: "x-should-retry", Value: v} }
	busy, broken := fakeplatform.Error(529, "Overloaded"), fakeplatform.Error(500, "boom")
	stops := lane{route: []string{"actions: {server_error: stop}"}}
	var flows []flow
	add := func(name string, f flow) {
		f.lane.name = name
		flows = append(flows, both(f)...)
	}
	add("both-failed", flow{scripts: [][]fakeplatform.Answer{{busy}, {broken}}, body: broken.Body(),
		status: 500, served: "b", outcome: "exhausted", attempts: "a overloaded failover, b server_error *", more: says("false")})
	add("only-one", flow{lane: lane{targets: []target{{}}}, scripts: [][]fakeplatform.Answer{{busy}}, body: busy.Body(),
		status: 529, served: "a", outcome: "exhausted", attempts: "a overloaded *", more: says("false")})
	add("no-attempt-left", flow{lane: lane{route: []string{"max_attempts: 1"}}, scripts: [][]fakeplatform.Answer{{broken}}, body: broken.Body(),
		status: 500, served: "a", outcome: "exhausted", attempts: "a server_error *", more: says("false")})
	add("platform-says-true", flow{scripts: [][]fakeplatform.Answer{{busy}, {busy.With(retry("true"))}}, body: busy.Body(),
		status: 529, served: "b", outcome: "exhausted", attempts: "a overloaded failover, b overloaded *", more: says("false")})
	add("stop-by-kind", flow{scripts: [][]fakeplatform.Answer{{fakeplatform.Error(400, "no")}},
		status: 400, served: "a", outcome: "stopped", attempts: "a invalid_request stop", more: says("")})
	add("stop-by-policy", flow{lane: stops, scripts: [][]fakeplatform.Answer{{broken}}, body: broken.Body(),
		status: 500, served: "a", outcome: "stopped", attempts: "a server_error stop", more: says("")})
	add("stop-second", flow{lane: stops, scripts: [][]fakeplatform.Answer{{busy}, {broken}}, body: broken.Body(),
		status: 500, served: "b", outcome: "stopped", attempts: "a overloaded failover, b server_error stop", more: says("")})
	add("stop-platform-says-true", flow{lane: stops, scripts: [][]fakeplatform.Answer{{broken.With(retry("true"))}}, body: broken.Body(),
		status: 500, served: "a", outcome: "stopped", attempts: "a server_error stop", more: says("true")})
	add("served", flow{scripts: [][]fakeplatform.Answer{{busy}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: says("")})
	runFlows(t, options{}, flows...)
}
