package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// way is one exchange over a chain, with the Health that it counts on.
type way struct {
	*testing.T

	route  *config.Route
	policy *config.Policy
	health *Health
	x      *Exchange
}

// chainOf is a route over targets named in order; "a/2" has two keys, a name
// that comes again is the same target. Every target takes 3 attempts at once and
// knows every model as wren.
func chainOf(chain string) (*config.Route, *config.Policy) {
	route := &config.Route{
		Name: "main", MaxAttempts: 6, Actions: map[config.Kind]config.Action{},
		Timeouts:   config.Timeouts{Hold: 20 * time.Second, Idle: 5 * time.Minute, Total: 10 * time.Minute},
		Backoff:    config.Backoff{Base: 200 * time.Millisecond, Max: 2 * time.Second},
		RetryAfter: config.RetryAfter{Default: 5 * time.Second, Max: 5 * time.Minute},
	}
	p := testPolicy()
	p.Breaker.Failures = 100
	for word := range strings.FieldsSeq(chain) {
		name, count, _ := strings.Cut(word, "/")
		t := p.Target(name)
		if t == nil {
			n := 1
			fmt.Sscan(count, &n)
			t = testTarget(name)
			for k := range n {
				t.Keys = append(t.Keys, config.Key{Source: config.KeyEnv, Name: fmt.Sprintf("%s%d", name, k)})
			}
			t.Models = []config.ModelRule{{Model: "*", ID: wren}}
			t.MaxConcurrency = 3
			p.Targets = append(p.Targets, t)
		}
		route.Chain = append(route.Chain, &config.Entry{Target: t})
	}
	p.Routes = []*config.Route{route}
	return route, p
}

func anyKey(*config.Target, int) bool { return true }

func newWay(t *testing.T, chain string) *way {
	route, p := chainOf(chain)
	w := &way{T: t, route: route, policy: p, health: NewHealth(p, nil, Observer{})}
	w.start()
	return w
}

// start begins the exchange, with what the test has made of the route.
func (w *way) start() {
	w.x = NewExchange(NewPlan(w.route, Request{Model: wren}, nil, time.Now()), w.health, anyKey)
}

func (w *way) next() *Attempt {
	w.Helper()
	a, ok := w.x.Next(time.Now())
	if !ok {
		w.Fatalf("no next attempt while %s", w.x.State())
	}
	return a
}

