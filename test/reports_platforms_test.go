package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestReport13_ExceptionFrames: an exception in a 200 of AWS's framing is what
// its name says: a failed attempt before the first content, an error event of the
// client's schema after it.
func TestReport13_ExceptionFrames(t *testing.T) {
	chain := []string{bedrock, cpaws}
	begun := [][]byte{fakeplatform.MessageStart("msg_a", wren), fakeplatform.BlockStart(0), fakeplatform.TextDelta(0, "The qui")}
	frames := func(last []byte, events ...[]byte) fakeplatform.Answer {
		a := fakeplatform.StreamFor(bedrock, events...)
		return fakeplatform.Frames(append(framesOf(a), last)...)
	}
	var reports []report
	for _, c := range []struct{ name, exception, kind, event string }{
		{"throttling", "throttlingException", "rate_limit", "rate_limit_error"},
		{"internal", "internalServerException", "server_error", "api_error"},
		{"model-timeout", "modelTimeoutException", "timeout", "timeout_error"},
		{"unavailable", "serviceUnavailableException", "overloaded", "overloaded_error"},
	} {
		frame := fakeplatform.Exception(c.exception, "Too many requests, please wait before trying again.")
		for name, a := range map[string]fakeplatform.Answer{"first": frames(frame), "opened": frames(frame, begun[:2]...)} {
			reports = append(reports, report{flow: flow{
				lane: wrenLane("r13-"+name+"-"+c.name, chain), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
				status: 200, served: "b", outcome: "failed_over", attempts: "a " + c.kind + " failover, b ok serve", body: goodOf(cpaws, true).Body(), ends: []string{"b ok"},
			}})
		}
		later := frames(frame, begun...)
		later.Parts[len(later.Parts)-1].Wait = 50 * time.Millisecond
		reports = append(reports, report{flow: flow{
			lane: wrenLane("r13-later-"+c.name, chain), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{later}},
			status: 200, served: "a", outcome: "stream_failed", attempts: "a stream_error serve", ends: []string{"a stream_error"},
			more: func(t testing.TB, l *laneRun, a *answer, _ record) {
				rest, ok := bytes.CutPrefix(a.body, slices.Concat(begun...))
				if !ok || !bytes.HasPrefix(rest, []byte("event: error\ndata: {\"type\":\"error\"")) || !bytes.Contains(rest, []byte(`"type":"`+c.event+`"`)) {
					t.Errorf("body %q", a.body)
				}
			},
		}})
	}
	invalid := report{flow: flow{
		lane: wrenLane("r13-validation", chain), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{frames(fakeplatform.Exception("validationException", "messages: at least one message is required"))}},
		status: 200, served: "a", outcome: "stopped", attempts: "a invalid_request stop",
		more: func(t testing.TB, l *laneRun, a *answer, _ record) {
			if !bytes.HasPrefix(a.body, []byte("event: error\n")) || !bytes.Contains(a.body, []byte(`"type":"invalid_request_error"`)) || l.total() != 1 {
				t.Errorf("body %q after %d requests", a.body, l.total())
			}
			l.opened(t, 0, "")
		},
	}}
	runReports(t, options{}, append(reports, invalid)...)
}

// framesOf are an answer's parts.
func framesOf(a fakeplatform.Answer) [][]byte {
	var out [][]byte
	for _, p := range a.Parts {
		out = append(out, p.Data)
	}
	return out
}

