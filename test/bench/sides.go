package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// routeBuffer is request_body_buffer_limit of every side: twice Crossdoor's
// default for limits.body.
const routeBuffer = 64 << 20

// The three sides, by their place in every array over sides.
const (
	sideD = iota // Envoy alone
	sideN        // Envoy and a no-op ext_proc service
	sideP        // Envoy and Crossdoor
	sides
)

var sideNames = [sides]string{"Envoy alone", "no-op", "Crossdoor"}

//go:embed envoy.yaml.tmpl policy.yaml.tmpl
var configs embed.FS

var templates = template.Must(template.ParseFS(configs, "*.tmpl"))

// programs are the binaries of a run.
type programs struct{ envoy, crossdoor, self string }

// side is one Envoy and its service, running.
type side struct {
	name    string
	url     string
	envoy   *process
	service *process // of side D: the sink of its access log
	client  *http.Client
}

// ports of a side and of what it talks to.
type ports struct {
	Listen, Admin, Service, Ops, Platform, Busy int
	Noop                                        bool
	RouteBuffer                                 int
}

// startSide starts side which in a folder of its own under dir.
func startSide(ctx context.Context, which int, bin programs, dir string, u *upstream) (*side, error) {
	s := &side{name: sideNames[which], client: newClient()}
	p := ports{Platform: u.main, Busy: u.busy, Noop: which == sideN, RouteBuffer: routeBuffer}
	var err error
	for _, port := range []*int{&p.Listen, &p.Admin, &p.Service, &p.Ops} {
		if *port, err = freePort(ctx); err != nil {
			return nil, err
		}
	}
	dir = filepath.Join(dir, fmt.Sprintf("side-%c-%d", "DNP"[which], p.Listen))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	start := s.startNoop
	if which == sideP {
		start = s.startCrossdoor
	}
	config, err := start(bin, dir, p)
	if err == nil {
		err = s.startEnvoy(bin, config, p)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *side) startNoop(bin programs, dir string, p ports) (string, error) {
	var err error
	if s.service, err = startProcess(s.name+" service", nil, bin.self, "noop", loopback(p.Service)); err != nil {
		return "", err
	}
	return write(dir, "envoy.yaml", p)
}

func (s *side) startCrossdoor(bin programs, dir string, p ports) (string, error) {
	policy, err := write(dir, "policy.yaml", p)
	if err != nil {
		return "", err
	}
	env := []string{"BENCH_KEY=sk-bench", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=bench", "AWS_EC2_METADATA_DISABLED=true"}
	render := exec.Command( //nolint:gosec,noctx // ends by itself
		bin.crossdoor, "render", "--policy", policy, "--for", "envoy", "--out", dir, "--service", loopback(p.Service),
		"--listen", loopback(p.Listen), "--admin-port", strconv.Itoa(p.Admin))
	if out, err := render.CombinedOutput(); err != nil {
		return "", fmt.Errorf("crossdoor render: %w: %s", err, out)
	}
	s.service, err = startProcess("crossdoor serve", env, bin.crossdoor, "serve", "--policy", policy, "--grpc", loopback(p.Service), "--admin", loopback(p.Ops))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "envoy.yaml"), s.service.waitFor("http://"+loopback(p.Ops)+"/readyz", "200 OK")
}

func (s *side) startEnvoy(bin programs, config string, p ports) error {
	var err error
	s.envoy, err = startProcess(s.name+" envoy", nil, bin.envoy, "-c", config, "--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
	if err != nil {
		return err
	}
	s.url = "http://" + loopback(p.Listen) + "/v1/messages"
	admin := "http://" + loopback(p.Admin)
	return errors.Join(s.envoy.waitFor(admin+"/clusters", loopback(p.Service)+"::health_flags::healthy"), s.envoy.waitFor(admin+"/ready", "200 OK"))
}

func (s *side) stop() {
	s.client.CloseIdleConnections()
	for _, p := range []*process{s.envoy, s.service} {
		if p != nil {
			p.stop()
		}
	}
}

// usage is what a side's processes have used so far.
type usage struct{ envoy, service time.Duration }

func (s *side) usage() (usage, error) {
	e, err1 := s.envoy.cpu()
	v, err2 := s.service.cpu()
	return usage{envoy: e, service: v}, errors.Join(err1, err2)
}

// peaks are the most bytes that the side's processes held since resetPeaks.
func (s *side) peaks() (envoy, service int64, err error) {
	envoy, err1 := s.envoy.peak()
	service, err2 := s.service.peak()
	return envoy, service, errors.Join(err1, err2)
}

func (s *side) resetPeaks() {
	s.envoy.resetPeak()
	s.service.resetPeak()
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10}}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// write fills the template of that name into dir.
func write(dir, name string, p ports) (string, error) {
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(templates.ExecuteTemplate(f, name+".tmpl", p), f.Close())
}

// envoyVersion is what the binary says of itself.
func envoyVersion(bin string) (string, error) {
	out, err := exec.Command(bin, "--version").Output() //nolint:noctx // ends by itself
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", bin, err)
	}
	// `envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL`
	_, after, _ := strings.Cut(string(out), "version:")
	if parts := strings.Split(after, "/"); len(parts) > 1 {
		return parts[1], nil
	}
	return "", fmt.Errorf("%s --version says %q", bin, out)
}

// drainAll reads and drops what is left of r.
func drainAll(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