func (w *way) fail(o Outcome) Decision {
	w.Helper()
	d, err := w.x.Fail(len(w.x.Attempts), o, time.Now())
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// name is an attempt as "target:key".
func (w *way) name(a *Attempt) string {
	return fmt.Sprintf("%s:%d", w.x.Plan.Places[a.Place].Entry.Target.Name, a.Key)
}

// walk fails every attempt with o until nothing follows, waiting as told. Each
// step is "target:key verb"; "!" marks an exhausted stop.
func (w *way) walk(o Outcome) string {
	w.Helper()
	var steps []string
	for {
		a, ok := w.x.Next(time.Now())
		if !ok {
			return strings.Join(append(steps, "none"), ", ")
		}
		d := w.fail(o)
		step := w.name(a) + " " + string(d.Verb)
		if d.Exhausted {
			step += "!"
		}
		steps = append(steps, step)
		if d.Verb == VerbStop {
			return strings.Join(steps, ", ")
		}
		pass(d.Wait)
	}
}

// free checks that every slot of every target is back.
func (w *way) free() {
	w.Helper()
	for _, t := range w.policy.Targets {
		if n := w.health.of(t).slots.taken.Load(); n != 0 {
			w.Errorf("%d slots of %s are taken", n, t.Name)
		}
	}
}

// stepTo brings a fresh exchange into a state.
func (w *way) stepTo(s State) {
	w.Helper()
	now := time.Now()
	steps := map[State]func() error{
		StatePlanned:    func() error { return nil },
		StateAttempting: func() error { w.next(); return nil },
		StateHolding:    func() error { w.next(); return w.x.Held(1, now) },
		StateDeciding:   func() error { w.next(); _, err := w.x.Fail(1, OutcomeOf(config.KindOverloaded, ""), now); return err },
		StateCommitted:  func() error { w.next(); return w.x.Commit(1, now) },
		StateEnded:      func() error { w.next(); w.x.End(OutcomeOf(config.KindClientGone, ""), now); return nil },
	}
	if err := steps[s](); err != nil || w.x.State() != s {
		w.Fatalf("to %s: %v, is %s", s, err, w.x.State())
	}
}

var allStates = []State{StatePlanned, StateAttempting, StateHolding, StateDeciding, StateCommitted, StateEnded}

// A step that does not fit the state, or names another attempt than the one
// that runs, is refused and changes nothing.
func TestExchangeIllegalSteps(t *testing.T) {
	now := time.Now()
	steps := []struct {
		name  string
		step  func(x *Exchange, n int) error
		legal map[State]bool
	}{
		{"held", func(x *Exchange, n int) error { return x.Held(n, now) }, map[State]bool{StateAttempting: true}},
		{"commit", func(x *Exchange, n int) error { return x.Commit(n, now) }, map[State]bool{StateAttempting: true, StateHolding: true}},
		{"fail", func(x *Exchange, n int) error {
			_, err := x.Fail(n, OutcomeOf(config.KindTimeout, ""), now)
			return err
		}, map[State]bool{StateAttempting: true, StateHolding: true}},
		{"finish", func(x *Exchange, n int) error { return x.Finish(n, OutcomeOf(config.KindOK, ""), now) }, map[State]bool{StateCommitted: true}},
	}
	for _, state := range allStates {
		for _, s := range steps {
			for _, n := range []int{0, 1, 2, -1} {
				legal := s.legal[state] && n == 1
				t.Run(fmt.Sprintf("%s while %s, attempt %d", s.name, state, n), func(t *testing.T) {
					w := newWay(t, "a b")
					w.stepTo(state)
					before := w.dump()
					err := s.step(w.x, n)
					switch {
					case legal && err != nil:
						t.Errorf("refused: %v", err)
					case !legal && !errors.Is(err, ErrOrder):
						t.Errorf("error %v, want ErrOrder", err)
					case !legal && w.dump() != before:
						t.Errorf("changed from %s to %s", before, w.dump())
					}
					w.x.End(OutcomeOf(config.KindClientGone, ""), now)
					w.free()
				})
			}
		}
	}
}

// dump is everything that a refused step must leave alone.
func (w *way) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s cursor=%d retries=%d tried=%v larger=%d exhausted=%v", w.x.state, w.x.cursor, w.x.retries, w.x.tried, w.x.larger, w.x.exhausted)
	for _, a := range w.x.Attempts {
		c := *a
		c.admission = nil
		fmt.Fprintf(&b, " %+v", c)
	}
	for _, t := range w.policy.Targets {
		fmt.Fprintf(&b, " %s=%d", t.Name, w.health.of(t).slots.taken.Load())
	}
	return b.String()
}

// Only a planned exchange, or one that has decided, begins an attempt.
func TestExchangeNextByState(t *testing.T) {
	for _, state := range allStates {
		t.Run(state.String(), func(t *testing.T) {
			w := newWay(t, "a b")
			w.stepTo(state)
			before := len(w.x.Attempts)
			_, ok := w.x.Next(time.Now())
			if want := state == StatePlanned || state == StateDeciding; ok != want || (len(w.x.Attempts) > before) != want {
				t.Errorf("next: %v, %d attempts after %d; want %v", ok, len(w.x.Attempts), before, want)
			}
			w.x.End(OutcomeOf(config.KindClientGone, ""), time.Now())
			w.free()
		})
	}
}

// End gives every slot back, in every state, once.
func TestExchangeEndGivesBack(t *testing.T) {
	for _, state := range allStates {
		t.Run(state.String(), func(t *testing.T) {
			w := newWay(t, "a b")
			w.stepTo(state)
			for range 2 {
				w.x.End(OutcomeOf(config.KindClientGone, ""), time.Now())
				w.free()
			}
			if w.x.State() != StateEnded {
				t.Errorf("state %s", w.x.State())
			}
			for _, target := range w.policy.Targets {
				for i := range 3 {
					if a, v := w.health.Admit(target, wren, nil, nil); a == nil {
						t.Errorf("slot %d of %s: %+v", i+1, target.Name, v)
					}
				}
				if v := w.health.Look(target, wren, nil); v.Skip != SkipBusy {
					t.Errorf("%s with 3 attempts: %+v, want busy", target.Name, v)
				}
			}
		})
	}
}

