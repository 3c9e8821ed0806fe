package test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestPlatformErrorsLast: the last target's error is the client's, in its schema
// whatever the platform speaks, with all that belongs to the answer.
func TestPlatformErrorsLast(t *testing.T) {
	var flows []flow
	for _, d := range frontDoors() {
		switch d.platform {
		case fakeplatform.Anthropic, fakeplatform.ClaudeOnAWS: // they speak the client's
			continue
		}
		for _, x := range fakeplatform.Failures(d.platform) {
			if x.Answer.Status < 400 || x.Kind == "invalid_request" || x.Kind == "too_large" {
				continue
			}
			flows = append(flows, d.lastError(x, false))
			if strings.Contains(x.Name, "rate-limit") {
				flows = append(flows, d.lastError(x, true))
			}
		}
	}
	runDoors(t, options{}, flows...)
}

// translatedStatus are those that the client gets in place of a platform's.
var translatedStatus = map[string]int{"not-ready": 529, "quota": 402, "model-error": 500}

func (d door) lastError(x fakeplatform.Failure, stream bool) flow {
	said := x.Answer.With(fakeplatform.Field{Name: "anthropic-ratelimit-requests-remaining", Value: "3"}, fakeplatform.Field{Name: "anthropic-ratelimit-requests-limit", Value: "50"})
	retryAfter := headerField(said, "retry-after")
	if retryAfter == "" {
		retryAfter = "8"
		said = said.With(fakeplatform.Field{Name: "retry-after", Value: retryAfter})
	}
	name := d.platform + "-" + x.Name
	if stream {
		name += "-sse"
	}
	f := flow{
		lane: doorLane(name, []target{firstParty.target(), d.target()}), call: call{stream: stream}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(500, "another answer")}, {said}},
		status: said.Status, served: "b", outcome: "exhausted", attempts: "a server_error failover, b " + x.Kind + " *",
	}
	if s := translatedStatus[x.Name]; s != 0 && d.platform == fakeplatform.Bedrock {
		f.status = s
	}
	f.kind = map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 408: "timeout_error",
		429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error",
	}[f.status]
	f.more = func(t testing.TB, l *laneRun, a *answer, r record) {
		for name, want := range map[string]string{
			"retry-after": retryAfter, "anthropic-ratelimit-requests-remaining": "3", "anthropic-ratelimit-requests-limit": "50", "request-id": d.requestID(),
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s %q, want %q", name, got, want)
			}
		}
		if d.platform == fakeplatform.Bedrock && a.header.Get("x-amzn-requestid") != "req_fake_bedrock_1" {
			t.Errorf("x-amzn-requestid %q", a.header.Get("x-amzn-requestid"))
		}
		if bytes.Contains(said.Body(), []byte(`"type":"error"`)) && !bytes.Equal(a.body, said.Body()) {
			t.Errorf("body %s, want %s", a.body, said.Body())
		}
	}
	return f
}

// requestID is the header of that name in the platform's first answer; bedrock
// has another one.
func (d door) requestID() string {
	switch d.platform {
	case fakeplatform.Bedrock:
		return ""
	case fakeplatform.Vertex:
		return "req_vrtx_fake_1"
	}
	return "req_fake_" + d.platform + "_1"
}

func headerField(a fakeplatform.Answer, name string) string {
	for _, f := range a.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
