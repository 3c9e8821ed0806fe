package envoy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/crossdoor/crossdoor/envoy"
	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy/config"
)

// renderable is what start renders; edit, when set, changes the text after.
type renderable struct {
	policy   *config.Policy
	services []envoy.Service
	edit     func([]byte) []byte
}

// nowhere is a service that nobody listens as.
func nowhere(t *testing.T) []envoy.Service {
	t.Helper()
	return []envoy.Service{{Host: "127.0.0.1", Port: freePort(t)}}
}

func ask(ctx context.Context, method, url string, body io.Reader) (int, http.Header, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, nil, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text), err
}

// wantReply checks an answer of Envoy's: the client's schema, nothing of Envoy.
func wantReply(t *testing.T, code int, header http.Header, body string, wantCode int, wantType string) {
	t.Helper()
	var message struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		t.Fatalf("%d with a body that is not JSON: %q", code, body)
	}
	if code != wantCode || message.Type != "error" || message.Error.Type != wantType || message.Error.Message == "" {
		t.Errorf("got %d %s, want %d %s", code, body, wantCode, wantType)
	}
	if got := header.Get("content-type"); got != "application/json" {
		t.Errorf("content-type is %q", got)
	}
	if got := header.Get("x-should-retry"); got != "false" {
		t.Errorf("x-should-retry is %q", got)
	}
	for name := range header {
		if name == "Server" || strings.HasPrefix(name, "X-Envoy-") || strings.HasPrefix(name, "X-Crossdoor-") {
			t.Errorf("the answer has %s: %s", name, header.Get(name))
		}
	}
}

func TestServiceDownRejects(t *testing.T) {
	for _, file := range []string{"envoy.yaml", "dynamic/envoy.yaml"} {
		t.Run(file, func(t *testing.T) {
			r := start(t, renderable{policy: onePolicy(), services: nowhere(t)}, file)
			for _, path := range []string{"/v1/messages", "/anything"} {
				code, header, body, err := ask(t.Context(), http.MethodPost, r.url+path, strings.NewReader(`{}`))
				if err != nil {
					t.Fatal(err)
				}
				wantReply(t, code, header, body, 503, "overloaded_error")
			}
		})
	}
}

// What Envoy refuses itself is JSON, also when the service says nothing to it,
// and what it refuses before any filter too.
func TestOwnRepliesAreJSON(t *testing.T) {
	p := onePolicy()
	p.Limits.Body, p.Limits.BodyTime = 1000, time.Second
	live := startService(t, func(*extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse { return nil })
	r := start(t, renderable{policy: p, services: live.address}, "envoy.yaml")
	live.awaitHealth(t, r)
	// Envoy buffers up to the larger of R (2 x limits.body) and L before it refuses by
	// itself; below that the plan does. One read of a socket may come on top.
	const tooLarge = 16<<20 + 1<<20
	for name, c := range map[string]struct {
		request  string
		code     int
		wantType string
	}{
		"no HTTP":        {"hello\r\n\r\n", 400, "invalid_request_error"},
		"headers":        {"POST /v1/messages HTTP/1.1\r\nhost: a\r\nx-a: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", 431, "request_too_large"},
		"slow headers":   {"POST /v1/messages HTTP/1.1\r\nhost: a\r\n", 408, "timeout_error"},
		"no host":        {"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", 400, "invalid_request_error"},
		"stalled upload": {"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n{", 408, "timeout_error"},
		"too large":      {fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s", tooLarge, strings.Repeat(" ", tooLarge)), 413, "request_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := raw(t, r, c.request)
			wantReply(t, response.StatusCode, response.Header, body, c.code, c.wantType)
		})
	}
}

// raw sends bytes as they are and reads one answer.
func raw(t *testing.T, r running, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// Envoy may answer and close before it has read everything.
	_, _ = io.WriteString(conn, request)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// An Envoy without memory refuses with JSON.
func TestOverloadIsJSON(t *testing.T) {
	edit := func(text []byte) []byte {
		return bytes.Replace(text, []byte("max_heap_size_bytes: 4294967296"), []byte("max_heap_size_bytes: 1000"), 1)
	}
	r := start(t, renderable{policy: onePolicy(), services: nowhere(t), edit: edit}, "envoy.yaml")
	r.await(t, r.admin+"/stats?filter=stop_accepting_requests.active", func(_ int, body string) bool { return strings.Contains(body, "active: 1") })
	code, header, body, err := ask(t.Context(), http.MethodPost, r.url+"/v1/messages", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	wantReply(t, code, header, body, 503, "overloaded_error")
	if !strings.Contains(body, "out of memory") {
		t.Errorf("the reason is not told: %s", body)
	}
}

// The service's own answers pass, whatever their status, with details that
// begin as agreed or with none.
func TestImmediateResponsesPass(t *testing.T) {
	for _, code := range []int{400, 404, 408, 413, 503, 504, 529} {
		for _, details := range []string{"", names.DetailsPrefix + "_exhausted"} {
			t.Run(strconv.Itoa(code)+" "+details, func(t *testing.T) {
				service := startService(t, func(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
					if m.GetRequestHeaders() == nil {
						return nil
					}
					return immediate(code, "service's own", details)
				})
				r := start(t, renderable{policy: onePolicy(), services: service.address}, "envoy.yaml")
				service.awaitHealth(t, r)
				got, _, body, err := ask(t.Context(), http.MethodPost, r.url+"/v1/messages", strings.NewReader(`{}`))
				if err != nil || got != code || body != "service's own" {
					t.Errorf("got %d %q %v", got, body, err)
				}
				if md := service.roles(t); !slices.Contains(md, names.RolePlan+" "+onePolicy().RenderHash) {
					t.Errorf("the plan's metadata is %v", md)
				}
			})
		}
	}
}

func immediate(code int, body, details string) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extprocv3.ImmediateResponse{
		Status: &typev3.HttpStatus{Code: typev3.StatusCode(code)}, Body: []byte(body), Details: details,
		Headers: &extprocv3.HeaderMutation{SetHeaders: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "content-type", RawValue: []byte("text/x")}}}},
	}}}
}

