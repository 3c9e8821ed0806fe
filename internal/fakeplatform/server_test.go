package fakeplatform

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

const small = `{"model":"claude-opus-5-5","max_tokens":5,"messages":[]}`

func newServer(t *testing.T, platform string) *Server {
	t.Helper()
	s, err := New(platform)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, s *Server, path, body string, fields ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("content-type", "application/json")
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", "k")
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			req.Header.Del(fields[i])
			continue
		}
		req.Header.Set(fields[i], fields[i+1])
	}
	return req
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name, platform, path string
		fields               []string
		body                 string
		rules                Rules
		status               int
		contains             string
	}{
		{name: "anthropic good", platform: Anthropic, path: "/v1/messages", status: 200, contains: `"msg_fake_anthropic_1"`},
		{name: "beta query", platform: Anthropic, path: "/v1/messages?beta=true", status: 200, contains: `"end_turn"`},
		{name: "count tokens", platform: Anthropic, path: "/v1/messages/count_tokens", status: 200, contains: `"input_tokens"`},
		{name: "wrong path", platform: Anthropic, path: "/v1/message", status: 404, contains: `"not_found_error"`},
		{name: "no version", platform: Anthropic, path: "/v1/messages", fields: []string{"anthropic-version", ""}, status: 400, contains: "anthropic-version"},
		{name: "no key", platform: Anthropic, path: "/v1/messages", fields: []string{"x-api-key", ""}, status: 401, contains: `"authentication_error"`},
		{name: "wrong key", platform: Anthropic, path: "/v1/messages", rules: Rules{Keys: []string{"other"}}, status: 401, contains: "invalid x-api-key"},
		{name: "both credentials", platform: Anthropic, path: "/v1/messages", fields: []string{"authorization", "Bearer k"}, status: 401, contains: "more than one"},
		{name: "bearer for a key", platform: Anthropic, path: "/v1/messages", fields: []string{"x-api-key", "", "authorization", "Bearer k"}, status: 401, contains: "must come as"},
		{name: "bearer allowed", platform: Anthropic, path: "/v1/messages", rules: Rules{BearerToo: true}, fields: []string{"x-api-key", "", "authorization", "Bearer k"}, status: 200, contains: "msg_"},
		{name: "not JSON", platform: Anthropic, path: "/v1/messages", body: "hello", status: 400, contains: "not valid JSON"},
		{name: "unknown model", platform: Anthropic, path: "/v1/messages", rules: Rules{Models: []string{"m"}}, status: 404, contains: "model: claude-opus-5-5"},
		{name: "too large", platform: Anthropic, path: "/v1/messages", rules: Rules{BodyLimit: 10}, status: 413, contains: "request_too_large"},
		{name: "aws good", platform: ClaudeOnAWS, path: "/v1/messages", fields: []string{"anthropic-workspace-id", "wrkspc_1"}, status: 200, contains: "claude-on-aws"},
		{name: "aws without workspace", platform: ClaudeOnAWS, path: "/v1/messages", status: 400, contains: "anthropic-workspace-id"},
		{name: "aws other workspace", platform: ClaudeOnAWS, path: "/v1/messages", rules: Rules{Workspace: "wrkspc_2"}, fields: []string{"anthropic-workspace-id", "wrkspc_1"}, status: 404, contains: "workspace"},
		{name: "foundry good", platform: Foundry, path: "/anthropic/v1/messages", status: 200, contains: "hello from foundry"},
		{name: "foundry wrong path", platform: Foundry, path: "/v1/messages", status: 404, contains: `"code":"404"`},
		{name: "foundry bearer", platform: Foundry, path: "/anthropic/v1/messages", fields: []string{"x-api-key", "", "authorization", "Bearer k"}, status: 401, contains: `"code":"401"`},
		{name: "foundry deployment", platform: Foundry, path: "/anthropic/v1/messages", rules: Rules{Models: []string{"m"}}, status: 404, contains: "DeploymentNotFound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.platform)
			s.SetRules(c.rules)
			body := c.body
			if body == "" {
				body = small
			}
			status, got := do(t, request(t, s, c.path, body, c.fields...))
			if status != c.status || !strings.Contains(got, c.contains) {
				t.Fatalf("got %d %s, want %d with %q", status, got, c.status, c.contains)
			}
			if refused := s.Requests()[0].Refusal != ""; refused != (c.status >= 400) {
				t.Errorf("recorded as refused: %v", refused)
			}
		})
	}
}

