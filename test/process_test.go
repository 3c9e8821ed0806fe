package test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one started program; its output is kept for a failure's report.
type process struct {
	name string
	cmd  *exec.Cmd
	out  *lockedBuffer
	done chan struct{}
	err  error // of Wait; read after done
}

func startProcess(name string, env []string, bin string, args ...string) (*process, error) {
	return startIn("", name, env, bin, args...)
}

// raceAtExit shortens the second that a program built with the race detector
// waits before it exits, for reports still to come: environments start and end
// several such programs. GORACE of the caller goes before it.
const raceAtExit = "GORACE=atexit_sleep_ms=50"

// startIn is startProcess in a working directory.
func startIn(dir, name string, env []string, bin string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(bin, args...), out: &lockedBuffer{}, done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = slices.Concat([]string{raceAtExit}, os.Environ(), env)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = 5 * time.Second // a program that is killed may leave others who hold its output
	// A test binary that dies must not leave an Envoy behind.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already, which is what is wanted
	<-p.done
}

// stop asks with SIGTERM and kills after the limit; false says it had to kill.
func (p *process) stop(limit time.Duration) bool {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-p.done:
		return true
	case <-time.After(limit):
		p.kill()
		return false
	}
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// lockedBuffer collects output; past its limit the middle is lost.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// nextPort goes through ports that no outgoing connection is given (those begin
// at 32768), from a place that differs between runs.
var nextPort struct {
	sync.Mutex

	last int
}

// freePort gives each caller another port that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	nextPort.Lock()
	defer nextPort.Unlock()
	if nextPort.last == 0 {
		nextPort.last = 10000 + rand.IntN(20000)
	}
	for range 500 {
		nextPort.last = 10000 + (nextPort.last-10000+1)%22000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", nextPort.last))
		if err == nil {
			_ = l.Close() // nothing was accepted
			return nextPort.last
		}
	}
	t.Fatal("no free port")
	return 0
}

// eventually polls until ok returns nil, or fails with its last error.
func eventually(t testing.TB, limit time.Duration, what string, ok func() error) {
	t.Helper()
	err := poll(limit, ok)
	if err != nil {
		t.Fatalf("%s: not within %v: %v", what, limit, err)
	}
}

var errNotYet = errors.New("not yet")

func poll(limit time.Duration, ok func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for {
		err := ok()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}
