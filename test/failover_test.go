package test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// goodAnswer is what the fake platform's first good answer is.
func goodAnswer(platform, model string, stream bool, n int) []byte {
	id := fmt.Sprintf("msg_fake_%s_%d", platform, n)
	if stream {
		return fakeplatform.GoodStream(id, model, 5).Body()
	}
	return fakeplatform.Message(id, model, "hello from "+platform).Body()
}

// both makes a JSON and an SSE flow of one.
func both(f flow) []flow {
	j, s := f, f
	j.lane.name, s.lane.name = f.lane.name+"-json", f.lane.name+"-sse"
	s.call.stream = true
	for _, g := range []*flow{&j, &s} {
		if g.served == "b" && g.status == 200 && g.body == nil {
			g.body = goodAnswer(fakeplatform.ClaudeOnAWS, g.lane.name, g.call.stream, 1)
		}
	}
	return []flow{j, s}
}

func TestFailoverOnStatus(t *testing.T) {
	var flows []flow
	for _, c := range []struct {
		name   string
		answer fakeplatform.Answer
		kind   string
	}{
		{"s529", fakeplatform.Error(529, "Overloaded"), "overloaded"},
		{"s503", fakeplatform.Error(503, "Unavailable"), "overloaded"},
		{"s503-html", fakeplatform.HTML(503), "overloaded"},
		{"s500", fakeplatform.Error(500, "Internal server error"), "server_error"},
		{"s502-html", fakeplatform.HTML(502), "server_error"},
		{"s529-chunked", func() fakeplatform.Answer {
			a := fakeplatform.Error(529, "Overloaded")
			a.Length = fakeplatform.LengthChunked
			return a
		}(), "overloaded"},
		{"s500-empty", fakeplatform.Raw(500, "text/plain", nil), "server_error"},
	} {
		flows = append(flows, both(flow{
			lane: lane{name: c.name}, scripts: [][]fakeplatform.Answer{{c.answer}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a " + c.kind + " failover, b ok serve",
			more: checkServedRecord,
		})...)
	}
	runFlows(t, options{}, flows...)
}

// checkServedRecord: what a record of a failed-over request says.
func checkServedRecord(t testing.TB, l *laneRun, a *answer, r record) {
	t.Helper()
	if r.Usage == nil || (*r.Usage)["input_tokens"] != fakeplatform.InputTokens || (*r.Usage)["output_tokens"] != fakeplatform.OutputTokens {
		t.Errorf("usage %v in %s", r.Usage, r.line)
	}
	if r.Stop != "end_turn" {
		t.Errorf("stop_reason %q", r.Stop)
	}
	if r.AddedMS == nil || *r.AddedMS < 0 || *r.AddedMS > r.MS {
		t.Errorf("added_ms %v of ms %v", r.AddedMS, r.MS)
	}
	if len(r.Attempts) != 2 {
		return
	}
	first, last := r.Attempts[0], r.Attempts[1]
	if first.UpstreamRequestID != "req_fake_anthropic_1" || !strings.HasSuffix(last.UpstreamRequestID, "req_fake_claude-on-aws_1") {
		t.Errorf("upstream_request_id %q, %q", first.UpstreamRequestID, last.UpstreamRequestID)
	}
	if first.Key != "env:"+l.keyEnv(0, 0) || last.Key != "env:"+l.keyEnv(1, 0) {
		t.Errorf("keys %q, %q", first.Key, last.Key)
	}
	if first.Model != l.model() || a.header.Get("x-crossdoor-model") != last.Model {
		t.Errorf("models %q, %q; the client was told %q", first.Model, last.Model, a.header.Get("x-crossdoor-model"))
	}
	if got := a.header.Get("request-id"); got != "req_fake_claude-on-aws_1" {
		t.Errorf("request-id %q is not that of the answer", got)
	}
	if first.Status == 0 || last.Status != 200 {
		t.Errorf("statuses %d, %d", first.Status, last.Status)
	}
	if added := time.Duration(last.StartMS-first.StartMS-first.MS) * time.Millisecond; added > 250*time.Millisecond {
		t.Errorf("the failover took %v", added)
	}
}

func TestFailoverOnRateLimit(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().Add(d).UTC() }
	var flows []flow
	for _, c := range []struct {
		name   string
		header func() []fakeplatform.Field
		lo, hi time.Duration // retry_after_ms; 0 is none
	}{
		{"none", func() []fakeplatform.Field { return nil }, 0, 0},
		{"seconds", fields("retry-after", "7"), 7 * time.Second, 7 * time.Second},
		{"fraction", fields("retry-after", "6.5"), 6500 * time.Millisecond, 6500 * time.Millisecond},
		{"date", func() []fakeplatform.Field {
			return []fakeplatform.Field{{Name: "retry-after", Value: in(20 * time.Second).Format(http.TimeFormat)}}
		}, 15 * time.Second, 20 * time.Second},
		{"milliseconds", fields("retry-after-ms", "8500", "retry-after", "30"), 8500 * time.Millisecond, 8500 * time.Millisecond},
		{"reset", func() []fakeplatform.Field {
			return []fakeplatform.Field{
				{Name: "anthropic-ratelimit-requests-remaining", Value: "0"},
				{Name: "anthropic-ratelimit-requests-reset", Value: in(20 * time.Second).Format(time.RFC3339)},
				{Name: "anthropic-ratelimit-tokens-remaining", Value: "5"},
				{Name: "anthropic-ratelimit-tokens-reset", Value: in(200 * time.Second).Format(time.RFC3339)},
			}
		}, 15 * time.Second, 20 * time.Second},
		{"hour", fields("retry-after", "3600"), 5 * time.Minute, time.Hour},
		{"negative", fields("retry-after", "-3"), 0, 0},
		{"words", fields("retry-after", "soon", "retry-after-ms", "x"), 0, 0},
	} {
		flows = append(flows, both(flow{
			lane: lane{name: "r-" + c.name},
			prepare: func(l *laneRun) {
				l.fakes[0].Script(fakeplatform.Error(429, "Number of requests has exceeded your rate limit", c.header()...))
			},
			status: 200, served: "b", outcome: "failed_over", attempts: "a rate_limit failover, b ok serve",
			more: func(t testing.TB, l *laneRun, a *answer, r record) {
				got := time.Duration(r.Attempts[0].RetryAfterMS * float64(time.Millisecond))
				if got < c.lo || got > c.hi {
					t.Errorf("retry_after_ms %v, want %v to %v", got, c.lo, c.hi)
				}
				if h := a.header.Get("retry-after"); h != "" {
					t.Errorf("retry-after %q of another attempt", h)
				}
				checkKeyEjected(t, l)
			},
		})...)
	}
	runFlows(t, options{}, flows...)
}

