package extproc

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/internal/trail"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// A healthy request is one stream and three messages, and this is all that is
// said about it: what the client's headers say already is not said again.
func TestPlanHealthy(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e, answer := r.ask(plainBody, "anthropic-beta", "x-1", "authorization", "Bearer client", "x-stainless-os", "Linux", "x-forwarded-for", "10.0.0.1")
		id := metaOf(answer)[names.MetaID]
		wantSet := map[string]string{
			":authority": "127.0.0.1:9101", ":path": "/v1/messages", "accept-encoding": "identity",
			"anthropic-version": "2023-06-01", "x-api-key": secrets["KEY_A"],
			names.ID: id, names.Target: "crossdoor-target-a", names.Prepared: "yes", names.Length: itoa(len(plainBody)),
			names.TimeoutMS: "62500", names.Idle: "480s", names.EnvoyMaxRetries: "14",
		}
		if diff := cmp.Diff(wantSet, setHeaders(answer)); diff != "" {
			t.Errorf("set (-want +got):\n%s", diff)
		}
		wantRemoved := []string{"authorization", "cookie"}
		if diff := cmp.Diff(wantRemoved, removedHeaders(answer)); diff != "" {
			t.Errorf("removed (-want +got):\n%s", diff)
		}
		if answer.GetRequestBody().GetResponse().GetBodyMutation() != nil {
			t.Error("the plan changes the body")
		}
		if len(id) != 26 || metaOf(answer)[names.MetaAttempt] != "1" {
			t.Errorf("metadata %v", metaOf(answer))
		}
		final := e.final(from(200, "application/json", "request-id", "req_1"))
		wantClient := map[string]string{
			names.ClientRequestID: id, names.ClientServedBy: "a", names.ClientAttempts: "1",
			names.ClientModel: "claude-opus-5", names.ClientTrail: "a ok 0ms",
		}
		if diff := cmp.Diff(wantClient, setHeaders(final)); diff != "" || len(removedHeaders(final)) != 0 {
			t.Errorf("client headers (-want +got):\n%s removed %v", diff, removedHeaders(final))
		}
		if got := r.metric("crossdoor_grpc_messages_total"); got != 3 {
			t.Errorf("%v messages, want 3", got)
		}
		if got := r.metric("crossdoor_grpc_streams_total"); got != 1 {
			t.Errorf("%v streams, want 1", got)
		}
		if n := r.server.table.Bytes(); n != 0 {
			t.Errorf("the body is kept after the answer: %d bytes", n)
		}
		e.log(r, names.LogAttempt, ended{tail: `{"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`})
		e.log(r, names.LogExchange, ended{})
		rec := r.record()
		if rec.Outcome != trail.OutcomeServed || rec.ServedBy != "a" || rec.Status != 200 || rec.StopReason != "end_turn" || rec.RequestID != "req_1" || rec.Usage == nil || rec.Usage.OutputTokens != 4 {
			t.Errorf("%+v", rec)
		}
		e.plan.leave()
	})
}

// reject is a request that Crossdoor answers itself.
type reject struct {
	name    string
	headers []string // over the client's
	body    string
	status  int
	typ     string // "" is no record either
	names   string // what the message must name
}

func rejects() []reject {
	return []reject{
		{"another path", []string{":path", "/v1/other"}, "", 404, "not_found_error", ""},
		{"path below", []string{":path", "/v1/messages/batches"}, "", 404, "not_found_error", ""},
		{"GET of messages", []string{":method", "GET"}, "", 405, "invalid_request_error", "POST"},
		{"POST of models", []string{":path", "/v1/models"}, "", 405, "invalid_request_error", "GET"},
		{"content-length over the limit", []string{"content-length", "33554433"}, "", 413, "request_too_large", "33554432"},
		{"coding", []string{"content-encoding", "br"}, "", 415, "invalid_request_error", "gzip"},
		{"no route", nil, `{"model":"gpt-5"}`, 404, "not_found_error", "claude-*"},
		{"empty body", nil, ``, 400, "invalid_request_error", ""},
		{"not JSON", nil, `{"model"`, 400, "invalid_request_error", ""},
		{"an array", nil, `[]`, 400, "invalid_request_error", ""},
		{"something after it", nil, `{"model":"claude-opus-5"} x`, 400, "invalid_request_error", ""},
		{"byte order mark", nil, "\ufeff" + plainBody, 400, "invalid_request_error", ""},
		{"no model", nil, `{"max_tokens":1}`, 400, "invalid_request_error", "model"},
		{"model not a string", nil, `{"model":7}`, 400, "invalid_request_error", "model"},
		{"model with a control character", nil, `{"model":"claude-\u0000"}`, 400, "invalid_request_error", "model"},
		{"model twice", nil, `{"model":"claude-opus-5","model":"claude-opus-5"}`, 400, "invalid_request_error", "model"},
		{"gzip that is none", []string{"content-encoding", "gzip"}, "plain", 400, "invalid_request_error", ""},
	}
}