func TestChunkedIsRefused(t *testing.T) {
	s := newServer(t, Anthropic)
	req := request(t, s, "/v1/messages", small)
	req.ContentLength, req.Body = -1, io.NopCloser(strings.NewReader(small))
	if status, body := do(t, req); status != 400 || !strings.Contains(body, "chunked") {
		t.Fatalf("got %d %s", status, body)
	}
	if r := s.Requests()[0]; !r.Chunked || r.BodySize != int64(len(small)) {
		t.Errorf("record: chunked %v, %d bytes", r.Chunked, r.BodySize)
	}
}

func TestRecordKeepsOrderAndBytes(t *testing.T) {
	s := newServer(t, Anthropic)
	s.KeepBody = 4
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	br := bufio.NewReader(c)
	for n := 1; n <= 2; n++ {
		fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nX-B: 1\r\nHost: h\r\nx-a: 2\r\nx-a: 3\r\nx-api-key: k\r\nanthropic-version: v\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(small), small)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("answer %d: %d, %v", n, resp.StatusCode, err)
		}
	}
	got := s.Requests()
	if len(got) != 2 || got[1].Conn != 1 || got[1].N != 2 {
		t.Fatalf("two requests on one connection expected: %+v", got)
	}
	r := got[0]
	if names := fmt.Sprint(r.Header[:4]); names != "[{X-B 1} {Host h} {x-a 2} {x-a 3}]" {
		t.Errorf("header list %s", names)
	}
	sum := sha256.Sum256([]byte(small))
	if r.BodySHA256 != hex.EncodeToString(sum[:]) || string(r.Body) != small[:4] || r.Model != "claude-opus-5-5" {
		t.Errorf("body record: %s %q %q", r.BodySHA256, r.Body, r.Model)
	}
}

func TestEnds(t *testing.T) {
	start := MessageStart("m", "x")
	for _, c := range []struct {
		name    string
		answer  Answer
		headers bool
		want    error // nil: the body ends clean
	}{
		{"clean stream", GoodStream("m", "x", 3), true, nil},
		{"odd splits", SplitEvery(3, start, CRLF(Ping()), MessageStop()), true, nil},
		{"reset mid-stream", Stream(start).Ending(EndReset), true, syscall.ECONNRESET},
		{"close mid-stream", Stream(start).Ending(EndClose), true, io.ErrUnexpectedEOF},
		{"short JSON", Message("m", "x", "hi").Ending(EndClose), true, io.ErrUnexpectedEOF},
		{"reset before headers", ResetBeforeHeaders(), false, syscall.ECONNRESET},
		{"close before headers", CloseBeforeHeaders(), false, io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, Anthropic)
			s.Script(c.answer)
			resp, err := http.DefaultTransport.RoundTrip(request(t, s, "/v1/messages", small))
			if (err == nil) != c.headers {
				t.Fatalf("headers came: %v (%v)", err == nil, err)
			}
			if err == nil {
				defer resp.Body.Close()
				var body []byte
				body, err = io.ReadAll(resp.Body)
				if want := c.answer.Body(); !errors.Is(c.want, syscall.ECONNRESET) && string(body) != string(want) {
					t.Errorf("body %q, want %q", body, want)
				}
			}
			if !errors.Is(err, c.want) {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
		})
	}
}

func TestStallEndsWithCaller(t *testing.T) {
	s := newServer(t, Anthropic)
	s.Script(Silence())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := http.DefaultClient.Do(request(t, s, "/v1/messages", small).WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("err %v", err)
	}
	for deadline := time.Now().Add(2 * time.Second); s.Requests()[0].Gone.IsZero(); {
		if time.Now().After(deadline) {
			t.Fatal("the server did not see the caller leave")
		}
	}
}

func TestEndlessPartStopsOnClose(t *testing.T) {
	s := newServer(t, Anthropic)
	s.Script(StreamOf(Part{Data: []byte(": x\n\n"), Wait: time.Millisecond, Repeat: -1}))
	resp, err := http.DefaultClient.Do(request(t, s, "/v1/messages", small))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("an endless stream ended clean")
	}
}

func TestTLS(t *testing.T) {
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		force bool
		proto string
	}{{"h2", true, "HTTP/2.0"}, {"http/1.1", false, "HTTP/1.1"}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := NewTLS(ClaudeOnAWS, ca, "127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(ca.PEM())
			tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: c.force}
			defer tr.CloseIdleConnections()
			resp, err := tr.RoundTrip(request(t, s, "/v1/messages", small, "anthropic-workspace-id", "w"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			r := s.Requests()[0]
			if resp.StatusCode != 200 || r.Proto != c.proto || r.Refusal != "" {
				t.Errorf("got %d by %s, refusal %q", resp.StatusCode, r.Proto, r.Refusal)
			}
			if resp.Header.Get("x-amzn-requestid") == "" {
				t.Error("the platform's own request id is missing")
			}
		})
	}
}
