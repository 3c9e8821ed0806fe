package test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// busy529 is report 1's answer to the byte.
var busy529 = fakeplatform.Raw(529, "application/json", []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_wren529"}`))

// TestReport01_OverloadedFailsOver: a 529 is a failure of its own kind, leads on,
// and counts against its target.
func TestReport01_OverloadedFailsOver(t *testing.T) {
	chain := []string{fp, bedrock, vertex, foundry, cpaws}
	one := report{flow: flow{
		lane: wrenLane("r01", chain), scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
	}}
	// The configured number of attempts on the same target, where one wants them.
	retried := report{flow: flow{
		lane:    wrenLane("r01-retries", chain, "same_target_retries: 1", "actions: {overloaded: retry}", "backoff: {base: 1ms, max: 1ms}"),
		scripts: [][]fakeplatform.Answer{{busy529, busy529}},
		status:  200, served: "b", outcome: "failed_over", attempts: "a overloaded retry, a overloaded failover, b ok serve",
	}}
	always := report{flow: flow{
		lane: wrenLane("r01-always", chain), prepare: func(l *laneRun) { l.fakes[0].Always(busy529) },
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			for range 5 {
				if a := l.ask(call{}); a.status != 200 {
					t.Errorf("status %d", a.status)
				}
			}
			if n := len(l.fakes[0].Requests()); n != 5 {
				t.Errorf("%d requests at a target that answered 529 five times, want 5", n)
			}
			l.opened(t, 0, "model")
			l.e.metric(1, "breaker_opened_total", "target", "r01-always-a", "reason", "overloaded")
		},
	}}
	signed := one
	signed.lane = wrenLane("r01-signed", []string{fp, bedrock, cpaws})
	signed.lane.targets[1].sigv4 = true
	runReports(t, options{}, append(streamed(one), retried, always, signed)...)
}

