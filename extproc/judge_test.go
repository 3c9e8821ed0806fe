package extproc

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/internal/trail"
)

const (
	eventStream = "text/event-stream"

	startEvent = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n"
	pingEvent  = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	blockEvent = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	deltaEvent = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
	toolEvent  = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{}}}\n\n"
	stopEvents = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	errorEvent = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
)

func errorBody(typ, message string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, typ, message)
}

// What a judge says of an answer that is whole, by its headers and body: go on,
// or let it through.
func TestJudgeWhole(t *testing.T) {
	const json = "application/json"
	cases := []struct {
		name    string
		body    string // of the request
		headers map[string]string
		answer  string
		on      bool
		kind    string
	}{
		{"529", plainBody, from(529, json), overloadedBody, true, "overloaded"},
		{"529 without a body", plainBody, from(529, json), "", true, "overloaded"},
		{"500 that is no error object", plainBody, from(500, "text/html"), "<html>", true, "server_error"},
		{"429", plainBody, from(429, json), errorBody("rate_limit_error", "slow down"), true, "rate_limit"},
		{"401", plainBody, from(401, json), errorBody("authentication_error", "who"), true, "credential"},
		{"400", plainBody, from(400, json), errorBody("invalid_request_error", "messages: bad"), false, "invalid_request"},
		{"422", plainBody, from(422, json), errorBody("invalid_request_error", "messages: bad"), false, "invalid_request"},
		{"413 and nobody larger", plainBody, from(413, json), errorBody("request_too_large", "big"), false, "too_large"},
		{"200 that is a page", plainBody, from(200, "text/html"), "", true, "server_error"},
		{"200 JSON that was asked for", plainBody, from(200, json), "", false, "ok"},
		{"refused", plainBody, local(503, "UF;upstream_reset_before_response_started{remote_connection_failure}"), "", true, "connection"},
		{"attempt timeout", plainBody, local(504, "UT;upstream_per_try_timeout"), "", true, "timeout"},
		{"an answer of Envoy's is not read", plainBody, local(503, "UC;x{connection_termination}"), "no healthy upstream", true, "connection"},
		{"stream: error first", streamBody, from(200, eventStream), errorEvent, true, "overloaded"},
		{"stream: error after start and pings", streamBody, from(200, eventStream), startEvent + pingEvent + pingEvent + pingEvent + blockEvent + errorEvent, true, "overloaded"},
		{"stream: ends without content", streamBody, from(200, eventStream), startEvent + pingEvent, true, "connection"},
		{"stream: empty", streamBody, from(200, eventStream), "", true, "connection"},
		{"stream: content", streamBody, from(200, eventStream), startEvent + blockEvent + deltaEvent, false, "ok"},
		{"stream: a tool's block", streamBody, from(200, eventStream), startEvent + toolEvent, false, "ok"},
		{"stream: CRLF and a content type with more", streamBody, from(200, "Text/Event-Stream; charset=utf-8"), strings.ReplaceAll(startEvent+deltaEvent, "\n", "\r\n"), false, "ok"},
		{"stream: encoded", streamBody, from(200, eventStream, "content-encoding", "gzip"), "", false, "ok"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.post(c.body)
				headers := maps.Clone(c.headers)
				headers["content-length"] = "77"
				m := e.judged(r, headers, c.answer)
				if m.GetResponseHeaders() == nil || retries(m) != c.on {
					t.Fatalf("want retry %v, got %v", c.on, m)
				}
				// The judge's filter drops content-length: the plan sets it again.
				if got := setHeaders(m)[names.Length]; (got == "77") == c.on {
					t.Errorf("%s %q", names.Length, got)
				}
				if !c.on {
					headers[names.Length] = "77"
					final := e.final(headers)
					if got := setHeaders(final)["content-length"]; got != "77" || final.GetImmediateResponse() != nil {
						t.Errorf("content-length %q: %v", got, final)
					}
				}
				e.plan.leave()
				e.log(r, names.LogAttempt, ended{tail: startEvent + stopEvents})
				e.log(r, names.LogExchange, ended{})
				if got := r.record().Attempts[0]; got.Outcome != c.kind {
					t.Errorf("outcome %s, want %s", got.Outcome, c.kind)
				}
			})
		})
	}
}

