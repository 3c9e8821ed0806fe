package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tick is one unit of utime and stime in /proc/PID/stat: USER_HZ is 100 on
// every Linux that Go runs on.
const tick = 10 * time.Millisecond

// process is a program that the bench started; it dies with the bench.
type process struct {
	name string
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
}

func startProcess(name string, env []string, bin string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(bin, args...), //nolint:gosec,noctx // the binaries of the run, until stop
		out: &tail{}, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended shows in its output
		close(p.done)
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.done
}

// cpu is the processor time that the process has used, in steps of tick.
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", p.name, err, p.out)
	}
	// The second field is the name in parentheses, which may hold spaces.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: stat has %d fields", p.name, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// peak is the most memory that the process had resident since resetPeak, in
// bytes.
func (p *process) peak() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", p.name, err, p.out)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s: no VmHWM", p.name)
}

// resetPeak makes the present size the peak (man 5 proc, clear_refs). Where the
// kernel does not let it, the peak stays that of the process's life.
func (p *process) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

// tail keeps the last output of a process, for the report of a failure.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(0, len(t.buf)-4096):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// freePort is one that nobody listens on right now.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return portOf(l), l.Close()
}

// portOf is the port of a TCP listener.
func portOf(l net.Listener) int {
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		return addr.Port
	}
	return 0
}

// waitFor polls url until its answer has text.
func (p *process) waitFor(url, text string) error {
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for time.Now().Before(deadline) {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %s", p.name, p.out)
		case <-tick.C:
		}
		if last = fetch(url); strings.Contains(last, text) {
			return nil
		}
	}
	return fmt.Errorf("%s: %s did not say %q within 20 s but %.300q: %s", p.name, url, text, last, p.out)
}

// fetch is the status line and the body, or the error, as text.
func fetch(url string) string {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url) //nolint:noctx // the client has a timeout
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or broken
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return resp.Status + "\n" + string(b)
}
