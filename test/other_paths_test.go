package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestOtherPaths: what `other_paths` allows goes to its target as it is, and
// everything else gets 404.
func TestOtherPaths(t *testing.T) {
	e := start(t, options{top: []string{`other_paths: {target: other-a, allow: ["POST /v1/messages/batches", "GET /v1/*", "DELETE /v1/files/*", "POST /v1/files"]}`}},
		lane{name: "other", targets: two(), uncounted: true})
	l := e.lane("other")
	l.fakes[0].Respond(func(r fakeplatform.Request) fakeplatform.Answer {
		return fakeplatform.Raw(200, "application/x-jsonl", []byte(strings.Repeat(`{"line":1}`+"\n", 1000)), fakeplatform.Field{Name: "request-id", Value: "req_other"})
	})
	t.Run("allowed", func(t *testing.T) {
		body := bytes.Repeat([]byte(`{"requests":[]} `), 1<<20)
		sum := sha256.Sum256(body)
		a := l.in(t).send(call{uncounted: true, path: "/v1/messages/batches?beta=true", body: body, header: header("Cookie", "a=b", "X-Api-Key", "client-key", "Anthropic-Beta", "x-1")})
		if a.status != 200 || !bytes.HasPrefix(a.body, []byte(`{"line":1}`)) || a.header.Get("x-crossdoor-served-by") != "other-a" || a.header.Get("x-crossdoor-attempts") != "1" {
			t.Fatalf("%d %v %.100s", a.status, a.header, a.body)
		}
		got := l.fakes[0].Requests()
		r := got[len(got)-1]
		if r.BodySHA256 != hex.EncodeToString(sum[:]) || r.Target != "/v1/messages/batches?beta=true" || r.Get("x-api-key") != l.keys[0][0] || r.Get("cookie") != "" || r.Get("anthropic-beta") != "x-1" {
			t.Errorf("%s %v, %d bytes", r.Target, r.Header, r.BodySize)
		}
		for _, h := range r.Header {
			if strings.HasPrefix(strings.ToLower(h.Name), "x-crossdoor") || strings.HasPrefix(strings.ToLower(h.Name), "x-envoy") {
				t.Errorf("%s reached the platform", h.Name)
			}
		}
		rec := l.in(t).byID(a.id())
		if rec.Outcome != "served" || rec.ServedBy != "other-a" || len(rec.Attempts) != 1 || rec.Attempts[0].Status != 200 || rec.RequestID != "req_other" {
			t.Errorf("%+v", rec)
		}
	})
	t.Run("not allowed", func(t *testing.T) {
		before := len(l.fakes[0].Requests())
		for _, c := range []struct{ method, path string }{
			{"POST", "/v1/messages/batches/x"}, {"PUT", "/v1/files/x"}, {"GET", "/v1/organizations/x"}, {"GET", "/v1/user_profiles"}, {"GET", "/v2/x"},
			{"GET", "/v1/files/%2e%2e/organizations"}, {"GET", "/v1//organizations"}, {"GET", "/v1/files/../organizations"}, {"GET", "/v1/Organizations"},
		} {
			a := l.in(t).send(call{uncounted: true, method: c.method, path: c.path, body: []byte("{}")})
			kind, _, err := messagesError(a)
			if a.status != 404 || kind != "not_found_error" || err != nil {
				t.Errorf("%s %s: %d %v %.200s", c.method, c.path, a.status, err, a.body)
			}
		}
		if after := len(l.fakes[0].Requests()); after != before {
			t.Errorf("%d requests went out", after-before)
		}
	})
	t.Run("errors pass untouched and blame nothing", func(t *testing.T) {
		for range 6 {
			l.fakes[0].Script(fakeplatform.Error(429, "slow down", fakeplatform.Field{Name: "retry-after", Value: "60"}))
			a := l.in(t).send(call{uncounted: true, method: "GET", path: "/v1/models/x"})
			if a.status != 429 || a.header.Get("retry-after") != "60" || !bytes.Contains(a.body, []byte("slow down")) {
				t.Fatalf("%d %v %.100s", a.status, a.header, a.body)
			}
			if rec := l.in(t).byID(a.id()); rec.Outcome != "stopped" || rec.Attempts[0].Outcome != "rate_limit" {
				t.Errorf("%+v", rec)
			}
		}
		l.fakes[0].Respond(nil)
		if got := servedBy(l.in(t), call{uncounted: true}); got != "200 other-a" {
			t.Errorf("the target's models are out: %s", got)
		}
	})
	t.Run("the target is down", func(t *testing.T) {
		l.fakes[0].Script(fakeplatform.ResetBeforeHeaders())
		a := l.in(t).send(call{uncounted: true, method: "GET", path: "/v1/models/x"})
		if kind, _, _ := messagesError(a); a.status != 529 || kind != "overloaded_error" {
			t.Errorf("%d %.200s", a.status, a.body)
		}
		if rec := l.in(t).byID(a.id()); rec.Outcome != "exhausted" || rec.Attempts[0].Outcome != "connection" {
			t.Errorf("%+v", rec)
		}
	})
}

// TestOtherPathsAreUnbuffered: a large upload does not stay in Envoy, and none of
// it in the service.
func TestOtherPathsAreUnbuffered(t *testing.T) {
	e := start(t, options{top: []string{`limits: {body: 1MiB}`, `other_paths: {target: up-a, allow: ["POST /v1/messages/batches"]}`}},
		lane{name: "up", targets: two(), uncounted: true})
	l := e.lane("up")
	l.fakes[0].Respond(func(fakeplatform.Request) fakeplatform.Answer {
		return fakeplatform.Raw(http.StatusOK, "application/json", []byte(`{"id":"msgbatch_1"}`))
	})
	before := envoyPeak(t, e)
	body := bytes.Repeat([]byte("0123456789abcdef"), 6<<20) // 96 MiB
	a := l.send(call{uncounted: true, path: "/v1/messages/batches", body: body})
	if a.status != 200 {
		t.Fatalf("%d %.200s", a.status, a.body)
	}
	if r := l.fakes[0].Requests()[0]; r.BodySize != int64(len(body)) {
		t.Errorf("%d bytes came, want %d", r.BodySize, len(body))
	}
	if grown := envoyPeak(t, e) - before; grown > 48<<20 {
		t.Errorf("Envoy grew by %d MiB", grown>>20)
	}
}

// envoyPeak is the most that Envoy has held, in bytes.
func envoyPeak(t *testing.T, e *env) int64 {
	t.Helper()
	n, err := statusValue(e.envoy.cmd.Process.Pid, "VmHWM:")
	if err != nil {
		t.Fatal(err)
	}
	return n
}
