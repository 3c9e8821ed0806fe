package envoy_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/envoy"
	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// cached are the pinned binaries as test/fetch_envoy.py leaves them; the last
// one is what tests need.
var cached = []string{"1.37.0", "1.38.3", "1.39.3", "1.40.0"}

// binaries are the Envoys to validate with, by version. Without $ENVOY or the
// newest pinned one there is nothing to test against, which is a failure.
func binaries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"needed": needed(t)}
	for _, version := range cached {
		path, err := filepath.Abs(filepath.Join("..", ".cache", "envoy", version, "envoy"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			found[version] = path
		}
	}
	return found
}

func needed(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ENVOY")
	if path == "" {
		path = filepath.Join("..", ".cache", "envoy", cached[len(cached)-1], "envoy")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no Envoy to test against: %v (run `make envoy`, or set ENVOY)", err)
	}
	return path
}

// Each golden is taken by each Envoy, without a word of warning.
func TestValidate(t *testing.T) {
	for version, binary := range binaries(t) {
		for name, p := range policies() {
			t.Run(version+"/"+name, func(t *testing.T) {
				o := options(name)
				o.Version = strings.TrimPrefix(version, "needed")
				if o.ServiceTLS != (envoy.ServiceTLS{}) {
					o.ServiceTLS = certificates(t) // Envoy reads the files
				}
				files, err := envoy.Render(p, o)
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				write(t, dir, files)
				for _, folder := range []string{dir, filepath.Join(dir, "dynamic")} {
					validateIn(t, binary, folder)
				}
			})
		}
	}
}

// certificates are files that exist.
func certificates(t *testing.T) envoy.ServiceTLS {
	t.Helper()
	ca, err := fakeplatform.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := ca.Issue("envoy")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := fakeplatform.PEMOf(issued)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, envoy.Files{"ca.pem": ca.PEM(), "envoy.pem": cert, "envoy.key": key})
	return envoy.ServiceTLS{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "envoy.pem"), Key: filepath.Join(dir, "envoy.key")}
}

func validateIn(t *testing.T, binary, folder string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "--mode", "validate", "--log-level", "warning", "-c", "envoy.yaml")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "configuration 'envoy.yaml' OK" {
		t.Errorf("validate: %v\n%s", err, out)
	}
}

// running is an Envoy with rendered config.
type running struct {
	url, admin string
}

// start renders p into a folder, starts Envoy there and waits until it is
// ready. file is envoy.yaml or dynamic/envoy.yaml; edit may change the text.
func start(t *testing.T, p renderable, file string) running {
	t.Helper()
	listen, admin := freePort(t), freePort(t)
	o := options("")
	o.Listen, o.AdminPort, o.Services = fmt.Sprintf("127.0.0.1:%d", listen), admin, p.services
	files, err := envoy.Render(p.policy, o)
	if err != nil {
		t.Fatal(err)
	}
	if p.edit != nil {
		for path, text := range files {
			files[path] = p.edit(text)
		}
	}
	dir := t.TempDir()
	write(t, dir, files)
	var log bytes.Buffer
	cmd := exec.Command(needed(t), "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning", "-c", filepath.Base(file))
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(dir, filepath.Dir(file)), &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Envoy's log:\n%s", log.String())
		}
	})
	r := running{url: "http://" + o.Listen, admin: fmt.Sprintf("http://127.0.0.1:%d", admin)}
	r.await(t, r.admin+"/ready", func(code int, _ string) bool { return code == http.StatusOK })
	r.await(t, r.admin+"/listeners", func(_ int, body string) bool { return strings.Contains(body, o.Listen) })
	return r
}

// await asks url until its answer is the wanted one.
func (r running) await(t *testing.T, url string, want func(code int, body string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		code, _, body, err := ask(ctx, http.MethodGet, url, nil)
		if err == nil && want(code, body) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: still %d %s %v", url, code, body, err)
		case <-tick.C:
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
