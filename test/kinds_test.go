package test

import (
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// kindCase is one answer of the first target and what it comes to.
type kindCase struct {
	name   string
	answer fakeplatform.Answer
	kind   string
	action string
	scope  string // breaker scope that opens at once; "" is none
	first  string // platform of the first target
}

func (c kindCase) flow() flow {
	f := flow{lane: lane{name: c.name, targets: two()}, scripts: [][]fakeplatform.Answer{{c.answer}}}
	if c.first != "" {
		f.lane.targets[0].platform = c.first
		f.lane.targets[0].yaml = nil
		if c.first == fakeplatform.Foundry {
			f.lane.targets[0].yaml = []string{"models: {\"*\": dep}"}
		}
	}
	f.status, f.served, f.outcome, f.attempts = 200, "b", "failed_over", "a "+c.kind+" failover, b ok serve"
	if c.action == "stop" {
		f.status, f.served, f.outcome, f.attempts = c.answer.Status, "a", "stopped", "a "+c.kind+" stop"
		f.body = c.answer.Body()
	}
	f.more = func(t testing.TB, l *laneRun, a *answer, r record) { c.check(t, l, r) }
	return f
}

func (c kindCase) check(t testing.TB, l *laneRun, r record) {
	t.Helper()
	for _, scope := range []string{"target", "model", "key", "key_model"} {
		want := 0.0
		if scope == c.scope {
			want = 2
		}
		state, err := l.e.breaker(scope, l.targetName(0))
		if err != nil || max(state, 0) != want {
			t.Errorf("breaker of scope %s: %v (%v), want %v", scope, state, err, want)
		}
	}
	if c.kind == "unsupported_feature" {
		l.e.metric(1, "rewrite_refused_total", "target", l.targetName(0))
	}
	switch c.answer.Status {
	case 400, 404, 409, 413, 422:
		if e := r.Attempts[0].Error; strings.Contains(e, "tell-tale") {
			t.Errorf("the trail quotes the message of a %d: %q", c.answer.Status, e)
		}
	}
}

func TestKinds(t *testing.T) {
	e, of := fakeplatform.Error, fakeplatform.ErrorOf
	field := func(n, v string) fakeplatform.Field { return fakeplatform.Field{Name: n, Value: v} }
	cases := []kindCase{
		{"k400", e(400, "messages.0: tell-tale is wrong"), "invalid_request", "stop", "", ""},
		{"k400-credit", e(400, "Your credit balance is too low to access the API"), "billing_quota", "failover", "key", ""},
		{"k400-limits", e(400, "You have reached your specified API usage limits. You will regain access"), "billing_quota", "failover", "key", ""},
		{"k400-long-prompt", e(400, "prompt is too long: 250000 tokens > 200000 maximum"), "too_large", "stop", "", ""},
		{"k400-extra-original", e(400, "foo: Extra inputs are not permitted"), "invalid_request", "stop", "", ""},
		{"k400-extra-aws", e(400, "foo: Extra inputs are not permitted"), "unsupported_feature", "failover", "", fakeplatform.ClaudeOnAWS},
		{"k400-beta-foundry", e(400, "Unexpected value(s) `x` for the `anthropic-beta` header"), "unsupported_feature", "failover", "", fakeplatform.Foundry},
		{"k401", e(401, "invalid x-api-key"), "credential", "failover", "key", ""},
		{"k402", e(402, "payment required"), "billing_quota", "failover", "key", ""},
		{"k403", e(403, "Your API key does not have permission"), "permission", "failover", "model", ""},
		{"k403-profile", of(403, "permission_error", "user profile", "user_profile_not_allowed"), "permission", "failover", "", ""},
		{"k403-html", fakeplatform.HTML(403), "server_error", "failover", "", ""},
		{"k404-model", e(404, "model: k404-model"), "model_unavailable", "failover", "model", ""},
		{"k404-other", e(404, "tell-tale not found"), "invalid_request", "stop", "", ""},
		{"k408", e(408, "timeout"), "timeout", "failover", "", ""},
		{"k409", e(409, "tell-tale conflict"), "invalid_request", "stop", "", ""},
		{"k413", e(413, "Request exceeds the maximum size"), "too_large", "stop", "", ""},
		{"k413-html", fakeplatform.HTML(413), "too_large", "stop", "", ""},
		{"k422", e(422, "tell-tale unprocessable"), "invalid_request", "stop", "", ""},
		{"k424", e(424, "failed dependency"), "server_error", "failover", "", ""},
		{"k429-cap-code", of(429, "rate_limit_error", "limit", "enforced_spend_limit_reached"), "billing_quota", "failover", "key", ""},
		{"k429-extra-usage", e(429, "Extra usage is required for long context requests."), "entitlement", "failover", "", ""},
		{"k429-no-retry", e(429, "no", field("x-should-retry", "false")), "entitlement", "failover", "", ""},
		{"k504", e(504, "timed out"), "timeout", "failover", "", ""},
		{"k200-html", fakeplatform.HTML(200), "server_error", "failover", "", ""},
		{"kf401", fakeplatform.AzureError(401, "401", "Access denied due to invalid subscription key"), "credential", "failover", "key", fakeplatform.Foundry},
		{"kf403", fakeplatform.AzureError(403, "PermissionDenied", "The principal lacks the required data action"), "permission", "failover", "model", fakeplatform.Foundry},
		{"kf404", fakeplatform.AzureError(404, "DeploymentNotFound", "The API deployment for this resource does not exist"), "model_unavailable", "failover", "model", fakeplatform.Foundry},
		{"kf429", fakeplatform.AzureError(429, "429", "Requests have exceeded the rate limit", field("retry-after", "9")), "rate_limit", "failover", "key_model", fakeplatform.Foundry},
	}
	var flows []flow
	for _, c := range cases {
		flows = append(flows, c.flow())
	}
	runFlows(t, options{}, flows...)
}

func TestKindsOnStreams(t *testing.T) {
	e := fakeplatform.Error
	var flows []flow
	for _, c := range []kindCase{
		{"s400", e(400, "messages.0: tell-tale is wrong"), "invalid_request", "stop", "", ""},
		{"s401", e(401, "invalid x-api-key"), "credential", "failover", "key", ""},
		{"s403", e(403, "Your API key does not have permission"), "permission", "failover", "model", ""},
		{"s404-model", e(404, "model: s404-model"), "model_unavailable", "failover", "model", ""},
		{"s413", e(413, "Request exceeds the maximum size"), "too_large", "stop", "", ""},
		{"s422", e(422, "tell-tale unprocessable"), "invalid_request", "stop", "", ""},
	} {
		f := c.flow()
		f.call.stream = true
		flows = append(flows, f)
	}
	runFlows(t, options{}, flows...)
}

func TestActions(t *testing.T) {
	overloaded, bad := fakeplatform.Error(529, "Overloaded"), fakeplatform.Error(400, "bad")
	unauthorized := fakeplatform.Error(401, "expired")
	runFlows(t, options{},
		flow{lane: lane{name: "overloaded-stop", route: []string{"actions: {overloaded: stop}"}}, scripts: [][]fakeplatform.Answer{{overloaded}},
			status: 529, served: "a", outcome: "stopped", attempts: "a overloaded stop", body: overloaded.Body()},
		flow{lane: lane{name: "invalid-failover", route: []string{"actions: {invalid_request: failover}"}}, scripts: [][]fakeplatform.Answer{{bad}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a invalid_request failover, b ok serve"},
		flow{lane: lane{name: "stop-at-second"}, scripts: [][]fakeplatform.Answer{{overloaded}, {bad}},
			status: 400, served: "b", outcome: "stopped", attempts: "a overloaded failover, b invalid_request stop", body: bad.Body()},
		flow{lane: lane{name: "all-fail"}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(500, "one")}, {fakeplatform.Error(500, "two")}},
			status: 500, served: "b", outcome: "exhausted", attempts: "a server_error failover, b server_error *", body: fakeplatform.Error(500, "two").Body()},
		flow{lane: lane{name: "passthrough", targets: []target{{keyYAML: "[passthrough]", rules: &fakeplatform.Rules{BearerToo: true}}, {keyYAML: "[passthrough]", rules: &fakeplatform.Rules{BearerToo: true}}}},
			scripts: [][]fakeplatform.Answer{{unauthorized}}, status: 401, served: "a", outcome: "stopped", attempts: "a credential stop", body: unauthorized.Body(),
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				if got := l.fakes[0].Requests()[0].Get("x-api-key"); got != "sk-client-passthrough" {
					t.Errorf("the client's own credential did not arrive: %q", got)
				}
			}},
		flow{lane: lane{name: "next-key", targets: []target{{keys: 2}}}, scripts: [][]fakeplatform.Answer{{unauthorized}},
			status: 200, served: "a", outcome: "served", attempts: "a credential *",
			more: func(t testing.TB, l *laneRun, _ *answer, r record) {
				got := l.fakes[0].Requests()
				if len(got) != 2 || got[0].Get("x-api-key") == got[1].Get("x-api-key") {
					t.Errorf("not two keys of one target: %s", r.line)
				}
			}},
	)
}

func TestRefusalIsNoOutage(t *testing.T) {
	refused := fakeplatform.Raw(200, "application/json", []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":0}}`))
	stream := fakeplatform.Stream(fakeplatform.MessageStart("m", "m"), fakeplatform.MessageDelta("refusal"), fakeplatform.MessageStop())
	e := start(t, options{}, lane{name: "json", targets: two()}, lane{name: "sse", targets: two()})
	for _, c := range []struct {
		name   string
		answer fakeplatform.Answer
	}{{"json", refused}, {"sse", stream}} {
		t.Run(c.name, func(t *testing.T) {
			shared := e.lane(c.name)
			l := shared.in(t)
			l.fakes[0].Script(c.answer)
			a := l.send(call{stream: c.name == "sse"})
			r := l.nth(1)
			if a.status != 200 || string(a.body) != string(c.answer.Body()) || len(r.Attempts) != 1 {
				t.Fatalf("got %d %.200s after %q", a.status, a.body, r.summary())
			}
			if r.Attempts[0].Outcome != "moderation" || r.Stop != "refusal" {
				t.Errorf("outcome %q, stop_reason %q", r.Attempts[0].Outcome, r.Stop)
			}
		})
	}
}
