package test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// earlyLimit is a platform that answers 429 after it read n bytes of a body, and
// goes on reading. It returns its address.
func earlyLimit(t *testing.T, n int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := io.CopyN(io.Discard, c, n); err != nil {
					return
				}
				body := limited().Body()
				fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
				_, _ = io.Copy(io.Discard, c) // until the gateway leaves
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// slowly yields a body in pieces.
type slowly struct {
	body  []byte
	piece int
	tick  *time.Ticker
}

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.body) == 0 {
		return 0, io.EOF
	}
	<-s.tick.C
	n := copy(p, s.body[:min(s.piece, len(s.body), len(p))])
	s.body = s.body[n:]
	return n, nil
}

// TestReport57_SlowUpload: a body that is still arriving while the first target
// would already have failed. The plan waits for the whole of it, so the retry has
// it: the next target's answer, no 507, one record.
func TestReport57_SlowUpload(t *testing.T) {
	l1 := wrenLane("r57", []string{fp, cpaws})
	l1.targets[0].url = earlyLimit(t, 200<<10)
	l1.targets[0].rules = nil
	e := startReports(t, options{}, l1)
	l := e.lane("r57")
	body := r1Of(`[{"role":"user","content":"` + strings.Repeat("x", 4<<20) + `"}]`)
	for _, known := range []bool{true, false} {
		tick := time.NewTicker(10 * time.Millisecond)
		var upload io.Reader = &slowly{body: body, piece: 64 << 10, tick: tick}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url("/v1/messages"), upload)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header("Content-Type", "application/json", "Anthropic-Version", "2023-06-01", "X-Api-Key", "sk-client-r57", "X-Report", "r57")
		if known {
			req.ContentLength = int64(len(body))
		}
		began := time.Now()
		l.sent.Add(1)
		resp, err := ownClient().Do(req)
		tick.Stop()
		if err != nil {
			t.Fatal(err)
		}
		a := readAnswer(resp, began)
		if a.status != 200 || a.header.Get("x-crossdoor-served-by") != "r57-b" {
			t.Errorf("%s", describe(a, a.err))
		}
		checkNoEnvoy(t, a)
		r := l.byID(a.id())
		// The first is judged by its 429, the second finds the key away.
		if got := r.summary(); got != "a rate_limit failover, b ok serve" && known {
			t.Errorf("attempts %q", got)
		}
	}
	for _, got := range l.fakes[1].Requests() {
		if got.BodySHA256 != hash(body) {
			t.Errorf("%d other bytes arrived", got.BodySize)
		}
	}
	e.metric(2, "requests_total", "route", "r57")
	e.metric(0, "inflight")
}

// TestReport59_TooLargeIsNotInvalid: a body over the limit is 413, a broken one
// 400, never the other way round; neither reaches a platform or a breaker.
func TestReport59_TooLargeIsNotInvalid(t *testing.T) {
	const limit = 64 << 10
	e := startReports(t, options{top: []string{"limits: {body: 64KiB}"}}, func() lane {
		l := wrenLane("r59", []string{fp, cpaws})
		l.uncounted = true // a chunked 413 is Envoy's: it has no plan
		return l
	}())
	l := e.lane("r59")
	sized := func(n int) []byte {
		empty := r1Of(`[{"role":"user","content":""}]`)
		return r1Of(`[{"role":"user","content":"` + strings.Repeat("x", n-len(empty)) + `"}]`)
	}
	broken := []byte(`{"model":"claude-wren-1","messages":[`)
	if len(broken) != 37 {
		t.Fatalf("%d bytes", len(broken))
	}
	for _, c := range []struct {
		name   string
		call   call
		status int
		kind   string
	}{
		{"one byte over", call{body: sized(limit + 1)}, 413, "request_too_large"},
		{"one byte over, chunked", call{body: sized(limit + 1), chunked: true}, 413, "request_too_large"},
		{"one byte over, h2", call{body: sized(limit + 1), h2: true}, 413, "request_too_large"},
		{"over and broken", call{body: sized(limit + 1)[:limit+1], chunked: true}, 413, "request_too_large"},
		{"over when decoded", call{body: zipped(sized(limit + 1)), header: header("Content-Encoding", "gzip")}, 413, "request_too_large"},
		{"far over", call{body: sized(40 * limit)}, 413, "request_too_large"},
		{"far over, chunked", call{body: sized(40 * limit), chunked: true}, 413, "request_too_large"},
		{"broken", call{body: broken}, 400, "invalid_request_error"},
		{"broken, chunked", call{body: broken, chunked: true}, 400, "invalid_request_error"},
		{"cut at the limit", call{body: sized(limit + 1)[:limit]}, 400, "invalid_request_error"},
		{"cut gzip", call{body: zipped(sized(1000))[:100], header: header("Content-Encoding", "gzip")}, 400, "invalid_request_error"},
		{"empty", call{body: []byte{}}, 400, "invalid_request_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := l.in(t).ask(c.call)
			kind, _, err := messagesError(a)
			if a.status != c.status || kind != c.kind || err != nil {
				t.Errorf("%d %s (%v), want %d %s: %.200s", a.status, kind, err, c.status, c.kind, a.body)
			}
			if a.header.Get("x-should-retry") != "false" || a.header.Get("x-crossdoor-attempts") != "0" {
				t.Errorf("headers %v", a.header)
			}
			checkNoEnvoy(t, a)
			if r := l.in(t).byID(a.id()); r.Outcome != "rejected" || r.Status != c.status || len(r.Attempts) != 0 {
				t.Errorf("record %s", r.line)
			}
		})
	}
	if n := l.total(); n != 0 {
		t.Errorf("%d requests at platforms", n)
	}
	l.opened(t, 0, "")
	if a := l.ask(call{body: sized(limit)}); a.status != 200 || l.fakes[0].Requests()[0].BodySHA256 != hash(sized(limit)) {
		t.Errorf("at the limit: %s", describe(a, a.err))
	}
}

