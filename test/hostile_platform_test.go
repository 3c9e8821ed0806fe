package test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// hugeEvent is larger than what Envoy takes back in one piece.
func hugeEvent() []byte { return fakeplatform.TextDelta(0, strings.Repeat("x", 17<<20)) }

// TestHugeConvertedEvent: Envoy would crash on it. Before the commit the next
// target is tried, after it the stream ends with an error event.
func TestHugeConvertedEvent(t *testing.T) {
	start := [][]byte{fakeplatform.MessageStart("msg_huge", "m"), fakeplatform.BlockStart(0)}
	lane := func(name string) lane {
		return lane{name: name, targets: []target{
			{platform: fakeplatform.Bedrock, sigv4: true, yaml: []string{`models: {"` + name + `": eu.anthropic.claude-opus-5-5}`}}, {},
		}}
	}
	runFlows(t, options{},
		flow{
			lane: lane("huge-first"), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{fakeplatform.StreamFor(fakeplatform.Bedrock, append(start, hugeEvent())...)}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a connection failover, b ok serve",
		},
		flow{
			lane: lane("huge-later"), call: call{stream: true},
			scripts: [][]fakeplatform.Answer{{fakeplatform.StreamFor(fakeplatform.Bedrock, append(start, fakeplatform.TextDelta(0, "small"), hugeEvent())...)}},
			status:  200, served: "a", outcome: "stream_failed", attempts: "a stream_error serve",
			more: func(t testing.TB, _ *laneRun, a *answer, _ record) {
				if !bytes.Contains(a.body, []byte("small")) || !bytes.Contains(a.body, []byte("event: error")) {
					t.Errorf("%d bytes, %.300q", len(a.body), a.body)
				}
			},
		})
}

// TestQueryOfASignedRequest: a query that the platform may read in another way
// than it was signed does not go there.
func TestQueryOfASignedRequest(t *testing.T) {
	e := start(t, options{}, lane{name: "query", targets: []target{{platform: fakeplatform.ClaudeOnAWS, sigv4: true}, {}}})
	l := e.lane("query")
	for i, c := range []struct{ query, want string }{
		{"?a=1;b=2", ""}, {"?x=%zz", ""}, {"?a+b=1", ""}, {"?beta=true&", ""}, {"?beta=true", "?beta=true"}, {"", ""},
	} {
		if got := servedBy(l, call{path: "/v1/messages" + c.query}); got != "200 query-a" {
			t.Errorf("%q: %s", c.query, got)
		}
		got := l.fakes[0].Requests()
		if len(got) != i+1 || got[i].Target != "/v1/messages"+c.want {
			t.Errorf("%q went out as %q", c.query, got[len(got)-1].Target)
		}
	}
}

// TestEchoedCredential: a platform that repeats the key in an error tells the
// client nothing where the words are Crossdoor's.
func TestEchoedCredential(t *testing.T) {
	e := start(t, options{}, lane{name: "echo", targets: []target{{platform: fakeplatform.Foundry, yaml: []string{`models: {"echo": dep}`}}}, route: []string{"actions: {credential: stop}"}})
	l := e.lane("echo")
	key := l.keys[0][0]
	l.fakes[0].Script(fakeplatform.AzureError(401, "401", "Access denied due to invalid subscription key "+key+" for this resource"))
	a := l.send(call{})
	if a.status != 401 || bytes.Contains(a.body, []byte(key)) || !bytes.Contains(a.body, []byte("[redacted]")) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if r := l.nth(1); strings.Contains(r.line, key) {
		t.Error("the key is in the trail")
	}
}

// TestSlowFiles: a plan waits for files for a moment, and a file that cannot be
// had is not asked for at each request.
func TestSlowFiles(t *testing.T) {
	e := start(t, options{}, lane{name: "slow-file", uncounted: true, refused: true, targets: []target{
		{yaml: []string{"fetch_files: true"}},
		{platform: fakeplatform.Vertex, yaml: []string{`models: {"slow-file": claude-opus-4-6}`}},
	}})
	l := e.lane("slow-file")
	for range 2 {
		began := time.Now()
		a := l.send(call{uncounted: true, body: filesBody("slow-file", "file_gone1", "file_gone2")})
		if a.status != 200 || time.Since(began) > 5*time.Second {
			t.Errorf("%d after %v: %.200s", a.status, time.Since(began), a.body)
		}
	}
	asked := 0
	for _, r := range l.fakes[0].Requests() {
		if strings.HasPrefix(r.Path(), "/v1/files/") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the owner was asked %d times for a file that it does not have", asked)
	}
}
