package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// identity is one side's certificate, its key and its authority, as files.
type identity struct{ ca, cert, key string }

func (i identity) serve() []string {
	return []string{"--grpc-cert", i.cert, "--grpc-key", i.key, "--grpc-client-ca", i.ca}
}

func (i identity) render(more ...string) []string {
	return append([]string{"--service-ca", i.ca, "--service-cert", i.cert, "--service-key", i.key}, more...)
}

// issue makes an identity for a name or address.
func issue(t testing.TB, ca *fakeplatform.CA, name string) identity {
	t.Helper()
	issued, err := ca.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := fakeplatform.PEMOf(issued)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	i := identity{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for path, text := range map[string][]byte{i.ca: ca.PEM(), i.cert: cert, i.key: key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func authority(t testing.TB) *fakeplatform.CA {
	t.Helper()
	ca, err := fakeplatform.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// TestServiceMTLS: planning, judging, attempts and the log by mTLS, also between
// replicas.
func TestServiceMTLS(t *testing.T) {
	ca := authority(t)
	for _, c := range []struct {
		name     string
		cert     string
		replicas int
		render   []string
	}{
		{"by address", "127.0.0.1", 2, nil},
		{"by name", "crossdoor.test", 1, []string{"--service-name", "crossdoor.test"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			service, proxy := issue(t, ca, c.cert), issue(t, ca, "envoy.test")
			e := start(t, options{serve: service.serve(), render: proxy.render(c.render...), replicas: c.replicas},
				lane{name: "json", targets: two()}, lane{name: "sse", targets: two()})
			for _, name := range []string{"json", "sse"} {
				l := e.lane(name)
				l.fakes[0].Always(entitlement)
				for range 5 {
					if got := servedBy(l, call{stream: name == "sse", pad: 3000}); got != "200 "+name+"-b" {
						t.Errorf("%s: %s", name, got)
					}
				}
				e.metric(5, "requests_total", "route", name, "outcome", "failed_over")
			}
		})
	}
}

// TestServiceRefusesStrangers: without the right certificates on both sides
// there is no service, and nothing but 503.
func TestServiceRefusesStrangers(t *testing.T) {
	ca := authority(t)
	service, foreign := issue(t, ca, "127.0.0.1"), issue(t, authority(t), "127.0.0.1")
	stranger := identity{service.ca, foreign.cert, foreign.key}
	for _, c := range []struct {
		name   string
		render []string
	}{
		{"plaintext", nil},
		{"a certificate of another authority", stranger.render()},
		{"a service of another authority", foreign.render()},
		{"a service with another name", issue(t, ca, "envoy.test").render("--service-name", "other.test")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, options{serve: service.serve(), render: c.render, envoyFirst: true}, lane{name: "mtls", targets: two(), uncounted: true})
			e.service().start()
			e.service().waitReady()
			eventually(t, 10*time.Second, "Envoy listens", func() error {
				_, err := get(fmt.Sprintf("http://127.0.0.1:%d/ready", e.admin))
				return err
			})
			e.checks(3)
			a := e.lane("mtls").send(call{})
			if kind, message, err := messagesError(a); a.status != 503 || kind != "overloaded_error" || !strings.Contains(message, "service") || err != nil {
				t.Errorf("got %d %q %q (%v)", a.status, kind, message, err)
			}
		})
	}
}

// checks waits until Envoy has looked n times at the service in vain.
func (e *env) checks(n int) {
	e.t.Helper()
	eventually(e.t, 15*time.Second, fmt.Sprintf("%d health checks failed", n), func() error {
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/stats?filter=cluster.crossdoor.health_check.failure", e.admin))
		if err != nil {
			return err
		}
		var failed int
		if _, err := fmt.Sscanf(text, "cluster.crossdoor.health_check.failure: %d", &failed); err != nil || failed < n {
			return fmt.Errorf("%d (%v)", failed, err)
		}
		return nil
	})
}

// TestServiceTLSFlags: half of mTLS is none, and a socket has none: exit code 2,
// nothing written.
func TestServiceTLSFlags(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "crossdoor.yaml")
	renamed(t, policy, goodPolicy)
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"no key", "service-key is missing", []string{"--service-ca", "ca.pem", "--service-cert", "c.pem"}},
		{"no CA", "service-ca is missing", []string{"--service-cert", "c.pem", "--service-key", "c.key"}},
		{"only a name", "service-ca is missing", []string{"--service-name", "svc"}},
		{"a socket", "a socket has no TLS", []string{"--service", "unix:/run/c.sock", "--service-ca", "ca.pem", "--service-cert", "c.pem", "--service-key", "c.key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			p, err := startProcess("crossdoor render", nil, crossdoorBin, append([]string{"render", "--policy", policy, "--for", "envoy", "--out", out}, c.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			<-p.done
			if code := p.cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(p.out.String(), c.want) {
				t.Errorf("exit code %d: %s", code, p.out)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("it wrote the folder")
			}
		})
	}
}
