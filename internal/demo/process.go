package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a child that runs until it is stopped; its output is in a file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error // of Wait; read after done
}

// spawn starts bin; what it says is appended to the file log.
func spawn(name, log string, env []string, bin string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }() // the child has its own
	cmd := exec.Command(bin, args...)  // children are stopped in order, also when a context ended
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = apart()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill is kill -9; it returns when the child is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already, which is what is wanted
	<-p.done
}

// stop asks with SIGTERM and kills when that is not enough.
func (p *process) stop(patience time.Duration) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		p.kill()
	}
}

// ended is an error with the child's last words when it runs no more.
func (p *process) ended() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	return fmt.Errorf("%s ended by itself (%w); it said last:\n%s", p.name, exitError(p.err), lastLines(p.log))
}

var errExited = errors.New("exit status 0")

func exitError(err error) error {
	if err == nil {
		return errExited
	}
	return err
}

// lastLines is the end of a log, indented.
func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "    (" + filepath.Base(path) + " cannot be read)"
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var b bytes.Buffer
	for _, l := range lines[max(0, len(lines)-6):] {
		b.WriteString("    ")
		b.Write(l[:min(len(l), 300)])
		b.WriteByte('\n')
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// poll asks until ok is nil, and returns its last error when the limit is over or
// ctx ends.
func poll(ctx context.Context, limit time.Duration, what string, ok func() error) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		if fatal, ok := errors.AsType[fatalError](err); ok {
			return fatal.err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("%s: not within %v: %w", what, limit, err)
		case <-tick.C:
		}
	}
}

// fatalError ends a poll at once.
type fatalError struct{ err error }

func (e fatalError) Error() string { return e.err.Error() }

// pause waits, or returns early with the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
