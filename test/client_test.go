package test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// promptSecret is in every prompt: it must be found in no log, trail or metric.
const promptSecret = "prompt-Xk93-content"

// call is one request of a client. The zero value asks for JSON by HTTP/1.1.
type call struct {
	stream  bool
	path    string // "" is /v1/messages
	method  string // "" is POST
	body    []byte // nil is a small good one
	pad     int    // bytes added to the good body
	header  http.Header
	h2      bool
	chunked bool
	ctx     context.Context
	client  *http.Client // nil is a shared one
	// uncounted leaves no record in the trail.
	uncounted bool
}

// answer is what a client got.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	err     error // of the body; nil when it ended as its framing says
	headers time.Duration
	total   time.Duration
}

func (a *answer) id() string { return a.header.Get("x-crossdoor-request-id") }

// goodBody is a valid request for the model.
func goodBody(model string, stream bool, pad int) []byte {
	s := ""
	if stream {
		s = `"stream": true, `
	}
	return fmt.Appendf(nil, `{ "model" : %q, "max_tokens": 64, %s"messages": [{"role":"user","content":"%s%s"}]}`, model, s, promptSecret, strings.Repeat("x", pad))
}

// The clients that calls share.
var (
	http1 = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}
	h2c   = &http.Client{Transport: &http2.Transport{
		AllowHTTP: true, DisableCompression: true,
		DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}}
)

func (e *env) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", e.listen, path) }

// open sends the call and returns its response with the body unread.
func (l *laneRun) open(c call) (*http.Response, error) {
	if c.path == "" {
		c.path = "/v1/messages"
	}
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.body == nil && c.method == http.MethodPost {
		c.body = goodBody(l.model(), c.stream, c.pad)
	}
	if c.ctx == nil {
		c.ctx = l.e.t.Context()
	}
	var body io.Reader = bytes.NewReader(c.body)
	if c.chunked {
		body = io.MultiReader(body) // hides the length
	}
	req, err := http.NewRequestWithContext(c.ctx, c.method, l.e.url(c.path), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", "sk-client-"+l.name)
	if c.method == http.MethodPost {
		req.Header.Set("content-type", "application/json")
	}
	for k, v := range c.header {
		req.Header[k] = v
		if len(v) == 0 {
			delete(req.Header, k)
		}
	}
	if !c.uncounted {
		l.sent.Add(1)
	}
	client := c.client
	switch {
	case client != nil:
	case c.h2:
		client = h2c
	default:
		client = http1
	}
	return client.Do(req)
}

// send makes the call and reads the whole answer. A request that gets no answer
// fails the test: the contract has no such case.
func (l *laneRun) send(c call) *answer {
	l.e.t.Helper()
	a, err := l.try(c)
	if err != nil {
		l.e.t.Errorf("lane %s: no answer: %v", l.name, err)
		return &answer{header: http.Header{}, err: err}
	}
	return a
}

func (l *laneRun) try(c call) (*answer, error) {
	if c.ctx == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
		defer cancel()
		c.ctx = ctx
	}
	began := time.Now()
	resp, err := l.open(c)
	if err != nil {
		return nil, err
	}
	return readAnswer(resp, began), nil
}

func readAnswer(resp *http.Response, began time.Time) *answer {
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header, headers: time.Since(began)}
	a.body, a.err = io.ReadAll(resp.Body)
	a.total = time.Since(began)
	return a
}

// messagesError checks that an answer of Crossdoor's own has the schema, and
// returns its type and message.
func messagesError(a *answer) (kind, message string, err error) {
	var v struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		return "", "", fmt.Errorf("not JSON (%v): %.200q", err, a.body)
	}
	if v.Type != "error" || v.Error.Type == "" || v.Error.Message == "" {
		return "", "", fmt.Errorf("not the Messages error schema: %.200s", a.body)
	}
	if ct := a.header.Get("content-type"); !strings.HasPrefix(ct, "application/json") {
		return "", "", fmt.Errorf("content-type %q", ct)
	}
	return v.Error.Type, v.Error.Message, nil
}

var errNoAnswer = errors.New("the connection ended without an answer")

// raw sends bytes on a connection of its own and returns what comes back until
// the other side closes or the limit is over.
func (e *env) raw(limit time.Duration, pieces ...string) (string, error) {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", e.listen), time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	for _, p := range pieces {
		if _, err := io.WriteString(c, p); err != nil {
			return "", err
		}
	}
	b, err := io.ReadAll(c)
	if len(b) == 0 && err == nil {
		err = errNoAnswer
	}
	var ne net.Error
	if len(b) > 0 && errors.As(err, &ne) && ne.Timeout() {
		err = nil // the connection is kept alive: what came is the answer
	}
	return string(b), err
}
