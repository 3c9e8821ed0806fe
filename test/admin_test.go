package test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestUnixSocket: Envoy and the service meet at a path; the operator's side
// beside it, with names and without.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "crossdoor") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "service.sock")
	metrics := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	e := start(t, options{
		envoyFirst: true, serve: []string{"--grpc", "unix:" + socket, "--metrics", metrics}, render: []string{"--service", "unix:" + socket},
		top: []string{"breaker: {failures: 1, window: 1m}"},
	}, lane{name: "socket", targets: two(), uncounted: true})
	e.service().start()
	e.service().waitReady()
	l := e.lane("socket")
	eventually(t, 10*time.Second, "Envoy listens", func() error {
		_, err := get(fmt.Sprintf("http://127.0.0.1:%d/ready", e.admin))
		return err
	})
	eventually(t, 10*time.Second, "the service is used", func() error {
		if got := servedBy(l, call{}); got != "200 socket-a" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	if info, err := os.Stat(socket); err != nil || info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("%v, %v: want a socket that its group can use, and nobody else", info.Mode(), err)
	}
	l.fakes[0].Script(entitlement, fakeplatform.Error(529, "x"))
	for _, c := range []call{{stream: true, pad: 200 << 10}, {pad: 200 << 10}} {
		if got := servedBy(l, c); got != "200 socket-b" {
			t.Errorf("a failover: %s", got)
		}
	}
	t.Run("readyz lists targets", func(t *testing.T) {
		l := l.in(t)
		l.state("model", 2)
		r, err := e.service().readiness()
		if err != nil || len(r.Targets) != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		a, b := r.Targets[0], r.Targets[1]
		if a.Name != "socket-a" || a.Platform != "anthropic" || a.State != "closed" || b.Name != "socket-b" || b.Platform != "claude-on-aws" || b.State != "closed" {
			t.Errorf("targets %+v", r.Targets)
		}
		if len(a.Scopes) != 1 || a.Scopes[0].Scope != "model" || a.Scopes[0].Model != "socket" || a.Scopes[0].State != "open" || len(b.Scopes) != 0 {
			t.Errorf("ejected parts %+v, %+v", a.Scopes, b.Scopes)
		}
		if r.Policy != hashOf(e.policyText()) || r.Render != "matches" || len(r.Reasons) != 0 {
			t.Errorf("policy %s, render %s, reasons %v", r.Policy, r.Render, r.Reasons)
		}
	})
	t.Run("the metrics address", func(t *testing.T) {
		for path, want := range map[string]string{"/metrics": "crossdoor_build_info", "/healthz": "ok", "/readyz": `"ready": true`} {
			text, err := get("http://" + metrics + path)
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: %v, %.200q", path, err, text)
			}
			if path != "/metrics" && strings.Contains(text, "socket-") {
				t.Errorf("%s has names: %s", path, text)
			}
		}
		resp, err := adminClient.Get("http://" + metrics + "/trail")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("/trail: %s", resp.Status)
		}
	})
}

// TestOpenAddressesAreRefused: exit code 2 and what to do, before anything
// listens.
func TestOpenAddressesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, token := filepath.Join(dir, "crossdoor.yaml"), filepath.Join(dir, "token")
	renamed(t, policy, "version: 1\ntargets:\n  a: {platform: anthropic, keys: [{env: KEY}]}\nroutes:\n  - {name: r, models: [\"claude-*\"], chain: [a]}\n")
	renamed(t, token, "a-token-of-sixteen-characters-and-more\n")
	local := func() string { return fmt.Sprintf("127.0.0.1:%d", freePort(t)) }
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"admin", "--admin-token-file", []string{"--grpc", local(), "--admin", "0.0.0.0:0"}},
		{"admin, IPv6", "--admin-token-file", []string{"--grpc", local(), "--admin", "[::]:0"}},
		{"admin, no host", "--admin-token-file", []string{"--grpc", local(), "--admin", ":0"}},
		{"admin with a token and no TLS", "--admin-cert", []string{"--grpc", local(), "--admin", "0.0.0.0:0", "--admin-token-file", token}},
		{"grpc", "--grpc-client-ca", []string{"--grpc", "0.0.0.0:0", "--admin", local()}},
		{"grpc by a name", "--grpc-client-ca", []string{"--grpc", "crossdoor.example:9002", "--admin", local()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := startProcess("crossdoor serve", nil, crossdoorBin, append([]string{"serve", "--policy", policy}, c.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			if err := poll(10*time.Second, func() error {
				if p.alive() {
					return errNotYet
				}
				return nil
			}); err != nil {
				p.kill()
				t.Fatal("it serves")
			}
			if code := p.cmd.ProcessState.ExitCode(); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if out := p.out.String(); !strings.Contains(out, c.want) || strings.Contains(out, "msg=serving") {
				t.Errorf("it says %q, want %s in it", out, c.want)
			}
		})
	}
}
