package test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fullBody is a good body of exactly n bytes.
func fullBody(model string, n int) []byte {
	return goodBody(model, false, n-len(goodBody(model, false, 0)))
}

// TestBodiesArriveUnchanged: at the first-party target on attempts 1 and 3, with
// only the model's span changed where the ID differs.
func TestBodiesArriveUnchanged(t *testing.T) {
	var flows []flow
	for _, c := range []struct {
		name string
		size int
	}{{"b1k", 1 << 10}, {"b64k", 64 << 10}, {"b1m", 1 << 20}, {"b1m-and-one", 1<<20 + 1}, {"b8m", 8 << 20}, {"b32m", 32<<20 - len("dep-")}} { // a longer ID must fit, too
		targets := three(c.name)
		busy := fakeplatform.Error(529, "x")
		f := flow{
			lane: lane{name: c.name, targets: targets, chain: "[@a, @c, @a, @b]"}, call: call{body: fullBody(c.name, c.size)},
			scripts: [][]fakeplatform.Answer{{busy, busy}, {}, {busy}},
			status:  200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, c overloaded failover, a overloaded failover, b ok serve",
		}
		f.more = func(t testing.TB, l *laneRun, _ *answer, _ record) {
			want := hash(f.call.body)
			renamed := hash(replaceModel(f.call.body, c.name, "dep-"+c.name))
			a, b, foundry := l.fakes[0].Requests(), l.fakes[1].Requests(), l.fakes[2].Requests()
			if len(a) != 2 || len(b) != 1 || len(foundry) != 1 {
				t.Fatalf("requests: %d, %d, %d", len(a), len(b), len(foundry))
			}
			if a[0].BodySHA256 != want || a[1].BodySHA256 != want || b[0].BodySHA256 != want {
				t.Errorf("the body is not the client's: %v %v %v", a[0].BodySHA256 == want, a[1].BodySHA256 == want, b[0].BodySHA256 == want)
			}
			if foundry[0].BodySHA256 != renamed {
				t.Errorf("the renamed body differs in more than the model (%d bytes)", foundry[0].BodySize)
			}
		}
		flows = append(flows, f)
	}
	runFlows(t, options{}, flows...)
}

// TestBodyLimit: 413 in the client's schema, with content-length and chunked.
func TestBodyLimit(t *testing.T) {
	e := start(t, options{top: []string{"limits: {body: 1MiB}"}}, lane{name: "limit", targets: two(), uncounted: true})
	l := e.lane("limit")
	for _, c := range []struct {
		name   string
		call   call
		status int
	}{
		{"at the limit", call{body: fullBody("limit", 1<<20)}, 200},
		{"at the limit chunked", call{body: fullBody("limit", 1<<20), chunked: true}, 200},
		{"above", call{body: fullBody("limit", 1<<20+1)}, 413},
		{"above chunked", call{body: fullBody("limit", 1<<20+1), chunked: true}, 413},
		{"above h2", call{body: fullBody("limit", 1<<20+1), h2: true}, 413},
		{"far above", call{body: fullBody("limit", 9<<20)}, 413},
		{"far above chunked", call{body: fullBody("limit", 9<<20), chunked: true}, 413},
		{"far above h2", call{body: fullBody("limit", 9<<20), h2: true, chunked: true}, 413},
		{"gzip bomb", call{body: zipped(fullBody("limit", 64<<20)), header: header("Content-Encoding", "gzip")}, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := l.in(t).try(c.call)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			if a.status != c.status {
				t.Fatalf("status %d, want %d: %.200s", a.status, c.status, a.body)
			}
			checkNoEnvoy(t, a)
			if c.status != 413 {
				return
			}
			if kind, _, err := messagesError(a); err != nil || kind != "request_too_large" {
				t.Errorf("kind %q, %v", kind, err)
			}
		})
	}
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil // a buffer takes everything
	}
	if err := w.Close(); err != nil {
		return nil // as above
	}
	return out.Bytes()
}

// TestEncodedBodies: gzip is decoded and sent on decoded; others get 415.
func TestEncodedBodies(t *testing.T) {
	gz := flow{
		lane: lane{name: "gzip"}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "x")}},
		call:   call{body: zipped(goodBody("gzip", false, 5000)), header: header("Content-Encoding", "gzip")},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			want := hash(goodBody("gzip", false, 5000))
			for i, f := range l.fakes {
				if r := f.Requests()[0]; r.BodySHA256 != want {
					t.Errorf("target %s got %d other bytes", letter(i), r.BodySize)
				}
			}
		},
	}
	runFlows(t, options{}, gz)
	e := start(t, options{}, lane{name: "other", targets: two(), uncounted: true})
	for _, coding := range []string{"br", "zstd", "deflate", "gzip, gzip"} {
		t.Run(coding, func(t *testing.T) {
			a := e.lane("other").in(t).send(call{header: header("Content-Encoding", coding)})
			if _, _, err := messagesError(a); a.status != 415 || err != nil {
				t.Errorf("got %d (%v): %.200s", a.status, err, a.body)
			}
		})
	}
}

// TestBigPromptsTogether: each with a failed first attempt; no crash of Envoy, no
// lost retry, every byte right.
func TestBigPromptsTogether(t *testing.T) {
	for _, c := range []struct {
		name             string
		big, size, small int
	}{{"many-big", 24, 32 << 20, 0}, {"big-beside-small", 8, 8 << 20, 200}} {
		t.Run(c.name, func(t *testing.T) {
			// Workers share what the big bodies take; two show races that one hides.
			e := start(t, options{top: []string{"limits: {memory: 2GiB}"}, concurrency: "2"}, lane{name: "big", targets: two(), route: []string{"timeouts: {attempt: 2m}"}})
			l := e.lane("big")
			for _, f := range l.fakes {
				f.KeepBody = 0
			}
			l.fakes[0].Always(fakeplatform.ErrorOf(429, "rate_limit_error", "Extra usage is required", ""))
			body := fullBody("big", c.size)
			var wg sync.WaitGroup
			run := func(what string, cl call) {
				wg.Go(func() {
					a, err := l.try(cl)
					if err != nil || a.status != 200 || a.header.Get("x-crossdoor-served-by") != "big-b" {
						t.Errorf("%s: %v", what, describe(a, err))
					}
				})
			}
			for range c.big {
				run("big", call{body: body, client: ownClient()})
			}
			for range c.small {
				run("small", call{})
			}
			wg.Wait()
			big := 0
			for _, r := range l.fakes[1].Requests() {
				if r.BodySHA256 == hash(body) {
					big++
				}
			}
			if big != c.big || len(l.fakes[1].Requests()) != c.big+c.small {
				t.Errorf("%d of %d big bodies arrived whole, %d requests in all", big, c.big, len(l.fakes[1].Requests()))
			}
			e.metric(0, "inflight")
		})
	}
}

func describe(a *answer, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d by %q: %.200s", a.status, a.header.Get("x-crossdoor-served-by"), a.body)
}