// Content commits whatever the chunks' borders are; until then nothing is
// answered.
func TestJudgeChunks(t *testing.T) {
	text := startEvent + pingEvent + blockEvent + deltaEvent
	for _, size := range []int{1, 7, 100, len(text)} {
		t.Run(itoa(size), func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.post(streamBody)
				p := e.judge(r, false, from(200, eventStream))
				rest := text
				for len(rest) > size {
					p.responseBody(rest[:size], false)
					rest = rest[size:]
				}
				p.responseBody(rest, false)
				if m := p.recv(); m.GetResponseHeaders() == nil || retries(m) {
					t.Errorf("got %v", m)
				}
				// The judge returns: its stream is over (envoy.md, rule 1).
				if m := p.recv(); m != nil {
					t.Errorf("a second answer: %v", m)
				}
				e.final(from(200, eventStream))
				e.plan.leave()
			})
		})
	}
}

// When a hold ends depends on whether the stream shows life.
func TestJudgeHold(t *testing.T) {
	type at struct {
		after time.Duration
		text  string
	}
	const s = time.Second
	pings := func(every time.Duration, n int) (out []at) {
		for range n {
			out = append(out, at{every, pingEvent})
		}
		return out
	}
	cases := []struct {
		name     string
		timeouts string
		feed     []at
		on       bool // the next attempt
		after    time.Duration
		kind     string
		asIs     float64
	}{
		{"alive at the end of the hold: released", "first_token: 60s, hold: 25s", pings(5*s, 4), false, 25 * s, "", 1},
		{"silent at the end of the hold: held until the first token is due", "first_token: 60s, hold: 25s", []at{{0, startEvent}}, true, 60 * s, "timeout", 0},
		{"a byte 20 s ago is life", "first_token: 60s, hold: 25s", []at{{5 * s, startEvent}}, false, 25 * s, "", 1},
		{"a byte 21 s ago is none", "first_token: 60s, hold: 25s", []at{{4 * s, startEvent}}, true, 60 * s, "timeout", 0},
		{"equal: the first token wins", "first_token: 10s, hold: 10s", pings(2*s, 4), true, 10 * s, "timeout", 0},
		{"never a byte", "first_token: 10s", nil, true, 10 * s, "timeout", 0},
		{"silent, then content in time", "first_token: 60s, hold: 25s", []at{{0, startEvent}, {40 * s, deltaEvent}}, false, 40 * s, "", 0},
		{"comments are life", "first_token: 60s, hold: 25s", []at{{20 * s, ": still here\n\n"}}, false, 25 * s, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, withTimeouts(c.timeouts), func(r *replica) {
				start := time.Now()
				e := r.post(streamBody)
				p := e.judge(r, false, from(200, eventStream))
				for _, f := range c.feed {
					pass(f.after)
					p.responseBody(f.text, false)
				}
				m := p.recv()
				if took := time.Since(start); retries(m) != c.on || took != c.after {
					t.Fatalf("retry %v after %v, want %v after %v", retries(m), took, c.on, c.after)
				}
				if c.on {
					e.attempt(r)
				}
				e.final(from(200, eventStream))
				e.plan.leave()
				e.log(r, names.LogAttempt, ended{tail: stopEvents})
				e.log(r, names.LogExchange, ended{})
				rec := r.record()
				if c.on && (rec.Attempts[0].Outcome != c.kind || rec.Outcome != trail.OutcomeFailedOver) {
					t.Errorf("%+v", rec.Attempts)
				}
				if got := r.metric("crossdoor_released_unready_total", "reason", "hold"); got != c.asIs {
					t.Errorf("released %v as they were, want %v", got, c.asIs)
				}
			})
		})
	}
}