// TestReport61_EncodedErrors: an error that is compressed although identity was
// asked for is classified by what it says. What goes to the client has headers
// and body that agree.
func TestReport61_EncodedErrors(t *testing.T) {
	encoded := func(a fakeplatform.Answer) fakeplatform.Answer {
		return fakeplatform.Raw(a.Status, "application/json", zipped(a.Body()), fakeplatform.Field{Name: "content-encoding", Value: "gzip"})
	}
	accepting := call{header: header("Accept-Encoding", "gzip, br")}
	wallet, bad := encoded(fakeplatform.Error(400, emptyWallet)), encoded(fakeplatform.Error(400, "messages: roles must alternate"))
	long := encoded(fakeplatform.Error(400, "prompt is too long: 214113 tokens > 200000 maximum"))
	cut := wallet
	cut.Parts = []fakeplatform.Part{{Data: wallet.Body()[:20]}}
	agree := func(t testing.TB, _ *laneRun, a *answer, _ record) {
		if a.header.Get("content-encoding") != "gzip" {
			t.Errorf("headers %v", a.header)
		}
	}
	stop := func(name, kind string, a fakeplatform.Answer) report {
		return report{flow: flow{lane: wrenLane(name, []string{fp, cpaws}), call: accepting, scripts: [][]fakeplatform.Answer{{a}},
			status: 400, served: "a", outcome: "stopped", attempts: "a " + kind + " stop", body: a.Body(), more: agree}}
	}
	moved := report{flow: flow{lane: wrenLane("r61", []string{fp, cpaws}), call: accepting, scripts: [][]fakeplatform.Answer{{wallet}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a billing_quota failover, b ok serve",
		more: func(t testing.TB, l *laneRun, a *answer, _ record) {
			l.opened(t, 0, "key")
			if a.header.Get("content-encoding") != "" {
				t.Errorf("headers %v", a.header)
			}
		}}}
	last := report{flow: flow{lane: wrenLane("r61-last", []string{fp}), call: accepting, scripts: [][]fakeplatform.Answer{{wallet}},
		status: 400, served: "a", outcome: "exhausted", attempts: "a billing_quota *", body: wallet.Body(), more: agree}}
	reports := append(streamed(moved), last, stop("r61-invalid", "invalid_request", bad), stop("r61-long", "too_large", long), stop("r61-cut", "invalid_request", cut))
	runReports(t, options{}, reports...)
}

// TestReport55_NeverChunked: no platform gets a chunked body, however it came
// from the client and whichever attempt it is.
func TestReport55_NeverChunked(t *testing.T) {
	var reports []report
	for name, c := range map[string]call{"length": {}, "chunked": {chunked: true}, "h2": {h2: true}, "h2-no-length": {h2: true, chunked: true}} {
		c.body = r1Of(`[{"role":"user","content":"` + strings.Repeat("x", 300<<10) + `"}]`)
		reports = append(reports,
			report{flow: flow{lane: wrenLane("r55-"+name, []string{vertex}), call: c, status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: lengths}},
			report{flow: flow{
				lane: wrenLane("r55-second-"+name, []string{fp, vertex, bedrock, foundry, cpaws}), call: c, scripts: [][]fakeplatform.Answer{{busy529}, {busy529}, {fakeplatform.BedrockError(503, "", "busy")}, {busy529}},
				status: 200, served: "e", outcome: "failed_over", attempts: "a overloaded failover, b overloaded failover, c overloaded failover, d overloaded failover, e ok serve", more: lengths,
			}},
		)
	}
	runReports(t, options{}, reports...)
}

// lengths: every request says how long its body is, once and rightly.
func lengths(t testing.TB, l *laneRun, _ *answer, _ record) {
	t.Helper()
	for i, f := range l.fakes {
		for _, r := range f.Requests() {
			if r.Chunked || r.Count("transfer-encoding") != 0 || r.Count("content-length") != 1 || r.Get("content-length") != strconv.FormatInt(r.BodySize, 10) || !bytes.HasPrefix(r.Body, []byte("{")) {
				t.Errorf("%s: %s", l.targetName(i), headerText(r))
			}
		}
	}
}
