package test

import (
	"bytes"
	"encoding/json"
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

// TestClientProtocols: every way to send a request ends in the same request at
// the platform, with content-length, also after a failed first attempt.
func TestClientProtocols(t *testing.T) {
	var flows []flow
	for _, c := range []struct {
		name string
		call call
	}{
		{"http1", call{}}, {"http1-chunked", call{chunked: true}}, {"h2", call{h2: true}}, {"h2-no-length", call{h2: true, chunked: true}},
		{"http1-sse", call{stream: true}}, {"h2-sse", call{h2: true, stream: true}}, {"expect", call{header: header("Expect", "100-continue")}},
		{"http1-1mb", call{pad: 1 << 20}}, {"chunked-1mb", call{chunked: true, pad: 1 << 20}}, {"h2-1mb", call{h2: true, pad: 1 << 20}},
	} {
		flows = append(flows, flow{
			lane: lane{name: c.name}, call: c.call, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "x")}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				want := goodBody(l.model(), c.call.stream, c.call.pad)
				for i, f := range l.fakes {
					r := f.Requests()[0]
					if r.Chunked || r.Get("content-length") != strconv.Itoa(len(want)) || r.BodySHA256 != hash(want) {
						t.Errorf("target %s: chunked %v, content-length %q, same bytes %v", letter(i), r.Chunked, r.Get("content-length"), r.BodySHA256 == hash(want))
					}
				}
			},
		})
	}
	runFlows(t, options{}, flows...)
}

func TestTrailers(t *testing.T) {
	e := start(t, options{}, lane{name: "trailers", targets: two()})
	l := e.lane("trailers")
	l.fakes[0].Script(fakeplatform.Error(529, "x"))
	body := goodBody("trailers", false, 0)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url("/v1/messages"), io.MultiReader(bytes.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header("content-type", "application/json", "anthropic-version", "2023-06-01")
	req.Trailer = header("x-checksum", "1")
	l.sent.Add(1)
	resp, err := h2c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	a := readAnswer(resp, time.Now())
	if got := l.fakes[1].Requests(); a.status != 200 || len(got) != 1 || got[0].BodySHA256 != hash(body) {
		t.Errorf("status %d, %d requests at b: %.200s", a.status, len(got), a.body)
	}
}

// TestOtherRequests: what is no message request.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	e := start(t, options{top: []string{"limits: {body_time: 2s}"}}, lane{name: "claude-opus-5-5", targets: two(), uncounted: true})
	l := e.lane("claude-opus-5-5")
	for _, c := range []struct {
		name   string
		call   call
		status int
		kind   string
		says   string
	}{
		{"other path", call{path: "/v1/complete"}, 404, "not_found_error", ""},
		{"organizations", call{path: "/v1/organizations", method: http.MethodGet}, 404, "not_found_error", ""},
		{"root", call{path: "/", method: http.MethodGet}, 404, "not_found_error", ""},
		{"method", call{method: http.MethodGet}, 405, "", ""},
		{"method put", call{method: http.MethodPut, body: []byte("{}")}, 405, "", ""},
		{"models by post", call{path: "/v1/models"}, 405, "", ""},
		{"no body", call{body: []byte{}}, 400, "invalid_request_error", ""},
		{"no body chunked", call{body: []byte{}, chunked: true}, 400, "invalid_request_error", ""},
		{"no body h2", call{body: []byte{}, h2: true}, 400, "invalid_request_error", ""},
		{"unknown model", call{body: goodBody("gpt-9", false, 0)}, 404, "not_found_error", "claude-opus-5-5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := l.in(t).send(c.call)
			kind, message, err := messagesError(a)
			if a.status != c.status || err != nil || (c.kind != "" && kind != c.kind) || !strings.Contains(message, c.says) {
				t.Errorf("got %d %s %q (%v), want %d %s", a.status, kind, message, err, c.status, c.kind)
			}
			checkNoEnvoy(t, a)
		})
	}
	t.Run("models", func(t *testing.T) { checkModels(t, l.in(t)) })
	t.Run("stalled upload", func(t *testing.T) { checkStalledUpload(t, e) })
	t.Run("no host", func(t *testing.T) {
		got, err := e.raw(3*time.Second, "POST /v1/messages HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 400") || !strings.Contains(got, `"invalid_request_error"`) {
			t.Errorf("got %q, %v", got, err)
		}
	})
	if n := len(l.fakes[0].Requests()) + len(l.fakes[1].Requests()); n != 0 {
		t.Errorf("%d requests reached a platform", n)
	}
}

func checkModels(t *testing.T, l *laneRun) {
	a := l.send(call{path: "/v1/models", method: http.MethodGet})
	var list struct {
		Data []struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		} `json:"data"`
		HasMore *bool `json:"has_more"`
	}
	if err := json.Unmarshal(a.body, &list); err != nil || a.status != 200 || list.HasMore == nil || *list.HasMore {
		t.Fatalf("got %d %s (%v)", a.status, a.body, err)
	}
	if len(list.Data) != 1 || list.Data[0].ID != "claude-opus-5-5" || list.Data[0].Type != "model" {
		t.Errorf("models %s", a.body)
	}
}

func checkStalledUpload(t *testing.T, e *env) {
	began := time.Now()
	got, err := e.raw(8*time.Second, "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"model\"")
	if err != nil || !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, `"type":"error"`) {
		t.Errorf("got %q, %v", got, err)
	}
	if d := time.Since(began); d < 1900*time.Millisecond || d > 5*time.Second {
		t.Errorf("after %v", d)
	}
}

// TestExpectContinue: the client is told to go on, the platform never sees it.
func TestExpectContinue(t *testing.T) {
	e := start(t, options{}, lane{name: "expect", targets: two()})
	l := e.lane("expect")
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", e.listen))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	body := goodBody("expect", false, 0)
	l.sent.Add(1)
	fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n", len(body))
	head := make([]byte, 25)
	if _, err := io.ReadFull(c, head); err != nil || string(head) != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("got %q, %v", head, err)
	}
	if _, err := c.Write(body); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, head[:15]); err != nil || string(head[:15]) != "HTTP/1.1 200 OK" {
		t.Errorf("got %q, %v", head[:15], err)
	}
}

// TestSixExchangesOnOneConnection: HTTP/2 streams do not wait for each other.
func TestSixExchangesOnOneConnection(t *testing.T) {
	slow := lane{name: "slow", targets: two()}
	quick := lane{name: "quick", targets: two()}
	e := start(t, options{}, slow, quick)
	gate := make(chan struct{})
	e.lane("slow").fakes[0].Always(fakeplatform.Message("m", "m", "late").Held(gate))
	done := make(chan int, 3)
	for range 3 {
		go func() { done <- e.lane("slow").send(call{h2: true}).status }()
	}
	eventually(t, 5*time.Second, "three requests wait", func() error {
		if n := len(e.lane("slow").fakes[0].Requests()); n != 3 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	for range 3 {
		if a := e.lane("quick").send(call{h2: true}); a.status != 200 || a.total > 5*time.Second {
			t.Errorf("quick: %d after %v", a.status, a.total)
		}
	}
	close(gate)
	for range 3 {
		if s := <-done; s != 200 {
			t.Errorf("slow: %d", s)
		}
	}
}
