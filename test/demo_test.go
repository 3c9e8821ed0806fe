package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// demoLimit is generous: the contract says 40 s, on a machine that does nothing
// else.
const demoLimit = 60 * time.Second

// demoRun is one `crossdoor demo`; its temporary folder is its own.
type demoRun struct {
	t    *testing.T
	tmp  string
	proc *process
}

func startDemo(t *testing.T, args ...string) *demoRun {
	t.Helper()
	d := &demoRun{t: t, tmp: t.TempDir()}
	p, err := startProcess("crossdoor demo", []string{"ENVOY=" + envoyBin, "TMPDIR=" + d.tmp}, crossdoorBin, append([]string{"demo"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	d.proc = p
	t.Cleanup(func() {
		p.stop(15 * time.Second)
		if t.Failed() {
			t.Logf("crossdoor demo:\n%s", p.out)
		}
	})
	return d
}

// until waits until the demo said something.
func (d *demoRun) until(limit time.Duration, text string) {
	d.t.Helper()
	eventually(d.t, limit, fmt.Sprintf("the demo says %q", text), func() error {
		if strings.Contains(d.proc.out.String(), text) {
			return nil
		}
		if !d.proc.alive() {
			return fmt.Errorf("it ended: %w", errors.Join(errNotYet, d.proc.err))
		}
		return errNotYet
	})
}

// end waits for the demo's end and says its exit code.
func (d *demoRun) end(limit time.Duration) int {
	d.t.Helper()
	eventually(d.t, limit, "the demo ends", func() error {
		if d.proc.alive() {
			return errNotYet
		}
		return nil
	})
	if exit, ok := errors.AsType[*exec.ExitError](d.proc.err); ok {
		return exit.ExitCode()
	}
	return 0
}

var demoPorts = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// nothingLeft: no child listens any more.
func (d *demoRun) nothingLeft() {
	d.t.Helper()
	addrs := demoPorts.FindAllString(d.proc.out.String(), -1)
	if len(addrs) < 2 {
		d.t.Errorf("the demo does not say where Envoy and the service are")
	}
	for _, addr := range addrs {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			_ = c.Close()
			d.t.Errorf("somebody listens at %s still", addr)
		}
	}
}

func (d *demoRun) folders() int {
	d.t.Helper()
	list, err := os.ReadDir(d.tmp)
	if err != nil {
		d.t.Fatal(err)
	}
	return len(list)
}

// TestDemo: every step behaves, it ends by itself, plain and not too wide, and
// leaves nothing.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	if code := d.end(demoLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out := d.proc.out.String()
	if !strings.Contains(out, "all 10 steps behaved") {
		t.Error("not all steps behaved")
	}
	for l := range strings.SplitSeq(out, "\n") {
		if n := utf8.RuneCountInString(l); n > 100 || strings.ContainsAny(l, "\x1b\r") {
			t.Errorf("%d characters, or not plain: %q", n, l)
		}
	}
	d.nothingLeft()
	if n := d.folders(); n != 0 {
		t.Errorf("%d folders are left", n)
	}
}

func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.until(30*time.Second, "ready in")
	_ = d.proc.cmd.Process.Signal(os.Interrupt)
	if code := d.end(10 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	d.nothingLeft()
	if n := d.folders(); n != 0 {
		t.Errorf("%d folders are left", n)
	}
}

// TestDemoKeep: the commands that it prints work, and Ctrl-C ends it well.
func TestDemoKeep(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--keep")
	d.until(demoLimit, "policy, Envoy config and logs:")
	said := d.proc.out.String()
	commands := curlCommands(said)
	want := []string{"200 anthropic", "200 anthropic stream", "200 claude-aws", "200 claude-aws stream", "529 "}
	if len(commands) != len(want) {
		t.Fatalf("%d commands, want %d", len(commands), len(want))
	}
	for i, c := range commands {
		got, err := c.run()
		if err != nil || !strings.HasPrefix(got, want[i]) {
			t.Errorf("%s\n%s (%v), want %s", c.body, got, err, want[i])
		}
	}
	_ = d.proc.cmd.Process.Signal(syscall.SIGINT)
	if code := d.end(10 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.nothingLeft()
	if n := d.folders(); n != 1 || !strings.Contains(d.proc.out.String(), "are in "+d.tmp) {
		t.Errorf("%d folders, and it must say where", n)
	}
}

// curlCommand is what a printed command asks for.
type curlCommand struct {
	url, body string
	headers   []string
}

var (
	curlForm   = regexp.MustCompile(`(?s)curl -\w+ (http://\S+/v1/messages)(.*?)\n\n`)
	headerForm = regexp.MustCompile(`-H '([^']*)'`)
	dataForm   = regexp.MustCompile(`(?s)-d '([^']*)'`)
)

func curlCommands(text string) []curlCommand {
	found := curlForm.FindAllStringSubmatch(text, -1)
	out := make([]curlCommand, 0, len(found))
	for _, m := range found {
		c := curlCommand{url: m[1]}
		for _, h := range headerForm.FindAllStringSubmatch(m[2], -1) {
			c.headers = append(c.headers, h[1])
		}
		if data := dataForm.FindStringSubmatch(m[2]); data != nil {
			c.body = data[1]
		}
		out = append(out, c)
	}
	return out
}

// run is the status, who served, and `stream` for a whole stream.
func (c curlCommand) run() (string, error) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(c.body))
	if err != nil {
		return "", err
	}
	for _, h := range c.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := adminClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	got := fmt.Sprintf("%d %s", resp.StatusCode, resp.Header.Get("x-crossdoor-served-by"))
	if strings.Contains(string(body), "event: message_stop") {
		got += " stream"
	}
	return got, err
}