// TestReport17_ContextWindowStops: a prompt that is too long is the client's
// affair: one request, the platform's own answer, nobody is blamed.
func TestReport17_ContextWindowStops(t *testing.T) {
	long := fakeplatform.Raw(400, "application/json", []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 214113 tokens > 200000 maximum"}}`))
	output := fakeplatform.Error(400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again")
	stop := func(name string, a fakeplatform.Answer, chain ...string) report {
		return report{flow: flow{
			lane: wrenLane(name, chain, "same_target_retries: 2", "actions: {server_error: retry, overloaded: retry}"), scripts: [][]fakeplatform.Answer{{a}},
			status: a.Status, served: "a", outcome: "stopped", attempts: "a too_large stop", body: a.Body(),
			more: func(t testing.TB, l *laneRun, a *answer, r record) {
				if l.total() != 1 {
					t.Errorf("%d requests", l.total())
				}
				if got := a.header.Get("request-id"); got != "req_fake_"+chain[0]+"_1" {
					t.Errorf("request-id %q is not the platform's", got)
				}
				if strings.Contains(r.line, "214113") { // of a 400 only its type and path are kept
					t.Errorf("the trail repeats the message of a 400: %s", r.line)
				}
				l.opened(t, 0, "")
			},
		}}
	}
	reports := streamed(stop("r17", long, fp, foundry, cpaws))
	// Bedrock has other words and no schema of the client's: the same, translated.
	aws := stop("r17-bedrock", fakeplatform.BedrockError(400, "", "prompt is too long: 214113 tokens > 200000 maximum"), bedrock, fp)
	aws.body, aws.more = nil, func(t testing.TB, l *laneRun, a *answer, _ record) {
		if kind, message, err := messagesError(a); err != nil || kind != "invalid_request_error" || message != "prompt is too long: 214113 tokens > 200000 maximum" || l.total() != 1 {
			t.Errorf("%s %q (%v) after %d requests", kind, message, err, l.total())
		}
		l.opened(t, 0, "")
	}
	reports = append(reports, aws, stop("r17-output", output, fp, foundry, cpaws), stop("r17-foundry", long, foundry, fp), stop("r17-cpaws", long, cpaws, fp))
	runReports(t, options{}, reports...)
}

// emptyWallet is report 19's message.
const emptyWallet = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."

// TestReport19_EmptyWalletFailsOver: what the error object says counts, and only
// it. The key stays away for the long window.
func TestReport19_EmptyWalletFailsOver(t *testing.T) {
	chain := []string{fp, foundry, cpaws}
	wallet := fakeplatform.Error(400, emptyWallet)
	paid := report{flow: flow{
		lane: wrenLane("r19", chain), scripts: [][]fakeplatform.Answer{{wallet}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a billing_quota failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			l.opened(t, 0, "key")
			l.e.metric(1, "breaker_opened_total", "target", l.targetName(0), "reason", "billing_quota")
			// The short window (10ms here) is over with the first answer.
			if got := l.ask(call{}).header.Get("x-crossdoor-served-by"); got != l.targetName(1) || len(l.fakes[0].Requests()) != 1 {
				t.Errorf("the next request was served by %s", got)
			}
		},
	}}
	quoting := func(name string, a fakeplatform.Answer) report {
		return report{flow: flow{
			lane: wrenLane(name, chain), scripts: [][]fakeplatform.Answer{{a}},
			call:   call{body: r1Of(`[{"role":"user","content":"What does '` + emptyWallet + `' mean?"}]`)},
			status: 400, served: "a", outcome: "stopped", attempts: "a invalid_request stop", body: a.Body(),
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) { l.opened(t, 0, "") },
		}}
	}
	served := report{flow: flow{
		lane: wrenLane("r19-served", chain), call: call{body: r1Of(`[{"role":"user","content":"What does '` + emptyWallet + `' mean?"}]`)},
		scripts: [][]fakeplatform.Answer{{fakeplatform.Message("msg_1", wren, emptyWallet)}},
		status:  200, served: "a", outcome: "served", attempts: "a ok serve",
	}}
	reports := append(streamed(paid), served,
		quoting("r19-plain", fakeplatform.Error(400, "messages: roles must alternate")),
		quoting("r19-quoted", fakeplatform.Error(400, "messages.0.content: '"+emptyWallet+"' is not a list")),
		quoting("r19-echo", fakeplatform.Raw(400, "application/json", []byte(`{"type":"error","error":{"type":"invalid_request_error","message":"no"},"input":"`+emptyWallet+`"}`))),
	)
	runReports(t, options{top: []string{"breaker: {window: 10ms, max_window: 10ms, long_window: 1m}"}}, reports...)
}

// TestReport21_EntitlementIsNoRateLimit: a 429 that no waiting cures is never
// tried again on its target; it fails over unless the route says stop, blames
// nothing, and is what the client gets when every target says the same.
func TestReport21_EntitlementIsNoRateLimit(t *testing.T) {
	gate := fakeplatform.Error(429, "Extra usage is required for long context requests.", fakeplatform.Field{Name: "x-should-retry", Value: "false"})
	other := fakeplatform.Error(429, "This feature is not in your plan.", fakeplatform.Field{Name: "x-should-retry", Value: "false"})
	long := call{header: header("Anthropic-Beta", "context-1m-2025-08-07")}
	lane := func(name, action string) lane {
		return wrenLane(name, []string{fp, foundry, cpaws}, "same_target_retries: 3", "actions: {rate_limit: retry, entitlement: "+action+"}")
	}
	blameless := func(t testing.TB, l *laneRun, a *answer, r record) {
		for i := range l.targets {
			l.opened(t, i, "")
		}
		if a.status == 429 && (a.header.Get("retry-after") != "" || a.header.Get("x-should-retry") != "false") {
			t.Errorf("headers %v", a.header)
		}
	}
	all := [][]fakeplatform.Answer{{gate}, {gate}, {gate}}
	runReports(t, options{},
		report{flow: flow{lane: lane("r21", "failover"), call: long, scripts: [][]fakeplatform.Answer{{gate}}, status: 200, served: "b", outcome: "failed_over", attempts: "a entitlement failover, b ok serve", more: blameless}},
		report{flow: flow{lane: lane("r21-other", "failover"), call: long, scripts: [][]fakeplatform.Answer{{other}}, status: 200, served: "b", outcome: "failed_over", attempts: "a entitlement failover, b ok serve", more: blameless}},
		report{flow: flow{lane: lane("r21-stop", "stop"), call: long, scripts: all, status: 429, served: "a", outcome: "stopped", attempts: "a entitlement stop", body: gate.Body(), more: blameless}},
		report{flow: flow{lane: lane("r21-all", "failover"), call: long, scripts: all, status: 429, served: "c", outcome: "exhausted", attempts: "a entitlement failover, b entitlement failover, c entitlement *", body: gate.Body(), more: blameless}},
	)
}

// TestReport53_ServedBy: success after a failover, a final error, Crossdoor's own
// answer and a stream all say who answered; a platform's headers of these names
// do not count. The body's `model` is the platform's own: it is passed on.
func TestReport53_ServedBy(t *testing.T) {
	chain := []string{fp, foundry}
	lies := []fakeplatform.Field{
		{Name: "x-crossdoor-served-by", Value: "evil"}, {Name: "x-crossdoor-attempts", Value: "77"}, {Name: "x-crossdoor-model", Value: "evil"},
		{Name: "x-crossdoor-trail", Value: "evil ok 1ms"}, {Name: "x-crossdoor-degraded", Value: "model"}, {Name: "x-crossdoor-request-id", Value: "evil"},
	}
	said := func(model, trail string) func(testing.TB, *laneRun, *answer, record) {
		return func(t testing.TB, l *laneRun, a *answer, r record) {
			t.Helper()
			if got := a.header.Get("x-crossdoor-model"); got != model {
				t.Errorf("x-crossdoor-model %q, want %q", got, model)
			}
			for name, v := range a.header {
				if strings.HasPrefix(name, "X-Crossdoor-") && (len(v) != 1 || strings.Contains(v[0], "evil") || v[0] == "77") {
					t.Errorf("%s: %q", name, v)
				}
			}
			if got := trailWords(a.header.Get("x-crossdoor-trail")); got != strings.ReplaceAll(trail, "@", l.name+"-") {
				t.Errorf("x-crossdoor-trail %q", got)
			}
			if v := a.header.Values("x-crossdoor-degraded"); len(v) != 0 || len(r.Degraded) != 0 {
				t.Errorf("degraded %v, %v", v, r.Degraded)
			}
		}
	}
	bad := fakeplatform.Error(400, "messages: roles must alternate").With(lies...)
	other := goodOf(foundry, false).With(lies...)
	other.Parts = []fakeplatform.Part{{Data: bytes.ReplaceAll(other.Body(), []byte("wren-prod-eu"), []byte("claude-wren-1-20260101"))}}
	ejected := wrenLane("r53-ejected", chain)
	runReports(t, options{},
		report{flow: flow{lane: wrenLane("r53-moved", chain), scripts: [][]fakeplatform.Answer{{busy529.With(lies...)}, {other}}, status: 200, served: "b", outcome: "failed_over",
			attempts: "a overloaded failover, b ok serve", body: other.Body(), more: said("wren-prod-eu", "@a overloaded, @b ok")}},
		report{flow: flow{lane: wrenLane("r53-error", chain), scripts: [][]fakeplatform.Answer{{bad}}, status: 400, served: "a", outcome: "stopped",
			attempts: "a invalid_request stop", body: bad.Body(), more: said(wren, "@a invalid_request")}},
		report{flow: flow{lane: wrenLane("r53-stream", chain), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{goodOf(fp, true).With(lies...)}}, status: 200, served: "a", outcome: "served",
			attempts: "a ok serve", ends: []string{"a ok"}, body: goodOf(fp, true).Body(), more: said(wren, "@a ok")}},
		report{flow: flow{lane: ejected, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(401, "x")}, {fakeplatform.Error(401, "x")}}, status: 401, served: "b", outcome: "exhausted",
			attempts: "a credential failover, b credential *", more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				a := l.ask(call{})
				said("", "@a skipped:ejected, @b skipped:ejected")(t, l, a, l.byID(a.id()))
				if kind, _, err := messagesError(a); a.status != 529 || kind != "overloaded_error" || err != nil {
					t.Errorf("all ejected: %d %s %v", a.status, kind, err)
				}
				if a.header.Get("x-crossdoor-attempts") != "0" || a.header.Get("x-crossdoor-served-by") != "" || !ulidForm.MatchString(a.id()) {
					t.Errorf("headers %v", a.header)
				}
			}}},
	)
}