// Endless comments are held up to limits.hold, then released as they are.
func TestJudgeHoldSize(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(streamBody)
		p := e.judge(r, false, from(200, eventStream))
		comment := strings.Repeat(": ........\n", 1<<16) // 704 KiB
		for range 11 {
			p.responseBody(comment, false)
		}
		pass(time.Second)
		if got := r.metric("crossdoor_held_bytes"); got != float64(11*len(comment)) {
			t.Errorf("held bytes %v", got)
		}
		p.responseBody(comment, false) // now more than 8 MiB
		if m := p.recv(); m.GetResponseHeaders() == nil || retries(m) {
			t.Errorf("got %v", m)
		}
		e.final(from(200, eventStream))
		e.plan.leave()
		e.log(r, names.LogAttempt, ended{tail: stopEvents})
		e.log(r, names.LogExchange, ended{})
		if got := r.metric("crossdoor_released_unready_total", "reason", "size"); got != 1 {
			t.Errorf("released %v", got)
		}
	})
}

// Up to 64 KiB of an error body are read; one that stalls is classified by what
// is there.
func TestJudgeErrorBody(t *testing.T) {
	credit := errorBody("invalid_request_error", "Your credit balance is too low to access the API.")
	cases := []struct {
		name  string
		parts []string
		end   bool
		after time.Duration
		on    bool
		kind  string
	}{
		{"in parts", []string{credit[:20], credit[20:40], credit[40:]}, true, 0, true, "billing_quota"},
		{"never ends", []string{strings.Repeat(" ", 70<<10)}, false, 0, false, "invalid_request"},
		{"stalls when all is there", []string{credit}, false, errorBodyWait, true, "billing_quota"},
		{"stalls at once", nil, false, errorBodyWait, false, "invalid_request"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.post(plainBody)
				start := time.Now()
				p := e.judge(r, false, from(400, "application/json"))
				for i, part := range c.parts {
					p.responseBody(part, c.end && i == len(c.parts)-1)
				}
				m := p.recv()
				if took := time.Since(start); retries(m) != c.on || took != c.after {
					t.Errorf("retry %v after %v, want %v after %v", retries(m), took, c.on, c.after)
				}
				e.plan.leave()
				pass(time.Second)
				if got := r.record().Attempts[0].Outcome; got != c.kind {
					t.Errorf("outcome %s, want %s", got, c.kind)
				}
			})
		})
	}
}

// An answer that belongs to nobody any more passes as it is.
func TestJudgeOfNobody(t *testing.T) {
	cases := []struct {
		name string
		meta map[string]string
	}{
		{"no metadata", nil},
		{"an id that nobody knows", map[string]string{names.MetaID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", names.MetaAttempt: "1"}},
		{"a state that cannot be read", map[string]string{names.MetaID: "x", names.MetaAttempt: "1", names.MetaState: "{"}},
		{"another version", map[string]string{names.MetaID: "x", names.MetaAttempt: "1", names.MetaState: `{"v":99,"r":"main"}`}},
		{"a route that is gone", map[string]string{names.MetaID: "x", names.MetaAttempt: "1", names.MetaState: `{"v":1,"r":"old"}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				p := r.open(names.RoleJudge, c.meta)
				p.responseHeaders(true, from(529, "application/json"))
				if m := p.recv(); m.GetResponseHeaders() == nil || retries(m) {
					t.Errorf("got %v", m)
				}
				p.leave()
			})
		})
	}
	t.Run("the attempt before", func(t *testing.T) {
		inWorld(t, twoTargets, func(r *replica) {
			e := r.post(plainBody)
			before := maps.Clone(e.meta)
			e.judged(r, from(529, "application/json"), "")
			e.attempt(r)
			p := r.open(names.RoleJudge, before)
			p.responseHeaders(true, from(529, "application/json"))
			if m := p.recv(); m.GetResponseHeaders() == nil || retries(m) {
				t.Errorf("got %v", m)
			}
			e.final(from(200, "application/json"))
			e.plan.leave()
			p.leave()
		})
	})
}
