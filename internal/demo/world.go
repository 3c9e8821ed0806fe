package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/envoy"
	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy/config"
)

// How long things may take on a slow machine before something is wrong.
const (
	startLimit  = 25 * time.Second
	recordLimit = 3 * time.Second
	stopLimit   = 3 * time.Second
)

// world is everything that runs for a demo: platforms, service and Envoy.
type world struct {
	dir, binary, envoyBin string
	version               string // of Envoy

	listen, admin, grpc, envoyAdmin, nobody int

	fakes   platforms
	service *process
	envoy   *process
	client  *operate.Client
	http    *http.Client
}

// newWorld makes the folder, the platforms and the policy with its config;
// nothing is started yet but the platforms. close ends it also after an error.
func newWorld(binary, envoyBin string) (*world, error) {
	w := &world{binary: binary, envoyBin: envoyBin, fakes: platforms{}}
	w.http = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	var err error
	if w.dir, err = os.MkdirTemp("", "crossdoor-demo-"); err != nil {
		return w, fmt.Errorf("folder for the demo: %w", err)
	}
	ports, err := freePorts(5)
	if err != nil {
		return w, err
	}
	w.listen, w.admin, w.grpc, w.envoyAdmin, w.nobody = ports[0], ports[1], ports[2], ports[3], ports[4]
	if w.client, err = operate.NewClient(local(w.admin), operate.ClientOptions{}); err != nil {
		return w, err
	}
	for _, f := range []struct{ target, platform, key string }{
		{targetAnthropic, fakeplatform.Anthropic, keyAnthropic},
		{targetAWS, fakeplatform.ClaudeOnAWS, keyAWS},
		{targetFoundry, fakeplatform.Foundry, keyFoundry},
	} {
		if w.fakes[f.target], err = startFake(f.target, f.platform, f.key); err != nil {
			delete(w.fakes, f.target)
			return w, err
		}
	}
	return w, nil
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func (w *world) policyPath() string { return filepath.Join(w.dir, "crossdoor.yaml") }

// render writes the policy and Envoy's config.
func (w *world) render() error {
	text, err := policyYAML(urls{
		Anthropic: w.fakes[targetAnthropic].server.URL(), AWS: w.fakes[targetAWS].server.URL(),
		Foundry: w.fakes[targetFoundry].server.URL(), Unreachable: "http://" + local(w.nobody),
	})
	if err != nil {
		return err
	}
	p, err := config.Load("crossdoor.yaml", text, extproc.Catalog())
	if err != nil {
		return fmt.Errorf("the demo's own policy: %w", err)
	}
	files, err := envoy.Render(p, envoy.Options{
		Version: w.version, Listen: local(w.listen), AdminPort: w.envoyAdmin,
		Services: []envoy.Service{{Host: "127.0.0.1", Port: w.grpc}}, DynamicDir: filepath.Join(w.dir, "dynamic"),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.policyPath(), text, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, "envoy.yaml"), files["envoy.yaml"], 0o600)
}

// start starts the service and then Envoy, whose first look then finds it, and
// returns when requests can be served.
func (w *world) start(ctx context.Context) error {
	if err := w.startService(); err != nil {
		return err
	}
	if err := w.waitService(ctx); err != nil {
		return err
	}
	var err error
	w.envoy, err = spawn("envoy", filepath.Join(w.dir, "envoy.log"), nil, w.envoyBin,
		"-c", filepath.Join(w.dir, "envoy.yaml"), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning")
	if err != nil {
		return err
	}
	return w.waitEnvoy(ctx)
}

// startService starts the service, or starts it again.
func (w *world) startService() error {
	p, err := spawn("crossdoor serve", filepath.Join(w.dir, "serve.log"), keyEnv, w.binary, "serve",
		"--policy", w.policyPath(), "--grpc", local(w.grpc), "--admin", local(w.admin), "--drain", "1s")
	if err != nil {
		return err
	}
	w.service = p
	return nil
}

func (w *world) waitService(ctx context.Context) error {
	service := w.service
	return poll(ctx, startLimit, "crossdoor serve is ready", func() error {
		if err := service.ended(); err != nil {
			return fatalError{err}
		}
		ready, err := w.client.Ready(ctx)
		if err == nil && !ready.Ready {
			err = errors.New(strings.Join(ready.Reasons, ", "))
		}
		return err
	})
}

// waitEnvoy waits until Envoy listens and sees the service healthy.
func (w *world) waitEnvoy(ctx context.Context) error {
	healthy := fmt.Sprintf("crossdoor::%s::health_flags::healthy", local(w.grpc))
	return poll(ctx, startLimit, "Envoy is ready", func() error {
		if err := w.envoy.ended(); err != nil {
			return fatalError{err}
		}
		if _, err := w.ask(ctx, "/ready"); err != nil {
			return err
		}
		clusters, err := w.ask(ctx, "/clusters")
		if err == nil && !strings.Contains(clusters, healthy) {
			err = errors.New("it does not see the service yet")
		}
		return err
	})
}

// ask is a 200 of Envoy's admin port.
func (w *world) ask(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(w.envoyAdmin)+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // all was read, or the rest is not wanted
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("envoy's %s: %s", path, resp.Status)
	}
	return string(text), err
}

// record is what the service's trail says about a request; it is there within a
// second of its end.
func (w *world) record(ctx context.Context, id string) (*trail.Record, error) {
	var found *trail.Record
	err := poll(ctx, recordLimit, "a trail record of "+id, func() error {
		found = nil
		if _, err := w.client.Trail(ctx, trail.Filter{ID: id}, func(r *trail.Record) error {
			found = r
			return nil
		}); err != nil {
			return err
		}
		if found == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return found, err
}

// breaker is the state of a target's breaker for a model.
func (w *world) breaker(ctx context.Context, target, model string) (string, error) {
	ready, err := w.client.Ready(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range ready.Targets {
		if t.Name != target {
			continue
		}
		for _, s := range t.Scopes {
			if s.Scope == "model" && s.Model == model {
				return s.State, nil
			}
		}
	}
	return operate.StateClosed, nil
}

// close stops everything that was started. The folder stays.
func (w *world) close() {
	w.http.CloseIdleConnections()
	w.envoy.stop(stopLimit)
	w.service.stop(stopLimit)
	w.fakes.close()
}

// forget removes the folder.
func (w *world) forget() error {
	if w.dir == "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}