// TestReport15_GoogleRateLimit: a 429 with no time in it, in Google's words, fails
// over at once; the cool-down is the configured one.
func TestReport15_GoogleRateLimit(t *testing.T) {
	quota := fakeplatform.Raw(429, "application/json", []byte(`{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}`))
	info := fakeplatform.Raw(429, "application/json", []byte(`{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}`))
	chain := []string{vertex, fp}
	moved := func(name string, a fakeplatform.Answer, ms float64, back bool) report {
		return report{flow: flow{
			lane: wrenLane(name, chain, "retry_after: {default: 2s}"), scripts: [][]fakeplatform.Answer{{a}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a rate_limit failover, b ok serve", max: 2 * slack,
			more: func(t testing.TB, l *laneRun, _ *answer, r record) {
				if r.Attempts[0].RetryAfterMS != ms {
					t.Errorf("retry_after_ms %v, want %v", r.Attempts[0].RetryAfterMS, ms)
				}
				l.opened(t, 0, "key_model")
				if got := l.back(3500 * time.Millisecond); got != back {
					t.Errorf("vertex came back within 3.5s: %v, want %v", got, back)
				}
			},
		}}
	}
	array := moved("r15-array", fakeplatform.InArray(quota), 0, true)
	array.call.stream = true
	last := report{flow: flow{
		lane: wrenLane("r15-last", []string{vertex}), scripts: [][]fakeplatform.Answer{{quota}},
		status: 429, served: "a", outcome: "exhausted", attempts: "a rate_limit *",
		more: func(t testing.TB, _ *laneRun, a *answer, _ record) {
			if kind, message, err := messagesError(a); err != nil || kind != "rate_limit_error" || !strings.Contains(message, "Resource exhausted") {
				t.Errorf("%s %q (%v)", kind, message, err)
			}
		},
	}}
	runReports(t, options{}, moved("r15", quota, 0, true), moved("r15-info", info, 17000, false), array, last)
}

// TestReport49_SignatureDelta: AWS's frames become the events that the first
// party sends: same names, same order, the signature an event of its own.
func TestReport49_SignatureDelta(t *testing.T) {
	events := [][]byte{
		fakeplatform.MessageStart("msg_bdrk_1", wren), fakeplatform.BlockStartOf(0, `{"type":"thinking","thinking":"","signature":""}`),
		fakeplatform.Delta(0, "thinking_delta", "thinking", "Let me "), fakeplatform.Delta(0, "thinking_delta", "thinking", "weigh"),
		fakeplatform.Delta(0, "signature_delta", "signature", "EqQBq7=="), fakeplatform.BlockStop(0),
		fakeplatform.BlockStart(1), fakeplatform.TextDelta(1, "Four."), fakeplatform.BlockStop(1), fakeplatform.MessageDelta("end_turn"), fakeplatform.MessageStop(),
	}
	whole := fakeplatform.StreamFor(bedrock, events...)
	runReports(t, options{},
		report{flow: flow{lane: wrenLane("r49", []string{bedrock}), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{whole}},
			status: 200, served: "a", outcome: "served", attempts: "a ok serve", ends: []string{"a ok"}, body: slices.Concat(events...)}},
		report{flow: flow{lane: wrenLane("r49-split", []string{fp, bedrock}), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{busy529}, {splitFrames(11, whole)}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", ends: []string{"b ok"}, body: slices.Concat(events...)}},
	)
}

// splitFrames is the answer in pieces of n bytes.
func splitFrames(n int, a fakeplatform.Answer) fakeplatform.Answer {
	var parts []fakeplatform.Part
	for piece := range slices.Chunk(a.Body(), n) {
		parts = append(parts, fakeplatform.Part{Data: piece})
	}
	a.Parts = parts
	return a
}

// TestReport51_DeploymentNames: Foundry is asked with the deployment's name, at
// its own path. A deployment that is not there is that target's misconfiguration:
// it fails over, long, and is the answer when it is so everywhere.
func TestReport51_DeploymentNames(t *testing.T) {
	named := report{flow: flow{
		lane: wrenLane("r51", []string{fp, foundry}), scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			got := l.fakes[1].Requests()[0]
			if got.Target != "/anthropic/v1/messages" || got.Get("anthropic-version") != "2023-06-01" || got.Get("x-api-key") != l.keys[1][0] || got.Count("authorization") != 0 {
				t.Errorf("%s\n%s", got.Target, headerText(got))
			}
		},
	}}
	missing := func(name string, platforms ...string) lane {
		l := wrenLane(name, platforms)
		l.refused = true
		for _, tg := range l.targets {
			tg.rules.Models = []string{"something-else"}
		}
		return l
	}
	gone := missing("r51-gone", foundry, cpaws)
	gone.targets[1].rules.Models = nil
	one := report{flow: flow{
		lane: gone, status: 200, served: "b", outcome: "failed_over", attempts: "a model_unavailable failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			l.opened(t, 0, "model")
			l.e.metric(1, "breaker_opened_total", "target", "r51-gone-a", "reason", "model_unavailable")
		},
	}}
	all := report{flow: flow{
		lane: missing("r51-all", foundry, fp, cpaws), status: 404, served: "c", outcome: "exhausted",
		attempts: "a model_unavailable failover, b model_unavailable failover, c model_unavailable *",
		more: func(t testing.TB, _ *laneRun, a *answer, _ record) {
			if kind, _, err := messagesError(a); err != nil || kind != "not_found_error" {
				t.Errorf("%s (%v)", kind, err)
			}
		},
	}}
	runReports(t, options{}, named, one, all)
}

