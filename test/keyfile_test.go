package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// rereadWithin is the contract's time for a changed key file, and some for a
// busy machine.
const rereadWithin = 12 * time.Second

// keyLane is a lane whose first target has its key in the file; `accepted` is
// what its platform takes.
func keyLane(name, file string, accepted ...string) lane {
	return lane{
		name: name, refused: true,
		targets: []target{{keyYAML: fmt.Sprintf("[{file: %s}]", file), rules: &fakeplatform.Rules{Keys: accepted}}, {}},
	}
}

// lastKey is the key of the latest request at the lane's first target.
func (l *laneRun) lastKey() string {
	all := l.fakes[0].Requests()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Get("x-api-key")
}

// TestKeyFileIsRotated: the new value is used within ten seconds, and what the
// old one was ejected for is forgotten.
func TestKeyFileIsRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	renamedFile, mountedFile := filepath.Join(dir, "renamed"), filepath.Join(dir, "mounted")
	renamed(t, renamedFile, "sk-secret-old-renamed\n")
	mounted(t, mountedFile, "v1", "  sk-secret-old-mounted\r\n")
	cases := []struct {
		lane   string
		rotate func(value string)
	}{
		{"renamed", func(value string) { renamed(t, renamedFile, value+"\n") }},
		{"mounted", func(value string) { mounted(t, mountedFile, "v2", value) }},
	}
	e := start(t, options{top: []string{"breaker: {long_window: 5m}"}},
		keyLane("renamed", renamedFile, "sk-secret-old-renamed"), keyLane("mounted", mountedFile, "sk-secret-old-mounted"))
	for _, c := range cases {
		l := e.lane(c.lane)
		if got := servedBy(l, call{}); got != "200 "+c.lane+"-a" {
			t.Fatalf("with the old key: %s", got)
		}
		l.fakes[0].SetRules(fakeplatform.Rules{Keys: []string{"sk-secret-new-" + c.lane}})
		first := l.send(call{})
		if r := l.byID(first.id()); r.summary() != "a credential failover, b ok serve" {
			t.Errorf("attempts %q with a key that is refused", r.summary())
		}
		l.state("key", 2)
		second := l.send(call{})
		if r := l.byID(second.id()); r.skips() != "a ejected" || r.summary() != "b ok serve" {
			t.Errorf("skips %q, attempts %q after it", r.skips(), r.summary())
		}
	}
	for _, c := range cases {
		c.rotate("sk-secret-new-" + c.lane)
	}
	for _, c := range cases {
		l := e.lane(c.lane)
		eventually(t, rereadWithin, "the ejection of "+c.lane+" is cleared", func() error {
			state, err := e.breaker("key", l.targetName(0))
			if err == nil && state > 0 {
				err = fmt.Errorf("state %v", state)
			}
			return err
		})
		if got := servedBy(l, call{}); got != "200 "+c.lane+"-a" || l.lastKey() != "sk-secret-new-"+c.lane {
			t.Errorf("%s with the new key in place", got)
		}
	}
}

