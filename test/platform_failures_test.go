package test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// failureModel is what the events of fakeplatform's failures say that they are
// from.
const failureModel = "claude-wren-1"

// openedScopes are the breaker scopes that a kind opens at its first failure.
var openedScopes = map[string]string{
	"credential": "key", "permission": "model", "billing_quota": "key", "model_unavailable": "model", "rate_limit": "key_model",
}

// TestPlatformFails: every platform first, in every way in which it fails, with a
// good first-party target behind it.
func TestPlatformFails(t *testing.T) {
	for _, d := range frontDoors() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			var flows []flow
			scopes := map[string]string{}
			for _, failure := range fakeplatform.Failures(d.platform) {
				f := d.failure(failure)
				flows = append(flows, f)
				scopes[f.lane.name+"-a"] = openedScopes[failure.Kind]
			}
			runDoors(t, options{}, flows...).checkOpened(scopes)
		})
	}
}

// checkOpened: of every target the scope that the map names has left its closed
// state, and no other.
func (e *env) checkOpened(scopes map[string]string) {
	e.t.Helper()
	all, err := e.service().samplesOf("crossdoor_breaker_state")
	if err != nil {
		e.t.Fatal(err)
	}
	opened := map[string]string{}
	for _, m := range all {
		if m.value > 0 {
			opened[m.labels["target"]] += m.labels["scope"]
		}
	}
	for target, scope := range scopes {
		if opened[target] != scope {
			e.t.Errorf("%s: opened %q, want %q", target, opened[target], scope)
		}
	}
}

// failure is what must come of one.
func (d door) failure(x fakeplatform.Failure) flow {
	q := questions[0]
	if x.Stream {
		q = questions[1]
	}
	f := flow{
		lane: doorLane(strings.ReplaceAll(x.Name, "_", "-"), []target{d.target(), firstParty.target()}), call: q.call, scripts: [][]fakeplatform.Answer{{x.Answer}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a " + x.Kind + " failover, b ok serve", body: firstParty.answer(q, 1), ends: endsOf(q, "b ok"),
	}
	if strings.HasSuffix(x.Name, "silent") {
		f.lane.route = append(f.lane.route, "timeouts: {attempt: 4s, first_token: 4s, hold: 4s}")
	}
	switch {
	case x.Name == "short-answer": // its headers are those of a good one: it is on its way
		committedAs(&f, "truncated", x.Answer)
	case x.Committed:
		committedAs(&f, x.Kind, x.Answer)
		f.body = d.failedBody(x)
	case x.Kind == "invalid_request", x.Kind == "too_large" && !d.smaller(x):
		stopped(&f, x)
		f.body = nil
	}
	f.more = func(t testing.TB, l *laneRun, a *answer, r record) {
		if x.Kind == "unsupported_feature" {
			l.e.metric(1, "rewrite_refused_total", "target", l.targetName(0))
		}
		if f.outcome == "stopped" {
			d.checkStopped(t, x, a)
		}
		if a.status == 200 && a.header.Get("x-should-retry") != "" {
			t.Errorf("x-should-retry %q", a.header.Get("x-should-retry"))
		}
	}
	return f
}

// smaller says that a platform's 413 is of a limit below the first-party one's.
func (d door) smaller(x fakeplatform.Failure) bool {
	return x.Answer.Status == 413 && slices.Contains([]string{fakeplatform.Bedrock, fakeplatform.Mantle, fakeplatform.Vertex}, d.platform)
}

// committed makes the flow one whose first answer went to the client and then
// failed. What ends it comes after the commit: see committed.
func committedAs(f *flow, kind string, a fakeplatform.Answer) {
	a.Parts = append(slices.Clip(a.Parts), fakeplatform.Part{Wait: 300 * time.Millisecond})
	f.scripts = [][]fakeplatform.Answer{{a}}
	f.served, f.outcome, f.attempts = "a", "stream_failed", "a "+kind+" serve"
	f.ends = endsOf(question{call: f.call}, "a "+kind)
	f.body, f.cut = a.Body(), a.End != fakeplatform.EndClean
}

// stopped makes the flow one whose first answer is the client's.
func stopped(f *flow, x fakeplatform.Failure) {
	f.status, f.served, f.outcome, f.attempts = x.Answer.Status, "a", "stopped", "a "+x.Kind+" stop"
	f.ends = nil
}

// failedBody is what the client has of a committed stream that fails: the
// platform's bytes, or the same events and the error that ends a converted
// stream (contract, section 6).
func (d door) failedBody(x fakeplatform.Failure) []byte {
	if d.platform != fakeplatform.Bedrock {
		return x.Answer.Body()
	}
	events := [][]byte{fakeplatform.MessageStart("msg_fake_failure", failureModel), fakeplatform.Ping(), fakeplatform.BlockStart(0), fakeplatform.TextDelta(0, "The qui")}
	if x.Name == "stream-no-message-stop" {
		events = append(events, fakeplatform.BlockStop(0), fakeplatform.MessageDelta("end_turn"))
	}
	body := bytes.Join(events, nil)
	if x.Answer.End == fakeplatform.EndReset {
		return body
	}
	kind, message := "api_error", "The platform's stream could not be read: it is corrupt."
	switch strings.TrimPrefix(x.Name, "stream-content-") {
	case "throttling":
		kind, message = "rate_limit_error", "Too many requests, please wait before trying again."
	case "unavailable":
		kind, message = "overloaded_error", "Bedrock is unable to process your request."
	case "internal":
		message = "The system encountered an unexpected error during processing."
	case "model-stream":
		message = "The model's stream failed."
	case "model-timeout":
		kind, message = "timeout_error", "The model took too long."
	case "validation":
		kind, message = "invalid_request_error", "messages: at least one message is required"
	case "error-frame":
		message = "An internal error occurred"
	case "inner-overloaded":
		kind, message = "overloaded_error", "Overloaded"
	case "end", "stream-no-message-stop":
		message = "The platform ended the stream before the message was complete."
	}
	return append(body, fakeplatform.StreamError(kind, message)...)
}

// checkStopped: an error that goes to the client is in its schema, and the
// platform's own where that speaks it.
func (d door) checkStopped(t testing.TB, x fakeplatform.Failure, a *answer) {
	t.Helper()
	if x.Stream {
		if !bytes.Contains(a.body, []byte("event: error\ndata: {\"type\":\"error\",")) {
			t.Errorf("no error event: %q", a.body)
		}
		if d.platform != fakeplatform.Bedrock && !bytes.Equal(a.body, x.Answer.Body()) {
			t.Errorf("the stream is not the platform's: %q", a.body)
		}
		return
	}
	kind, message, err := messagesError(a)
	want := map[int]string{400: "invalid_request_error", 413: "request_too_large"}[a.status]
	if err != nil || kind != want {
		t.Errorf("error type %q (%v), want %q: %.300s", kind, err, want, a.body)
	}
	if !bytes.Contains(x.Answer.Body(), []byte(message)) {
		t.Errorf("message %q of %.300s", message, x.Answer.Body())
	}
	if bytes.Contains(x.Answer.Body(), []byte(`"type":"error"`)) && !bytes.Equal(a.body, x.Answer.Body()) {
		t.Errorf("body %.300s, want %.300s", a.body, x.Answer.Body())
	}
}