// A probe that ends without a word about the target leaves its slot to another.
func TestExchangeEndGivesProbeBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWay(t, "a")
		w.next()
		w.fail(OutcomeOf(config.KindPermission, "")) // long: ejects at once
		w.start()
		if _, ok := w.x.Next(time.Now()); ok {
			t.Fatal("an ejected target was tried")
		}
		pass(time.Minute)
		for range 2 {
			w.start()
			if a := w.next(); !a.Probe {
				t.Error("not a probe")
			}
			w.x.End(OutcomeOf(config.KindClientGone, ""), time.Now())
		}
		w.start()
		w.next()
		if err := w.x.Commit(1, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := w.x.Finish(1, OutcomeOf(config.KindOK, ""), time.Now()); err != nil {
			t.Fatal(err)
		}
		w.start()
		if a := w.next(); a.Probe {
			t.Error("still a probe after a success")
		}
	})
}

func TestExchangeSkips(t *testing.T) {
	t.Run("busy first, the next is taken", func(t *testing.T) {
		w := newWay(t, "a b")
		for range 3 {
			w.health.Admit(w.policy.Target("a"), wren, nil, nil)
		}
		if a := w.next(); w.name(a) != "b:0" || w.x.Plan.Places[0].Skip != SkipBusy {
			t.Errorf("%s, a is %q", w.name(a), w.x.Plan.Places[0].Skip)
		}
	})
	t.Run("a credential that is missing", func(t *testing.T) {
		w := newWay(t, "a b")
		w.x.usable = func(c *config.Target, _ int) bool { return c.Name == "b" }
		if a := w.next(); w.name(a) != "b:0" || w.x.Plan.Places[0].Skip != SkipCredential {
			t.Errorf("%s, a is %q", w.name(a), w.x.Plan.Places[0].Skip)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		w := newWay(t, "a b")
		w.x.usable = func(*config.Target, int) bool { return false }
		if _, ok := w.x.Next(time.Now()); ok || !w.x.Exhausted() || len(w.x.Attempts) != 0 {
			t.Errorf("ok %v, exhausted %v", ok, w.x.Exhausted())
		}
	})
	t.Run("what planning left out stays out", func(t *testing.T) {
		w := newWay(t, "a b")
		w.x.Plan.Places[0].Skip = SkipTooLarge
		if a := w.next(); w.name(a) != "b:0" || w.x.Plan.Places[0].Skip != SkipTooLarge {
			t.Errorf("%s, a is %q", w.name(a), w.x.Plan.Places[0].Skip)
		}
	})
}

func TestExchangeElapsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWay(t, "a b")
		a := w.next()
		pass(time.Second)
		if got := a.Elapsed(time.Now()); got != time.Second || a.OutcomeSoFar() != config.KindOK {
			t.Errorf("running: %v %s", got, a.OutcomeSoFar())
		}
		w.fail(OutcomeOf(config.KindOverloaded, ""))
		b := w.next()
		pass(2 * time.Second)
		if err := w.x.Commit(2, time.Now()); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if err := w.x.Finish(2, OutcomeOf(config.KindTruncated, ""), time.Now()); err != nil {
			t.Fatal(err)
		}
		if a.Elapsed(time.Now()) != time.Second || a.OutcomeSoFar() != config.KindOverloaded {
			t.Errorf("failed: %v %s", a.Elapsed(time.Now()), a.OutcomeSoFar())
		}
		if b.Elapsed(time.Now()) != 2*time.Second || b.OutcomeSoFar() != config.KindTruncated || b.Decision != VerbServe {
			t.Errorf("served: %v %s %s", b.Elapsed(time.Now()), b.OutcomeSoFar(), b.Decision)
		}
	})
}

func TestExchangeAbandonBlamesNothing(t *testing.T) {
	w := newWay(t, "a")
	w.policy.Breaker.Failures = 1
	w.next()
	w.x.Abandon(config.KindTimeout, time.Now())
	if a := w.x.Last(); a.Outcome.Kind != config.KindTimeout || a.Outcome.Blame != BlameNothing || !w.x.Exhausted() || w.x.State() != StateEnded {
		t.Errorf("%+v, %s", a.Outcome, w.x.State())
	}
	w.free()
}