// TestKeyFileIsReadAfterRefusal: a 401 does not wait for the next look.
func TestKeyFileIsReadAfterRefusal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	renamed(t, file, "sk-secret-0")
	e := start(t, options{top: []string{"breaker: {long_window: 5m}"}}, keyLane("at-once", file, "sk-secret-0"))
	l := e.lane("at-once")
	if got := servedBy(l, call{}); got != "200 at-once-a" {
		t.Fatal(got)
	}
	// The regular look can come between a rotation and its request: then there is
	// no refusal to see, and the next rotation shows it.
	for n := range 4 {
		key := fmt.Sprintf("sk-secret-%d", n+1)
		l.fakes[0].SetRules(fakeplatform.Rules{Keys: []string{key}})
		renamed(t, file, key)
		refused := servedBy(l, call{})
		eventually(t, time.Second, "the new key is used", func() error {
			if got := servedBy(l, call{}); got != "200 at-once-a" || l.lastKey() != key {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
		if refused == "200 at-once-b" {
			return
		}
	}
	t.Error("no request had the old key after a rotation: the case shows nothing")
}

// TestKeyIsMissing: its target is left out, the chain goes on, and the key is
// used when it comes.
func TestKeyIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	late, never, there := filepath.Join(dir, "late"), filepath.Join(dir, "never"), filepath.Join(dir, "there")
	renamed(t, there, "sk-secret-there")
	renamed(t, filepath.Join(dir, "blank"), " \n\n")
	none := lane{name: "none", targets: []target{{keyYAML: "[{env: CROSSDOOR_TEST_IS_NOT_SET}]"}, {keyYAML: fmt.Sprintf("[{file: %s}, {file: %s}]", never, filepath.Join(dir, "blank"))}}}
	half := keyLane("half", never, "sk-secret-there")
	half.targets[0].keyYAML = fmt.Sprintf("[{file: %s}, {file: %s}]", never, there)
	e := start(t, options{}, keyLane("late", late, "sk-secret-late"), none, half)

	t.Run("the chain goes on", func(t *testing.T) {
		l := e.lane("late").in(t)
		a := l.send(call{})
		if got := a.header.Get("x-crossdoor-served-by"); a.status != 200 || got != "late-b" {
			t.Errorf("%d from %q", a.status, got)
		}
		if r := l.byID(a.id()); r.skips() != "a credential" || r.summary() != "b ok serve" {
			t.Errorf("skips %q, attempts %q", r.skips(), r.summary())
		}
		l.e.metric(1, "skipped_total", "target", "late-a", "reason", "credential")
		for _, place := range []string{"file:" + late, "file:" + never, "env:CROSSDOOR_TEST_IS_NOT_SET"} {
			if !strings.Contains(e.reasons(t), place) {
				t.Errorf("/readyz does not name %s: %s", place, e.reasons(t))
			}
			if !strings.Contains(e.service().proc.out.String(), place) {
				t.Errorf("the log does not name %s", place)
			}
		}
	})
	t.Run("no target has one", func(t *testing.T) {
		l := e.lane("none").in(t)
		a := l.send(call{})
		kind, _, err := messagesError(a)
		if a.status != 529 || kind != "overloaded_error" || err != nil || a.header.Get("x-should-retry") != "false" {
			t.Errorf("got %d %q (%v), %v", a.status, kind, err, a.header)
		}
		if r := l.byID(a.id()); r.Outcome != "exhausted" || r.skips() != "a credential, b credential" || len(r.Attempts) != 0 {
			t.Errorf("record %s", r.line)
		}
	})
	t.Run("one of two keys", func(t *testing.T) {
		l := e.lane("half").in(t)
		for range 4 {
			if got := servedBy(l, call{}); got != "200 half-a" || l.lastKey() != "sk-secret-there" {
				t.Error(got)
			}
		}
	})
	t.Run("it comes", func(t *testing.T) {
		l := e.lane("late").in(t)
		renamed(t, late, "sk-secret-late")
		eventually(t, rereadWithin, "the key is known", func() error {
			if strings.Contains(e.reasons(t), late) {
				return errNotYet
			}
			return nil
		})
		if got := servedBy(l, call{}); got != "200 late-a" {
			t.Error(got)
		}
	})
	t.Run("nobody wants it any more", func(t *testing.T) {
		e.reload(t, edited(t, e.policyText(), "[{env: CROSSDOOR_TEST_IS_NOT_SET}]", fmt.Sprintf("[{file: %s}]", there)))
		if why := e.reasons(t); strings.Contains(why, "CROSSDOOR_TEST_IS_NOT_SET") {
			t.Errorf("/readyz misses what the policy does not name: %s", why)
		}
	})
}

// scopesOf are the breakers of the lane's first target that are not closed, by
// scope, with the key that they are of.
func (l *laneRun) scopesOf() (map[string]int, error) {
	r, err := l.e.service().readiness()
	out := map[string]int{}
	for _, tg := range r.Targets {
		if tg.Name != l.targetName(0) {
			continue
		}
		for _, s := range tg.Scopes {
			out[s.Scope+" "+s.Model+" "+s.Key]++
		}
	}
	return out, err
}

// TestKeyFileClearsEveryScope: what a key was ejected for, as a whole and with a
// model, is forgotten with its value; what its target or another key was ejected
// for is not. What still runs with the old value blames nobody any more.
func TestKeyFileClearsEveryScope(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	renamed(t, first, "sk-secret-first-0")
	renamed(t, second, "sk-secret-second")
	spec := keyLane("scopes", first, "sk-secret-first-0", "sk-secret-first-1", "sk-secret-second")
	spec.targets[0].keyYAML = fmt.Sprintf("[{file: %s}, {file: %s}]", first, second)
	spec.models = "scopes-x, scopes-y"
	e := start(t, options{top: []string{"breaker: {failures: 1, window: 5m, max_window: 5m, long_window: 5m}"}}, spec)
	l := e.lane("scopes")
	limited := fakeplatform.Error(429, "x", fakeplatform.Field{Name: "retry-after", Value: "250"})
	ask := func(model string, script ...fakeplatform.Answer) string {
		t.Helper()
		l.fakes[0].Script(script...)
		return servedBy(l, call{body: goodBody(model, false, 0)})
	}
	expect := func(when string, want ...string) {
		t.Helper()
		eventually(t, rereadWithin, when, func() error {
			got, err := l.scopesOf()
			for _, w := range want {
				if err == nil && got[w] != 1 {
					err = fmt.Errorf("%v, want %v", got, want)
				}
			}
			if err == nil && len(got) != len(want) {
				err = fmt.Errorf("%v, want %v", got, want)
			}
			return err
		})
	}
	// With the first key: one that runs meanwhile, then a 429 of the one model.
	gate := make(chan struct{})
	l.fakes[0].Script(fakeplatform.Error(401, "x").Held(gate))
	old := l.later(call{body: goodBody("scopes-y", false, 0)})
	l.at(0, 1)
	if l.lastKey() != "sk-secret-first-0" {
		t.Fatalf("the first key is not used first: %s", l.lastKey())
	}
	// The second key's 429 leaves the first one, whose 429 leaves none.
	if got := ask("scopes-x", limited, limited); got != "200 scopes-b" {
		t.Fatalf("both keys limited: %s", got)
	}
	busy := ask("scopes-y", fakeplatform.Error(529, "x")) // whichever key: blames the target's model
	if busy != "200 scopes-b" {
		t.Fatal(busy)
	}
	model, of := "model scopes-y ", func(scope, model, file string) string { return scope + " " + model + " file:" + file }
	expect("both keys of one model and the other model are out", model, of("key_model", "scopes-x", first), of("key_model", "scopes-x", second))

	renamed(t, first, "sk-secret-first-1")
	expect("the first key's is cleared", model, of("key_model", "scopes-x", second))
	if got := ask("scopes-x"); got != "200 scopes-a" || l.lastKey() != "sk-secret-first-1" {
		t.Errorf("with the new key: %s", got)
	}
	close(gate)
	if a := <-old; a.status != 200 {
		t.Errorf("the one that ran with the old key: %s", describe(a, a.err))
	}
	expect("the old value's refusal blames nobody", model, of("key_model", "scopes-x", second))

	// The whole key: refused, and read again at once, but there is nothing new.
	if got := ask("scopes-x", fakeplatform.Error(401, "x")); got != "200 scopes-b" {
		t.Errorf("the new key refused: %s", got)
	}
	expect("the first key is out as a whole", model, of("key", "", first), of("key_model", "scopes-x", second))
	renamed(t, first, "sk-secret-first-0")
	expect("it is cleared as a whole", model, of("key_model", "scopes-x", second))
	if got := ask("scopes-x"); got != "200 scopes-a" || l.lastKey() != "sk-secret-first-0" {
		t.Errorf("with the key of before: %s", got)
	}
}