func TestPlanRejects(t *testing.T) {
	for _, c := range rejects() {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e, m := r.ask(c.body, c.headers...)
				wantRejection(t, m, c.status, c.typ, c.names)
				if got := setHeaders(m); got[names.ClientAttempts] != "0" || got[names.ClientRequestID] == "" || got[names.ClientServedBy] != "" {
					t.Errorf("client headers %v", got)
				}
				e.plan.leave()
				if c.status == 404 && c.headers != nil {
					if n := len(r.records()); n != 0 {
						t.Errorf("%d records of another path, want none", n)
					}
					return
				}
				if rec := r.record(); rec.Outcome != trail.OutcomeRejected || rec.Status != c.status {
					t.Errorf("%s %d", rec.Outcome, rec.Status)
				}
			})
		})
	}
}

// wantRejection checks an answer of Crossdoor's own in the client's schema.
func wantRejection(t *testing.T, m *extprocv3.ProcessingResponse, status int, typ, part string) {
	t.Helper()
	i := m.GetImmediateResponse()
	if int(i.GetStatus().GetCode()) != status {
		t.Fatalf("want %d, got %v", status, m)
	}
	var body struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(i.GetBody(), &body); err != nil || body.Type != "error" || body.Error.Type != typ {
		t.Errorf("body %s (%v), want %s", i.GetBody(), err, typ)
	}
	if body.Error.Message == "" || !strings.Contains(body.Error.Message, part) {
		t.Errorf("message %q does not name %q", body.Error.Message, part)
	}
	h := setHeaders(m)
	if h["x-should-retry"] != "false" || h["content-type"] != "application/json" {
		t.Errorf("headers %v", h)
	}
	if !strings.HasPrefix(i.GetDetails(), names.DetailsPrefix) {
		t.Errorf("details %q", i.GetDetails())
	}
}

const smallLimits = `
version: 1
limits: {body: 1KiB, memory: 2KiB}
targets:
  a: {platform: anthropic, url: "http://127.0.0.1:9101", plaintext: true, keys: [{env: KEY_A}]}
routes:
  - {name: main, models: ["claude-*"], chain: [a]}
`

