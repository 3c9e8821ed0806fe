package test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestReport47_UnsignedThinking: history is not repaired. Whoever refuses it
// first has answered: nothing else is asked and nobody is blamed.
func TestReport47_UnsignedThinking(t *testing.T) {
	history := r1Of(`[{"role":"user","content":"2+2?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"Four."}]},{"role":"user","content":"Sure?"}]`)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(529)
		_, _ = w.Write(busy529.Body()) // the gateway may have left
	}))
	t.Cleanup(down.Close)
	second := wrenLane("r47-second", []string{fp, bedrock, vertex, cpaws})
	second.targets[0].url, second.targets[0].rules = down.URL, nil
	first := wrenLane("r47-first", []string{fp, bedrock, cpaws})
	first.refused, second.refused = true, true
	blameless := func(n int) func(testing.TB, *laneRun, *answer, record) {
		return func(t testing.TB, l *laneRun, a *answer, _ record) {
			if _, message, err := messagesError(a); err != nil || message != "messages.1.content.0.thinking.signature: Field required" {
				t.Errorf("%q (%v)", message, err)
			}
			if got := l.total(); got != 1 {
				t.Errorf("%d requests at platforms", got)
			}
			l.opened(t, n, "")
		}
	}
	runReports(t, options{},
		report{flow: flow{lane: first, call: call{body: history}, status: 400, served: "a", outcome: "stopped", attempts: "a invalid_request stop", more: blameless(0)}},
		report{flow: flow{lane: second, call: call{body: history}, status: 400, served: "b", outcome: "stopped", attempts: "a overloaded failover, b invalid_request stop", more: blameless(1)}},
	)
}
