package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// target is one target of a lane. The zero value is an anthropic one at a fake
// platform of its own.
type target struct {
	platform string
	url      string   // not "": no fake platform, this address
	yaml     []string // further members, one a line
	keys     int      // number of keys; 0 is 1
	keyYAML  string   // replaces the keys, or the token
	tls      []string // names of the certificate: TLS with HTTP/2
	noCA     bool     // TLS whose authority the policy does not name
	sigv4    bool     // AWS signatures in place of keys
	rules    *fakeplatform.Rules
	files    map[string]fakeplatform.File
}

// lane is one isolated case of an environment.
type lane struct {
	name    string
	targets []target // named LANE-a, LANE-b, ...
	chain   string   // "" is all targets in order; `@` stands for `LANE-`
	models  string   // "" is the lane's name; several with ", " between
	route   []string // further members of the route, one a line
	// refused says that platforms may refuse requests of this lane.
	refused bool
	// uncounted says that the records of this lane are counted by the case itself.
	uncounted bool
}

// laneRun is a lane of a running environment.
type laneRun struct {
	lane

	e     *env
	fakes []*fakeplatform.Server // nil where the target has an address of its own
	keys  [][]string             // secret values by target
	sent  *atomic.Int64
}

// options of an environment; the zero value is fine.
type options struct {
	top         []string // further members of the policy, one a line
	trail       string   // trail member; "" is the file in the environment's folder
	serve       []string // further flags of serve
	render      []string
	replicas    int // services behind the one Envoy; 0 is 1
	concurrency string
	envoyFirst  bool // start Envoy only; the case starts the services
}

// env is one Envoy, its services, and the lanes' fake platforms.
type env struct {
	t        testing.TB
	opts     options
	dir      string
	policy   string
	ca       *fakeplatform.CA
	listen   int
	admin    int
	services []*service
	envoy    *process
	lanes    map[string]*laneRun
	order    []*laneRun
	environ  []string
}

// service is one replica.
type service struct {
	e     *env
	grpc  int
	admin int
	dir   string // its working directory: the policy's trail file is relative
	trail string
	proc  *process
	past  []*process // killed ones
}

// start starts an environment and stops it when the test ends.
func start(t testing.TB, o options, lanes ...lane) *env {
	t.Helper()
	ca, err := fakeplatform.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{t: t, opts: o, dir: t.TempDir(), ca: ca, listen: freePort(t), admin: freePort(t), lanes: map[string]*laneRun{}}
	e.policy = filepath.Join(e.dir, "crossdoor.yaml")
	for i := range max(1, o.replicas) {
		dir := filepath.Join(e.dir, fmt.Sprintf("replica-%d", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		e.services = append(e.services, &service{e: e, grpc: freePort(t), admin: freePort(t), dir: dir, trail: filepath.Join(dir, "trail.jsonl")})
	}
	t.Cleanup(e.finish)
	for _, l := range lanes {
		e.addLane(l)
	}
	e.writeFile("ca.pem", string(ca.PEM()))
	e.writeFile("crossdoor.yaml", e.policyText())
	e.renderConfig()
	if o.envoyFirst {
		e.startEnvoy()
		return e
	}
	// Either order works (TestEnvoyStartsFirst); this one is the quicker.
	for _, s := range e.services {
		s.start()
	}
	for _, s := range e.services {
		s.waitReady()
	}
	e.startEnvoy()
	e.waitReady()
	return e
}

func (e *env) writeFile(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) renderConfig() {
	e.t.Helper()
	var addrs []string
	for _, s := range e.services {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", s.grpc))
	}
	args := []string{"render", "--policy", e.policy, "--for", "envoy", "--out", filepath.Join(e.dir, "out"), "--service", strings.Join(addrs, ","), "--listen", fmt.Sprintf("127.0.0.1:%d", e.listen), "--admin-port", strconv.Itoa(e.admin)}
	p, err := startProcess("render", e.environ, crossdoorBin, append(args, e.opts.render...)...)
	if err != nil {
		e.t.Fatal(err)
	}
	<-p.done
	if p.err != nil {
		e.t.Fatalf("crossdoor render: %v\n%s\n%s", p.err, p.out, e.policyText())
	}
}

func (e *env) startEnvoy() {
	e.t.Helper()
	workers := e.opts.concurrency
	if workers == "" {
		workers = os.Getenv("ENVOY_CONCURRENCY")
	}
	if workers == "" {
		workers = "1"
	}
	p, err := startProcess("envoy", nil, envoyBin, "-c", filepath.Join(e.dir, "out", "envoy.yaml"), "--concurrency", workers, "--disable-hot-restart", "--log-level", "warning")
	if err != nil {
		e.t.Fatal(err)
	}
	e.envoy = p
}

// start starts or restarts a replica.
func (s *service) start() {
	s.e.t.Helper()
	if s.proc != nil {
		s.past = append(s.past, s.proc)
	}
	args := []string{"serve", "--policy", s.e.policy, "--grpc", fmt.Sprintf("127.0.0.1:%d", s.grpc), "--admin", fmt.Sprintf("127.0.0.1:%d", s.admin)}
	var peers []string
	for _, other := range s.e.services {
		if other != s {
			peers = append(peers, fmt.Sprintf("127.0.0.1:%d", other.grpc))
		}
	}
	if len(peers) > 0 {
		args = append(args, "--advertise", fmt.Sprintf("127.0.0.1:%d", s.grpc), "--peers", strings.Join(peers, ","))
	}
	p, err := startIn(s.dir, "crossdoor serve", s.e.environ, crossdoorBin, append(args, s.e.opts.serve...)...)
	if err != nil {
		s.e.t.Fatal(err)
	}
	s.proc = p
}

// service is the first replica.
func (e *env) service() *service { return e.services[0] }

// waitReady waits until every part says that it is ready.
func (e *env) waitReady() {
	e.t.Helper()
	for _, s := range e.services {
		s.waitReady()
	}
	eventually(e.t, 20*time.Second, "Envoy sees the service healthy", func() error {
		if !e.envoy.alive() {
			return fmt.Errorf("envoy ended: %v", e.envoy.err)
		}
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/clusters", e.admin))
		if err != nil {
			return err
		}
		for _, s := range e.services {
			if s.proc.alive() && !strings.Contains(text, fmt.Sprintf("crossdoor::127.0.0.1:%d::health_flags::healthy", s.grpc)) {
				return errNotYet
			}
		}
		return nil
	})
	eventually(e.t, 10*time.Second, "Envoy listens", func() error {
		_, err := get(fmt.Sprintf("http://127.0.0.1:%d/ready", e.admin))
		return err
	})
}

func (s *service) waitReady() {
	s.e.t.Helper()
	eventually(s.e.t, 20*time.Second, "crossdoor serve is ready", func() error {
		if !s.proc.alive() {
			return fmt.Errorf("it ended: %v", s.proc.err)
		}
		_, err := get(fmt.Sprintf("http://127.0.0.1:%d/readyz", s.admin))
		return err
	})
}

// get is the body of a 200.
func get(url string) (string, error) {
	resp, err := adminClient.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %.300s", url, resp.Status, b)
	}
	return string(b), nil
}

var adminClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (e *env) lane(name string) *laneRun {
	e.t.Helper()
	l, ok := e.lanes[name]
	if !ok {
		e.t.Fatalf("no lane %q", name)
	}
	return l
}