func padded(n int) string {
	const head, tail = `{"model":"claude-opus-5","x":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPlanBodyLimit(t *testing.T) {
	cases := []struct {
		name    string
		body    string
		headers []string
		status  int // 0: planned
	}{
		{"at the limit", padded(1024), nil, 0},
		{"above it, chunked", padded(1025), nil, 413},
		{"above it, as content-length says", padded(1025), []string{"content-length", "1025"}, 413},
		{"gzip below it", zipped(t, padded(1024)), []string{"content-encoding", "gzip"}, 0},
		{"gzip bomb", zipped(t, padded(1025)), []string{"content-encoding", "gzip"}, 413},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, smallLimits, func(r *replica) {
				e, m := r.ask(c.body, c.headers...)
				switch {
				case c.status == 0 && setHeaders(m)[names.ID] == "":
					t.Errorf("not planned: %v", m)
				case c.status != 0:
					wantRejection(t, m, c.status, "request_too_large", "1024")
				}
				e.plan.leave()
			})
		})
	}
}

// A body that came encoded is sent decoded: attempt 1 asks for it.
func TestPlanEncodedBody(t *testing.T) {
	inWorld(t, smallLimits, func(r *replica) {
		e := r.post(zipped(t, plainBody), "content-encoding", "gzip")
		if e.headers[names.Prepared] != "" || e.headers["content-encoding"] != "" || e.headers[names.Length] != itoa(len(plainBody)) {
			t.Errorf("headers %v", e.headers)
		}
		m := e.attempt(r)
		if got := string(m.GetRequestHeaders().GetResponse().GetBodyMutation().GetBody()); got != plainBody {
			t.Errorf("body %q", got)
		}
		e.plan.leave()
	})
}

// The memory limit counts what is held; beyond it new requests are told to come
// back, and room that comes free is used again.
func TestPlanMemoryLimit(t *testing.T) {
	inWorld(t, smallLimits, func(r *replica) {
		first, second := r.post(padded(1000)), r.post(padded(1000))
		if got := r.metric("crossdoor_body_bytes"); got != 2000 {
			t.Errorf("body_bytes %v", got)
		}
		for _, c := range []struct {
			name    string
			headers []string
		}{{"by the body", nil}, {"by content-length", []string{"content-length", "1000"}}} {
			e, m := r.ask(padded(1000), c.headers...)
			wantRejection(t, m, 529, "overloaded_error", "")
			if got := setHeaders(m)["retry-after"]; got != "1" {
				t.Errorf("%s: retry-after %q", c.name, got)
			}
			e.plan.leave()
		}
		for _, rec := range r.records() {
			if rec.Outcome != trail.OutcomeExhausted || rec.Status != 529 {
				t.Errorf("record %s %d", rec.Outcome, rec.Status)
			}
		}
		first.plan.leave()
		third := r.post(padded(1000))
		third.plan.leave()
		second.plan.leave()
	})
}

// A plan without a target is answered at once, by what stands in the way.
func TestPlanNobody(t *testing.T) {
	const head = "version: 1\ntargets:\n"
	const tail = "routes:\n  - {name: main, models: [\"claude-*\"], chain: [a, b]}\n"
	target := func(name, port, key, more string) string {
		return fmt.Sprintf("  %s: {platform: anthropic, url: \"http://127.0.0.1:%s\", plaintext: true, keys: [{env: %s}]%s}\n", name, port, key, more)
	}
	foundry := func(name, port string) string {
		return fmt.Sprintf("  %s: {platform: foundry, resource: acme, auth: key, url: \"http://127.0.0.1:%s\", plaintext: true, keys: [{env: KEY_A}]}\n", name, port)
	}
	small := ", limits: {body: 64KiB}"
	big := fmt.Sprintf(`{"model":"claude-opus-5","x":%q}`, strings.Repeat("x", 70<<10))
	cases := []struct {
		name, targets, body string
		status              int
		typ, part           string
	}{
		{"no model anywhere", foundry("a", "9101") + foundry("b", "9102"), `{"model":"claude-unheard-of"}`, 400, "invalid_request_error", "a (no_model), b (no_model)"},
		{"too large for all", target("a", "9101", "KEY_A", small) + target("b", "9102", "KEY_B", small), big, 413, "request_too_large", "a (too_large), b (too_large)"},
		{"too large, and no model", target("a", "9101", "KEY_A", small) + foundry("b", "9102"), strings.Replace(big, "opus-5", "unheard-of", 1), 400, "invalid_request_error", "a (too_large), b (no_model)"},
		{"no credential", target("a", "9101", "NOT_SET_1", "") + target("b", "9102", "NOT_SET_2", ""), plainBody, 529, "overloaded_error", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, head+c.targets+tail, func(r *replica) {
				e, m := r.ask(c.body)
				wantRejection(t, m, c.status, c.typ, c.part)
				e.plan.leave()
				if rec := r.record(); len(rec.Attempts) != 0 || rec.Plan[0].Skipped == "" || rec.Plan[1].Skipped == "" {
					t.Errorf("%+v", rec)
				}
			})
		})
	}
}

func TestPlanModels(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		p := r.open(names.RolePlan, nil)
		p.requestHeaders(true, clientHeadersOf("/v1/models", ":method", "GET"))
		i := p.recv().GetImmediateResponse()
		var list struct {
			Data []struct{ ID, Type string }
		}
		if err := json.Unmarshal(i.GetBody(), &list); err != nil || i.GetStatus().GetCode() != 200 || len(list.Data) == 0 || list.Data[0].Type != "model" {
			t.Errorf("%v %s", err, i.GetBody())
		}
		p.leave()
		if n := len(r.records()); n != 0 {
			t.Errorf("%d records", n)
		}
	})
}

// A request without a body has no body phase (envoy.md, rule 7).
func TestPlanNoBody(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		p := r.open(names.RolePlan, nil)
		p.requestHeaders(true, clientHeadersOf("/v1/messages"))
		wantRejection(t, p.recv(), 400, "invalid_request_error", "body")
		p.leave()
	})
}

// What Envoy answers before there is a plan is said in the client's schema.
func TestPlanEnvoyAnswered(t *testing.T) {
	cases := []struct {
		status, want int
		typ          string
		headersFirst bool
	}{
		{413, 413, "request_too_large", true},
		{408, 408, "timeout_error", true},
		{400, 400, "invalid_request_error", false},
		{500, 503, "overloaded_error", true},
		{503, 503, "overloaded_error", true},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%d, headers first %v", c.status, c.headersFirst), func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				p := r.open(names.RolePlan, nil)
				if c.headersFirst {
					p.requestHeaders(false, clientHeadersOf("/v1/messages"))
					p.recv()
				}
				p.responseHeaders(false, map[string]string{":status": itoa(c.status), "content-type": "text/plain"})
				wantRejection(t, p.recv(), c.want, c.typ, "")
				p.leave()
				r.record()
			})
		})
	}
}
