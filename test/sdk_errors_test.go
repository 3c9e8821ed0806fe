package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/test/sdk"
)

// sdkError is a lane whose requests fail, and the error that a client's caller
// gets.
type sdkError struct {
	lane    lane
	answers []fakeplatform.Answer // by target, always
	client  string                // the only one; "" is each
	stream  bool

	requests string // letters of the targets that get one
	status   int
	kind     string // error.type
	message  string // in the error's message
	class    map[string]string
	events   []string
}

// Types of errors by library.
var (
	sdkBadRequest = map[string]string{"go2": "Error", "python2": "BadRequestError", "python1": "BadRequestError"}
	sdkOverloaded = map[string]string{"go2": "Error", "python2": "OverloadedError", "python1": "OverloadedError"}
	// 503 has a class of its own in newer ones.
	sdkUnavailable = map[string]string{"go2": "Error", "python2": "ServiceUnavailableError", "python1": "InternalServerError"}
	sdkLimited     = map[string]string{"go2": "Error", "python2": "RateLimitError", "python1": "RateLimitError"}
)

func sdkErrors(t testing.TB) []sdkError {
	var out []sdkError
	overloaded := fakeplatform.Error(529, "Overloaded")
	for _, platform := range fakeplatform.Platforms() {
		chain := []target{sdkTarget(platform), {}}
		invalid := failureOf(t, platform, "google-invalid", "invalid")
		message := "messages: at least one message is required"
		if platform == fakeplatform.Vertex || platform == fakeplatform.ClaudeOnGoogle {
			message = "Request contains an invalid argument."
		}
		last := failureOf(t, platform, "google-overloaded", "overloaded")
		class := sdkOverloaded
		if last.Status == 503 {
			class = sdkUnavailable
		}
		broken := failureOf(t, platform, "stream-content-overloaded_error", "stream-content-unavailable")
		out = append(out,
			sdkError{lane: lane{name: "invalid-" + platform, targets: chain}, answers: []fakeplatform.Answer{invalid, overloaded}, requests: "a", status: 400, kind: "invalid_request_error", message: message, class: sdkBadRequest},
			sdkError{lane: lane{name: "exhausted-" + platform, targets: []target{{}, sdkTarget(platform)}}, answers: []fakeplatform.Answer{overloaded, last}, requests: "ab", status: last.Status, kind: "overloaded_error", class: class},
			sdkError{lane: lane{name: "broken-" + platform, targets: chain}, answers: []fakeplatform.Answer{broken, overloaded}, stream: true, requests: "a", status: 200, kind: "overloaded_error", events: strings.Fields("message_start content_block_start content_block_delta")},
		)
	}
	refused := target{url: "http://127.0.0.1:1"}
	out = append(out, sdkError{lane: lane{name: "unreachable", targets: []target{refused, refused}}, status: 529, kind: "overloaded_error", class: sdkOverloaded})
	for _, client := range sdkClients { // a 429 leaves the key out for those that follow
		limited := fakeplatform.Error(429, "This request would exceed your organization's rate limit.", fakeplatform.Field{Name: "retry-after", Value: "1"})
		out = append(out, sdkError{lane: lane{name: "limited-" + client.name, targets: two()}, answers: []fakeplatform.Answer{limited, limited}, client: client.name, requests: "ab", status: 429, kind: "rate_limit_error", message: "exceed your organization", class: sdkLimited})
	}
	return out
}

// TestSDKErrors: what cannot be served is the library's typed error, once: the
// libraries, which retry such statuses by themselves, are told not to.
func TestSDKErrors(t *testing.T) {
	cases := slices.DeleteFunc(sdkCases(), func(c sdkCase) bool { return c.name != "text" && c.name != "text-stream" })
	errs := sdkErrors(t)
	var lanes []lane
	for _, x := range errs {
		lanes = append(lanes, x.lane.forSDK())
	}
	e := start(t, sdkOptions(), lanes...)
	for i, l := range e.order {
		for j, a := range errs[i].answers {
			l.fakes[j].Always(a)
		}
	}
	results := runSDKs(t, func(client sdkClient) []sdk.Job {
		var jobs []sdk.Job
		for i, x := range errs {
			for _, c := range cases {
				if x.has(client, c) {
					jobs = append(jobs, c.job(client, e.order[i]))
					e.order[i].sent.Add(1)
				}
			}
		}
		return jobs
	})
	if t.Failed() {
		return
	}
	for i, x := range errs {
		t.Run(x.lane.name, func(t *testing.T) {
			l := e.order[i].in(t)
			seen := l.sdkRequests()
			for _, client := range sdkClients {
				for _, c := range cases {
					if x.has(client, c) {
						name := c.job(client, l).Name
						t.Run(client.name+"/"+c.name, func(t *testing.T) { x.check(t, client, results[name], seen[name]) })
					}
				}
			}
		})
	}
}

// has reports whether the client sends the case on the lane. A key that a 429
// has left out answers one request.
func (x sdkError) has(client sdkClient, c sdkCase) bool {
	if x.client != "" {
		return x.client == client.name && !c.stream
	}
	return c.stream || !x.stream
}

func (x sdkError) check(t testing.TB, client sdkClient, got sdk.Result, requests []sdkRequest) {
	t.Helper()
	if letters := checkNoRetry(t, requests); letters != x.requests {
		t.Errorf("requests at %q, want %q", letters, x.requests)
	}
	if got.Error == nil {
		t.Fatalf("the client saw no error: %+v", got)
	}
	if got.Message != nil {
		t.Errorf("the client saw an error and a message")
	}
	if e := got.Error; e.Status != x.status || e.Type != x.kind || !strings.Contains(e.Message, x.message) || e.Message == "" {
		t.Errorf("error %+v, want status %d, type %s, message %q", *e, x.status, x.kind, x.message)
	}
	if want := x.class[client.name]; want != "" && got.Error.Class != want {
		t.Errorf("the error's class is %s, want %s", got.Error.Class, want)
	}
	if !slices.Equal(got.Events, x.events) {
		t.Errorf("events %v, want %v", got.Events, x.events)
	}
}
