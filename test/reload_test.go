package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// readiness is the JSON of /readyz.
type readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`
	Policy   string   `json:"policy"`
	Render   string   `json:"render"`
	Inflight int      `json:"inflight"`
	Targets  []struct {
		Name     string `json:"name"`
		Platform string `json:"platform"`
		State    string `json:"state"`
		Scopes   []struct {
			Scope string `json:"scope"`
			Model string `json:"model"`
			Key   string `json:"key"`
			State string `json:"state"`
		} `json:"scopes"`
	} `json:"targets"`
}

// readiness is an error when /readyz does not say 200.
func (s *service) readiness() (readiness, error) {
	var r readiness
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/readyz", s.admin))
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}

// reasons are the lines of /readyz as one text.
func (e *env) reasons(t testing.TB) string {
	t.Helper()
	r, err := e.service().readiness()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(r.Reasons, "\n")
}

// hashOf is a policy's hash as trail and /readyz have it.
func hashOf(policy string) string {
	sum := sha256.Sum256([]byte(policy))
	return hex.EncodeToString(sum[:])[:12]
}

// edited replaces what must be in the text exactly once.
func edited(t testing.TB, text, old, with string) string {
	t.Helper()
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%q is %d times in\n%s", old, n, text)
	}
	return strings.Replace(text, old, with, 1)
}

// without cuts from one text up to the next one.
func without(t testing.TB, text, from, to string) string {
	t.Helper()
	head, rest, found := strings.Cut(text, from)
	_, tail, ended := strings.Cut(rest, to)
	if !found || !ended {
		t.Fatalf("no %q and %q in\n%s", from, to, text)
	}
	return head + to + tail
}

// renamed puts a file in place whole.
func renamed(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// linked makes a symbolic link in place of what is there.
func linked(t testing.TB, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path+".next"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// mounted has the file in a folder of its own that `..data` beside path leads
// to, as a mounted ConfigMap or Secret does; path itself leads through it.
func mounted(t testing.TB, path, version, text string) {
	t.Helper()
	folder, name := filepath.Split(path)
	if err := os.Mkdir(filepath.Join(folder, ".."+version), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".."+version, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	linked(t, ".."+version, filepath.Join(folder, "..data"))
	if to, err := os.Readlink(path); err != nil || to != filepath.Join("..data", name) {
		linked(t, filepath.Join("..data", name), path)
	}
}

// taken waits until the policy is in force. The limit is far below the ten
// seconds after which the service looks without being told.
func (e *env) taken(t testing.TB, policy string) {
	t.Helper()
	eventually(t, 3*time.Second, "the policy is taken", func() error {
		r, err := e.service().readiness()
		if err == nil && r.Policy != hashOf(policy) {
			err = fmt.Errorf("%s is in force, not %s: %v", r.Policy, hashOf(policy), r.Reasons)
		}
		return err
	})
}

// reload puts a policy in place and waits until it is in force.
func (e *env) reload(t testing.TB, policy string) {
	t.Helper()
	renamed(t, e.policy, policy)
	e.taken(t, policy)
}

func TestPolicyIsReadAgain(t *testing.T) {
	t.Parallel()
	e := start(t, options{}, lane{name: "again", targets: two()})
	l := e.lane("again")
	ab := e.policyText()
	ba := edited(t, ab, "chain: [again-a, again-b]", "chain: [again-b, again-a]")
	check := func(t *testing.T, policy, served string) {
		t.Helper()
		e.taken(t, policy)
		a := l.in(t).send(call{})
		if got := a.header.Get("x-crossdoor-served-by"); a.status != 200 || got != served {
			t.Errorf("%d from %q, want %s", a.status, got, served)
		}
		if r := l.in(t).byID(a.id()); r.Policy != hashOf(policy) {
			t.Errorf("policy %q in the trail, want %s", r.Policy, hashOf(policy))
		}
	}
	t.Run("renamed", func(t *testing.T) {
		renamed(t, e.policy, ba)
		check(t, ba, "again-b")
	})
	t.Run("written in place", func(t *testing.T) {
		if err := os.WriteFile(e.policy, []byte(ab), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, ab, "again-a")
	})
	t.Run("swapped as a ConfigMap", func(t *testing.T) {
		mounted(t, e.policy, "v1", ab)
		mounted(t, e.policy, "v2", ba)
		check(t, ba, "again-b")
	})
	t.Run("SIGHUP", func(t *testing.T) {
		// Where no change can be seen: the file is in another folder.
		far := filepath.Join(t.TempDir(), "far.yaml")
		renamed(t, far, ba)
		linked(t, far, e.policy)
		waitUntil(t, time.Now().Add(500*time.Millisecond)) // the link is seen
		renamed(t, far, ab)
		if err := e.service().proc.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		check(t, ab, "again-a")
	})
	e.metric(4, "policy_reloads_total", "result", "ok")
	e.metric(0, "policy_reloads_total", "result", "refused")
}

// TestBrokenPolicyIsRefused: the old one stays, and /readyz says what is wrong
// and where.
func TestBrokenPolicyIsRefused(t *testing.T) {
	t.Parallel()
	e := start(t, options{}, lane{name: "stays", targets: two()})
	l := e.lane("stays")
	good := e.policyText()
	for i, c := range []struct {
		name, text string
		want       *regexp.Regexp
	}{
		{"unknown target", edited(t, good, "chain: [stays-a, stays-b]", "chain: [stays-a, stays-bb]"), regexp.MustCompile(`crossdoor\.yaml:\d+:\d+: routes\[0\]\.chain\[1\]: .*did you mean "?stays-b`)},
		{"no YAML", good + "routes: [", regexp.MustCompile(`crossdoor\.yaml:\d+:\d+: `)},
		{"a key in it", edited(t, good, "- env: KEY_STAYS_A_0", "- sk-secret-stays-inline"), regexp.MustCompile(`crossdoor\.yaml:\d+:\d+: targets\.stays-a\.keys\[0\]`)},
		{"empty", "", regexp.MustCompile(`crossdoor\.yaml`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			renamed(t, e.policy, c.text)
			l.in(t).e.metric(float64(i+1), "policy_reloads_total", "result", "refused")
			r, err := e.service().readiness()
			if err != nil || !r.Ready || r.Policy != hashOf(good) {
				t.Errorf("/readyz: ready %v, policy %s, want %s (%v)", r.Ready, r.Policy, hashOf(good), err)
			}
			if why := e.reasons(t); !c.want.MatchString(why) {
				t.Errorf("/readyz says %q, want %s", why, c.want)
			}
			l.in(t).e.checkSecrets("/readyz", e.reasons(t))
			if got := servedBy(l.in(t), call{}); got != "200 stays-a" {
				t.Errorf("by the old one: %s", got)
			}
		})
	}
	if err := os.Remove(e.policy); err != nil {
		t.Fatal(err)
	}
	e.metric(5, "policy_reloads_total", "result", "refused")
	if got := servedBy(l, call{}); got != "200 stays-a" {
		t.Errorf("without a file: %s", got)
	}
	next := edited(t, good, "chain: [stays-a, stays-b]", "chain: [stays-b]")
	e.reload(t, next)
	if why := e.reasons(t); why != "" {
		t.Errorf("after a good one /readyz says %q", why)
	}
	if got := servedBy(l, call{}); got != "200 stays-b" {
		t.Errorf("by the new one: %s", got)
	}
	e.metric(1, "policy_reloads_total", "result", "ok")
}

