package operate

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/internal/trail"
)

const token = "0123456789abcdef-token"

func state() Ready {
	return Ready{
		Ready: true, Policy: "0123456789ab", Render: RenderMatches, Inflight: 2,
		Targets: []TargetState{
			{Name: "anthropic", Platform: "anthropic", State: StateClosed},
			{
				Name: "foundry", Platform: "foundry", State: StateOpen, Until: "2026-11-30T08:00:15Z",
				Scopes: []ScopeState{{Scope: "key", Key: "env:F", State: StateHalfOpen}},
			},
		},
	}
}

// options is a service with three records in memory.
func options() Options {
	sink := trail.NewSink(10, nil)
	for i, outcome := range []string{trail.OutcomeServed, trail.OutcomeFailedOver, trail.OutcomeExhausted} {
		sink.Add(&trail.Record{
			Time: time.Date(2026, 11, 30, 8, i, 0, 0, time.UTC), ID: outcome, Route: "chat", Outcome: outcome,
			Attempts: []trail.Attempt{{N: 1, Target: "anthropic"}},
		})
	}
	return Options{
		Ready:   state,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "crossdoor_inflight 2\n") }),
		Recent:  sink.Recent,
	}
}

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serving serves h at addr until the test ends and tells where.
func serving(t *testing.T, addr string, h http.Handler) string {
	t.Helper()
	l := listening(t, addr)
	srv := NewServer(h, nil)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// serverCase is one request and what its answer must be.
type serverCase struct {
	name, method, path string
	handler            http.Handler
	host, auth         string
	status             int
	want               []string // in the body
	not                []string
}

func (tt *serverCase) run(t *testing.T) {
	addr := serving(t, "127.0.0.1:0", tt.handler)
	req, err := http.NewRequest(tt.method, "http://"+addr+tt.path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = tt.host
	if tt.auth != "" {
		req.Header.Set("Authorization", tt.auth)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != tt.status {
		t.Errorf("status %d, want %d: %s", answer.StatusCode, tt.status, body)
	}
	for _, s := range tt.want {
		if !strings.Contains(string(body), s) {
			t.Errorf("%q is not in %s", s, body)
		}
	}
	for _, s := range tt.not {
		if strings.Contains(string(body), s) {
			t.Errorf("%q is in %s", s, body)
		}
	}
}

func TestServers(t *testing.T) {
	withToken := options()
	withToken.TokenFile = tokenFile(t, token+"\n")
	notReady := options()
	notReady.Ready = func() Ready { return Ready{Reasons: []string{"draining"}} }
	lostToken := options()
	lostToken.TokenFile = filepath.Join(t.TempDir(), "none")

	for _, tt := range []serverCase{
		{name: "alive", path: "/healthz", handler: AdminHandler(options()), status: 200, want: []string{"ok"}},
		{name: "alive while not ready", path: "/healthz", handler: AdminHandler(notReady), status: 200},
		{name: "ready", path: "/readyz", handler: AdminHandler(options()), status: 200, want: []string{`"ready": true`, `"name": "foundry"`, `"state": "open"`, `"env:F"`, `"reasons": []`}},
		{name: "not ready", path: "/readyz", handler: AdminHandler(notReady), status: 503, want: []string{`"ready": false`, "draining", `"targets": []`}},
		{name: "metrics", path: "/metrics", handler: AdminHandler(options()), status: 200, want: []string{"crossdoor_inflight 2"}},
		{name: "trail", path: "/trail", handler: AdminHandler(options()), status: 200, want: []string{`"id":"served"`, `"id":"exhausted"`}},
		{name: "trail filtered", path: "/trail?failed_over=true", handler: AdminHandler(options()), status: 200, want: []string{`"id":"failed_over"`}, not: []string{`"id":"served"`}},
		{name: "trail's newest", path: "/trail?limit=1", handler: AdminHandler(options()), status: 200, want: []string{`"id":"exhausted"`}, not: []string{`"id":"failed_over"`}},
		{name: "bad filter", path: "/trail?outcome=ok", handler: AdminHandler(options()), status: 400, want: []string{`"error"`, "failed_over"}},
		{name: "another path", path: "/debug/pprof/", handler: AdminHandler(options()), status: 404, want: []string{"/trail"}},
		{name: "another method", method: "POST", path: "/trail", handler: AdminHandler(options()), status: 405},
		{name: "HEAD", method: "HEAD", path: "/readyz", handler: AdminHandler(options()), status: 200},

		{name: "host localhost", path: "/trail", host: "localhost:9003", handler: AdminHandler(options()), status: 200},
		{name: "host IPv6", path: "/trail", host: "[::1]", handler: AdminHandler(options()), status: 200},
		{name: "foreign host", path: "/trail", host: "evil.example", handler: AdminHandler(options()), status: 403, not: []string{`"id"`}},
		{name: "foreign host, metrics", path: "/metrics", host: "evil.example:9003", handler: AdminHandler(options()), status: 403},
		{name: "foreign host, ready", path: "/readyz", host: "10.0.0.7:9003", handler: AdminHandler(options()), status: 200, not: []string{"foundry"}},

		{name: "no token", path: "/trail", handler: AdminHandler(withToken), status: 401, not: []string{`"id"`}},
		{name: "wrong token", path: "/trail", auth: "Bearer " + token + "x", handler: AdminHandler(withToken), status: 401},
		{name: "another scheme", path: "/trail", auth: "Basic " + token, handler: AdminHandler(withToken), status: 401},
		{name: "empty token", path: "/trail", auth: "Bearer ", handler: AdminHandler(withToken), status: 401},
		{name: "token", path: "/trail", auth: "Bearer " + token, handler: AdminHandler(withToken), status: 200},
		{name: "token, any host", path: "/trail", auth: "bearer " + token, host: "admin.example", handler: AdminHandler(withToken), status: 200},
		{name: "token for metrics", path: "/metrics", handler: AdminHandler(withToken), status: 401},
		{name: "probe without token", path: "/readyz", handler: AdminHandler(withToken), status: 200, want: []string{`"ready": true`}, not: []string{"foundry"}},
		{name: "probe with token", path: "/readyz", auth: "Bearer " + token, handler: AdminHandler(withToken), status: 200, want: []string{"foundry"}},
		{name: "alive without token", path: "/healthz", handler: AdminHandler(withToken), status: 200},
		{name: "token file gone", path: "/trail", auth: "Bearer " + token, handler: AdminHandler(lostToken), status: 401},

		{name: "small server, ready", path: "/readyz", host: "pod.example", handler: MetricsHandler(options()), status: 200, want: []string{`"ready": true`}, not: []string{"foundry"}},
		{name: "small server, not ready", path: "/readyz", handler: MetricsHandler(notReady), status: 503, not: []string{"draining"}},
		{name: "small server, metrics", path: "/metrics", handler: MetricsHandler(options()), status: 200, want: []string{"crossdoor_inflight"}},
		{name: "small server, alive", path: "/healthz", handler: MetricsHandler(options()), status: 200},
		{name: "small server, trail", path: "/trail", handler: MetricsHandler(options()), status: 404, not: []string{"served"}},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestServerBoundsHeaders(t *testing.T) {
	addr := serving(t, "127.0.0.1:0", AdminHandler(options()))
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		// The server stops reading at some point: an error here is as it should be.
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "+strings.Repeat("a", 64<<10)+"\r\n\r\n")
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", answer.StatusCode)
	}
	srv := NewServer(nil, nil)
	if srv.ReadTimeout == 0 || srv.ReadHeaderTimeout == 0 || srv.WriteTimeout == 0 || srv.IdleTimeout == 0 {
		t.Error("a timeout is missing")
	}
}

func TestReadToken(t *testing.T) {
	for _, tt := range []struct{ name, content, wantErr string }{
		{"with a line end", token + "\n", ""},
		{"short", "secret-short", "fewer than 16"},
		{"empty", "", "fewer than 16"},
		{"two lines", token + "\n" + token, "blanks"},
		{"not ASCII", token + "é", "blanks or characters"},
		{"long", strings.Repeat("x", 5000), "more than 4096"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadToken(tokenFile(t, tt.content))
			if tt.wantErr == "" {
				if err != nil || got != token {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Fatalf("got %v, want %q in it", err, tt.wantErr)
			}
			if tt.content != "" && strings.Contains(err.Error(), tt.content) {
				t.Errorf("the error quotes the token: %v", err)
			}
		})
	}
}

func asked(t *testing.T, addr string, o ClientOptions, f trail.Filter) (string, error) {
	t.Helper()
	c, err := NewClient(addr, o)
	if err != nil {
		return "", err
	}
	var got []string
	bad, err := c.Trail(context.Background(), f, func(r *trail.Record) error {
		got = append(got, r.ID)
		return nil
	})
	if bad != 0 {
		t.Errorf("%d bad lines", bad)
	}
	return strings.Join(got, " "), err
}

func TestClient(t *testing.T) {
	tcp := serving(t, "127.0.0.1:0", AdminHandler(options()))
	sock := "unix:" + serving(t, "unix:"+filepath.Join(t.TempDir(), "s"), AdminHandler(options()))
	o := options()
	o.TokenFile = tokenFile(t, token)
	guarded := serving(t, "127.0.0.1:0", AdminHandler(o))
	other := serving(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Redirect(w, &http.Request{}, "http://127.0.0.1:1/", http.StatusFound)
	}))
	free := listening(t, "127.0.0.1:0")
	free.Close()

	for _, tt := range []struct {
		name, addr string
		options    ClientOptions
		filter     trail.Filter
		want       string
		wantErr    string
	}{
		{name: "all", addr: tcp, want: "served failed_over exhausted"},
		{name: "through a socket", addr: sock, want: "served failed_over exhausted"},
		{name: "filtered", addr: tcp, filter: trail.Filter{Outcome: trail.OutcomeServed}, want: "served"},
		{name: "since and limit", addr: tcp, filter: trail.Filter{Since: time.Date(2026, 11, 30, 8, 1, 0, 0, time.UTC), Limit: 1}, want: "exhausted"},
		{name: "with a token", addr: guarded, options: ClientOptions{TokenFile: o.TokenFile}, want: "served failed_over exhausted"},
		{name: "without the token", addr: guarded, wantErr: "--admin-token-file"},
		{name: "nobody there", addr: free.Addr().String(), wantErr: "crossdoor serve"},
		{name: "no socket there", addr: "unix:/nonexistent/s", wantErr: "crossdoor serve"},
		{name: "somebody else", addr: other, wantErr: "not what a Crossdoor service answers"},
		{name: "no address", addr: "nonsense", wantErr: "HOST:PORT"},
		{name: "no token file", addr: tcp, options: ClientOptions{TokenFile: "/nonexistent"}, wantErr: "admin token"},
		{name: "no CA file", addr: tcp, options: ClientOptions{CAFile: "/nonexistent"}, wantErr: "admin CA"},
		{name: "no CA in the file", addr: tcp, options: ClientOptions{CAFile: o.TokenFile}, wantErr: "PEM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := asked(t, tt.addr, tt.options, tt.filter)
			if tt.wantErr == "" {
				if err != nil || got != tt.want {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want %q in it", err, tt.wantErr)
			}
		})
	}
}

func TestClientReady(t *testing.T) {
	notReady := options()
	notReady.Ready = func() Ready {
		return Ready{Reasons: []string{"draining"}, Render: RenderUnknown, Targets: []TargetState{}}
	}
	for name, want := range map[string]struct {
		handler http.Handler
		ready   Ready
	}{
		"ready":     {AdminHandler(options()), func() Ready { r := state(); r.Reasons = []string{}; return r }()},
		"not ready": {AdminHandler(notReady), notReady.Ready()},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewClient(serving(t, "127.0.0.1:0", want.handler), ClientOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Ready(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.ready, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// certificate writes a self-signed one for 127.0.0.1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, priv.Public(), priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der},
		key:  {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestClientTLS(t *testing.T) {
	cert, key := certificate(t)
	o := options()
	o.TokenFile = tokenFile(t, token)
	l := listening(t, "127.0.0.1:0")
	srv := NewServer(AdminHandler(o), nil)
	done := make(chan error, 1)
	go func() { done <- srv.ServeTLS(l, cert, key) }()
	defer func() {
		srv.Close()
		<-done
	}()
	addr := l.Addr().String()

	got, err := asked(t, addr, ClientOptions{TokenFile: o.TokenFile, CAFile: cert}, trail.Filter{})
	if err != nil || got != "served failed_over exhausted" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := asked(t, addr, ClientOptions{TokenFile: o.TokenFile}, trail.Filter{}); err == nil || !strings.Contains(err.Error(), "--admin-ca") {
		t.Errorf("without TLS: got %v", err)
	}
	other, _ := certificate(t)
	if _, err := asked(t, addr, ClientOptions{TokenFile: o.TokenFile, CAFile: other}, trail.Filter{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another CA: got %v", err)
	}
}

func TestReadyJSONHasTheContractsNames(t *testing.T) {
	b, err := json.Marshal(state())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ready":true,"reasons":null,"policy":"0123456789ab","render":"matches","inflight":2,"targets":[{"name":"anthropic","platform":"anthropic","state":"closed"},{"name":"foundry","platform":"foundry","state":"open","until":"2026-11-30T08:00:15Z","scopes":[{"scope":"key","key":"env:F","state":"half-open"}]}]}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}