func fields(kv ...string) func() []fakeplatform.Field {
	return func() []fakeplatform.Field {
		var out []fakeplatform.Field
		for i := 0; i < len(kv); i += 2 {
			out = append(out, fakeplatform.Field{Name: kv[i], Value: kv[i+1]})
		}
		return out
	}
}

// checkKeyEjected: the 429 took the key out, and only it.
func checkKeyEjected(t testing.TB, l *laneRun) {
	t.Helper()
	if state, err := l.e.breaker("key_model", l.targetName(0)); err != nil || state != 2 {
		t.Errorf("breaker of key and model: %v (%v), want 2", state, err)
	}
	before := len(l.fakes[0].Requests())
	a := l.send(call{})
	if got := a.header.Get("x-crossdoor-served-by"); a.status != 200 || got != l.targetName(1) {
		t.Errorf("the next request: %d by %q", a.status, got)
	}
	if got := len(l.fakes[0].Requests()); got != before {
		t.Errorf("an ejected key was used")
	}
	if r := l.byID(a.id()); r.skips() != "a ejected" || r.summary() != "b ok serve" || r.Outcome != "failed_over" {
		t.Errorf("record: skips %q, attempts %q, outcome %q", r.skips(), r.summary(), r.Outcome)
	}
	l.e.metric(1, "skipped_total", "target", l.targetName(0), "reason", "ejected")
}

func TestHealthy(t *testing.T) {
	check := func(t testing.TB, l *laneRun, a *answer, r record) {
		req := l.fakes[0].Requests()[0]
		if want := goodBody(l.model(), req.Stream, 0); !bytes.Equal(req.Body, want) {
			t.Errorf("the platform got %q, want %q", req.Body, want)
		}
		if r.AddedMS == nil || *r.AddedMS > 250 {
			t.Errorf("added_ms %v", r.AddedMS)
		}
	}
	runFlows(t, options{},
		flow{lane: lane{name: "json"}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", body: goodAnswer(fakeplatform.Anthropic, "json", false, 1), more: check},
		flow{lane: lane{name: "sse"}, call: call{stream: true}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", body: goodAnswer(fakeplatform.Anthropic, "sse", true, 1), ends: []string{"a ok"}, more: check},
		flow{lane: lane{name: "beta", targets: two()}, call: call{path: "/v1/messages?beta=true"}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			if got := l.fakes[0].Requests()[0].Target; got != "/v1/messages?beta=true" {
				t.Errorf("path at the platform %q", got)
			}
		}},
		flow{lane: lane{name: "count", targets: two()}, call: call{path: "/v1/messages/count_tokens"}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "Overloaded")}}, status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", body: fakeplatform.Count(fakeplatform.ClaudeOnAWS, fakeplatform.Tokens(goodBody("count", false, 0))).Body()},
		flow{lane: lane{name: "foundry", targets: []target{{platform: fakeplatform.Foundry, yaml: []string{`models: {foundry: dep-1}`}, rules: &fakeplatform.Rules{Models: []string{"dep-1"}}}}}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: func(t testing.TB, l *laneRun, a *answer, _ record) {
			want := bytes.Replace(goodBody("foundry", false, 0), []byte(`"foundry"`), []byte(`"dep-1"`), 1)
			if got := l.fakes[0].Requests()[0].Body; !bytes.Equal(got, want) {
				t.Errorf("the platform got %q, want %q", got, want)
			}
			if got := a.header.Get("x-crossdoor-model"); got != "dep-1" {
				t.Errorf("x-crossdoor-model %q", got)
			}
		}},
		flow{lane: lane{name: "through-three", targets: three("through-three")}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "Overloaded")}, {fakeplatform.Error(500, "boom")}}, status: 200, served: "c", outcome: "failed_over", attempts: "a overloaded failover, b server_error failover, c ok serve"},
	)
}