// TestRunningExchangesKeepTheirPolicy to their end, targets and keys included
// that the new one does not have.
func TestRunningExchangesKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	e := start(t, options{}, lane{name: "keep", targets: []target{{}, {}, {}}, chain: "[@a, @b, @c]"})
	l := e.lane("keep")
	old := e.policyText()
	next := edited(t, without(t, old, "  keep-a:\n", "  keep-c:\n"), "chain: [keep-a, keep-b, keep-c]", "chain: [keep-c]")
	gate := make(chan struct{})
	all := append([][]byte{startEvent}, wholeTail...)
	stream := fakeplatform.Stream(all...)
	stream.Mid, stream.MidPart = gate, len(all)-1
	l.fakes[0].Script(entitlement, fakeplatform.Error(529, "x").Held(gate))
	l.fakes[1].Script(stream)
	streaming := l.later(call{stream: true})
	l.at(1, 1)
	thinking := l.later(call{})
	l.at(0, 2)
	e.reload(t, next)
	late := l.send(call{})
	if got := late.header.Get("x-crossdoor-served-by"); late.status != 200 || got != "keep-c" {
		t.Errorf("a new request: %d %q", late.status, got)
	}
	close(gate)
	a := <-streaming
	if a.status != 200 || a.err != nil || !bytes.Equal(a.body, bytes.Join(all, nil)) {
		t.Errorf("the stream of a target that is gone: %s", describe(a, a.err))
	}
	b := <-thinking
	if got := b.header.Get("x-crossdoor-served-by"); b.status != 200 || got != "keep-b" {
		t.Errorf("the failover to a target that is gone: %s", describe(b, b.err))
	}
	for _, c := range []struct {
		answer         *answer
		attempts, hash string
	}{
		{late, "c ok serve", hashOf(next)},
		{a, "a entitlement failover, b ok serve", hashOf(old)},
		{b, "a overloaded failover, b ok serve", hashOf(old)},
	} {
		if r := l.byID(c.answer.id()); r.summary() != c.attempts || r.Policy != c.hash {
			t.Errorf("attempts %q under %s, want %q under %s", r.summary(), r.Policy, c.attempts, c.hash)
		}
	}
	e.metric(0, "inflight")
	e.metric(0, "body_bytes")
	if state, err := e.breaker("model", "keep-a"); err != nil || state != -1 {
		t.Errorf("a target that is gone still has a breaker: %v (%v)", state, err)
	}
}