// While the service is down the direct target gets what the client wrote, with
// the client's credential and nothing beyond the allow-list.
func TestServiceDownGoesDirect(t *testing.T) {
	type seen struct {
		path, host, body string
		header           http.Header
	}
	requests := make(chan seen, 1)
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		requests <- seen{q.URL.RequestURI(), q.Host, string(body), q.Header}
		w.Header().Set("server", "envoy")
		w.Header().Set("x-envoy-upstream-service-time", "3")
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(platform.Close)
	p := directPolicy()
	p.Direct.Endpoint = config.Endpoint{Host: "127.0.0.1", Port: platform.Listener.Addr().(*net.TCPAddr).Port}
	r := start(t, renderable{policy: p, services: nowhere(t)}, "envoy.yaml")

	request := "POST /v1/messages?beta=true HTTP/1.1\r\nhost: llm.acme.example\r\nx-api-key: client\r\nanthropic-version: 2023-06-01\r\nx-stainless-lang: go\r\n" +
		"x-acme-team: kyc\r\ncookie: a=b\r\nx-mesh-token: t\r\nx-forwarded-for: 10.1.1.1\r\nx-request-id: 1\r\nx-crossdoor-target: crossdoor-target-other\r\n" +
		"x-envoy-max-retries: 3\r\naccept-encoding: gzip\r\ncontent-length: 11\r\n\r\n{\"model\":1}"
	response, body := raw(t, r, request)
	if response.StatusCode != http.StatusOK || body != `{"ok":true}` || response.Header.Get("server") != "" || response.Header.Get("x-envoy-upstream-service-time") != "" {
		t.Fatalf("got %d %q %v", response.StatusCode, body, response.Header)
	}
	got := <-requests
	if got.path != "/anthropic/v1/messages?beta=true" || got.host != p.Direct.Endpoint.Authority() || got.body != `{"model":1}` {
		t.Errorf("the platform got %+v", got)
	}
	want := http.Header{
		"X-Api-Key": {"client"}, "Anthropic-Version": {"2023-06-01"}, "X-Stainless-Lang": {"go"}, "X-Acme-Team": {"kyc"},
		"Accept-Encoding": {"identity"}, "Content-Length": {"11"},
	}
	if fmt.Sprint(got.header) != fmt.Sprint(want) {
		t.Errorf("the platform got the headers\n%v, want\n%v", got.header, want)
	}
	code, header, text, err := ask(t.Context(), http.MethodGet, r.url+"/v1/organizations", nil)
	if err != nil {
		t.Fatal(err)
	}
	wantReply(t, code, header, text, 503, "overloaded_error")
}

// A platform that cannot be reached, with nobody to judge it: JSON as well.
func TestUnjudgedFailureIsJSON(t *testing.T) {
	p := directPolicy()
	p.Direct.Endpoint = config.Endpoint{Host: "127.0.0.1", Port: freePort(t)}
	r := start(t, renderable{policy: p, services: nowhere(t)}, "envoy.yaml")
	code, header, body, err := ask(t.Context(), http.MethodPost, r.url+"/v1/messages", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if code != http.StatusServiceUnavailable || header.Get("content-type") != "application/json" || body != `{"type":"error","error":{"type":"overloaded_error","message":"The platform could not be reached."}}` {
		t.Errorf("got %d %v %s", code, header, body)
	}
}

// service is a scripted ext_proc peer.
type service struct {
	extprocv3.UnimplementedExternalProcessorServer

	answer  func(*extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse
	address []envoy.Service
	seen    chan string
}

// startService answers with what answer returns; nil goes on.
func startService(t *testing.T, answer func(*extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{answer: answer, seen: make(chan string, 16), address: []envoy.Service{{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}}}
	server := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(server, s)
	healthv1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return s
}

func (s *service) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	select {
	case s.seen <- strings.Join(append(md.Get(names.Role), md.Get(names.Render)...), " "):
	default:
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		reply := s.answer(m)
		if reply == nil {
			reply = neutral(m)
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

func neutral(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingResponse {
	switch m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}}}
	case *extprocv3.ProcessingRequest_RequestBody:
		return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{}}}
	}
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{}}}
}

func (s *service) awaitHealth(t *testing.T, r running) {
	t.Helper()
	r.await(t, r.admin+"/clusters", func(_ int, body string) bool {
		return strings.Contains(body, "crossdoor::"+fmt.Sprintf("127.0.0.1:%d", s.address[0].Port)+"::health_flags::healthy")
	})
}

// roles are the streams seen so far, "ROLE HASH" each.
func (s *service) roles(t *testing.T) []string {
	t.Helper()
	var all []string
	for {
		select {
		case one := <-s.seen:
			all = append(all, one)
		default:
			return all
		}
	}
}