const countPath = "/v1/messages/count_tokens"

// TestReport67_CountAtVertex: counts have a path of their own there, with the
// model in the body.
func TestReport67_CountAtVertex(t *testing.T) {
	body := []byte(`{"model":"claude-wren-1","messages":[{"role":"user","content":"Hello"}]}`)
	runReports(t, options{}, report{
		flow: flow{
			lane: wrenLane("r67", []string{fp, vertex}), call: call{path: countPath, body: body}, scripts: [][]fakeplatform.Answer{{busy529}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
			body: fakeplatform.Count(vertex, fakeplatform.Tokens(body)).Body(),
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				if got := l.fakes[1].Requests()[0].Target; got != "/v1/projects/acme/locations/eu/publishers/anthropic/models/count-tokens:rawPredict" {
					t.Errorf("path %s", got)
				}
			},
		},
		wire: func(p string, b []byte) []byte {
			if p == vertex {
				return bytes.Replace(b, []byte(`{"model":"claude-wren-1",`), []byte(`{"anthropic_version":"vertex-2023-10-16","model":"claude-wren-1@20260101",`), 1)
			}
			return b
		},
	})
}

// TestReport69_CountHasEverything: a count sees what the message would have.
func TestReport69_CountHasEverything(t *testing.T) {
	tool := func(n int) string {
		return fmt.Sprintf(`{"name":"tool_%d","description":"%s","input_schema":{"type":"object"}}`, n, strings.Repeat("d", 1300))
	}
	var tools []string
	for n := range 30 {
		tools = append(tools, tool(n))
	}
	const rest = `"system":"You keep the pantry ledger of Quillfern Ltd.","tool_choice":{"type":"auto"},"thinking":{"type":"enabled","budget_tokens":2048},"messages":[{"role":"user","content":"Hello"}]}`
	bodies := map[string][]byte{
		"r69-tools": []byte(`{"model":"claude-wren-1","tools":[` + strings.Join(tools, ",") + `],` + rest),
		"r69-none":  []byte(`{"model":"claude-wren-1","tools":[],` + rest),
	}
	var reports []report
	for name, body := range bodies {
		for _, p := range []string{bedrock, vertex, foundry, cpaws} {
			l := wrenLane(name+"-"+p, []string{fp, p})
			if p == bedrock {
				// Profiles count nothing there: the base ID does.
				l.targets[1].rules.CountModels = []string{"anthropic.claude-wren-1-v1:0"}
			}
			reports = append(reports, report{
				unwired: true,
				flow: flow{
					lane: l, call: call{path: countPath, body: body}, scripts: [][]fakeplatform.Answer{{busy529}},
					status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
					more: func(t testing.TB, l *laneRun, a *answer, _ record) {
						var count struct {
							InputTokens int `json:"input_tokens"`
						}
						if err := json.Unmarshal(a.body, &count); err != nil || count.InputTokens != fakeplatform.Tokens(body) {
							t.Errorf("%s (%v), want %d", a.body, err, fakeplatform.Tokens(body))
						}
						got := l.fakes[1].Requests()[0].Body
						if p == bedrock {
							got = countedBody(t, got)
						}
						if !bytes.HasSuffix(got, bytes.TrimPrefix(body, []byte(`{"model":"claude-wren-1",`))) {
							t.Errorf("%s counts another body:\n%.300s", p, got)
						}
					},
				},
			})
		}
	}
	runReports(t, options{}, reports...)
}

// countedBody is the body within a CountTokens request of Bedrock.
func countedBody(t testing.TB, b []byte) []byte {
	t.Helper()
	var v struct {
		Input struct {
			InvokeModel struct {
				Body string `json:"body"`
			} `json:"invokeModel"`
		} `json:"input"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Errorf("%v: %.300s", err, b)
	}
	body, err := base64.StdEncoding.DecodeString(v.Input.InvokeModel.Body)
	if err != nil {
		t.Error(err)
	}
	return body
}