// TestReloadClearsEjections of what changed, and of nothing else.
func TestReloadClearsEjections(t *testing.T) {
	t.Parallel()
	changes := []struct{ lane, line, served string }{
		{"headers", "    forward_headers: [x-extra]\n", "a"},
		{"mapped", "    models: {mapped: another-id}\n", "a"},
		{"labelled", "    labels: {region: eu}\n", "b"},
		{"same", "", "b"},
	}
	var lanes []lane
	for _, c := range changes {
		lanes = append(lanes, lane{name: c.lane, targets: two()})
	}
	e := start(t, options{top: []string{"breaker: {failures: 1, window: 1m, max_window: 2m}"}}, lanes...)
	next := e.policyText()
	for _, c := range changes {
		l := e.lane(c.lane)
		l.fakes[0].Script(fakeplatform.Error(529, "x"))
		if got := servedBy(l, call{}) + ", " + servedBy(l, call{}); got != "200 "+c.lane+"-b, 200 "+c.lane+"-b" || len(l.fakes[0].Requests()) != 1 {
			t.Fatalf("%s is not ejected: %s", c.lane, got)
		}
		l.state("model", 2)
		next = edited(t, next, "  "+c.lane+"-a:\n", "  "+c.lane+"-a:\n"+c.line)
	}
	e.reload(t, next)
	for _, c := range changes {
		t.Run(c.lane, func(t *testing.T) {
			l := e.lane(c.lane).in(t)
			if got := servedBy(l, call{}); got != "200 "+c.lane+"-"+c.served {
				t.Errorf("%s, want %s", got, c.served)
			}
			l.state("model", map[string]float64{"a": 0, "b": 2}[c.served])
		})
	}
}

// TestTrailNeedsARestart: another trail of the policy is told, not followed; the
// rest of that policy is in force.
func TestTrailNeedsARestart(t *testing.T) {
	t.Parallel()
	e := start(t, options{}, lane{name: "kept", targets: two()})
	l := e.lane("kept")
	ab := e.policyText()
	ba := edited(t, ab, "chain: [kept-a, kept-b]", "chain: [kept-b, kept-a]")
	e.reload(t, edited(t, ba, "{recent: 1000, file: trail.jsonl}", "{recent: 10, file: other.jsonl}"))
	for where, text := range map[string]string{"/readyz": e.reasons(t), "the log": e.service().proc.out.String()} {
		if want := "trail.file, trail.recent: changed since the start"; !strings.Contains(text, want) {
			t.Errorf("%s does not say %q: %s", where, want, text)
		}
	}
	a := l.send(call{})
	if r := l.byID(a.id()); r.summary() != "b ok serve" { // in the file of before
		t.Errorf("record %s", r.line)
	}
	if _, err := os.Stat(filepath.Join(e.service().dir, "other.jsonl")); err == nil {
		t.Error("the other file is there as well")
	}
	e.reload(t, ab)
	if why := e.reasons(t); why != "" {
		t.Errorf("with the trail of the start again: %s", why)
	}
}
