package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// elsewhere is the same exchange on a replica with its own health, from what is
// carried of it: no admission, no cursor.
func (w *way) elsewhere() *way {
	other := &way{T: w.T, route: w.route, policy: w.policy, health: NewHealth(w.policy, nil, Observer{})}
	plan := NewPlan(w.route, w.x.Plan.Request, nil, w.x.Plan.Start)
	other.x = Resume(plan, other.health, anyKey, w.carried())
	return other
}

func (w *way) carried() []Attempt {
	out := make([]Attempt, 0, len(w.x.Attempts))
	for _, a := range w.x.Attempts {
		c := *a
		c.admission = nil
		out = append(out, c)
	}
	return out
}

// scenario is a chain and what its attempts come to, one after the other.
type scenario struct {
	name  string
	chain string
	route func(*way)
	fails []Outcome
}

func kinds(list ...config.Kind) []Outcome {
	out := make([]Outcome, 0, len(list))
	for _, k := range list {
		out = append(out, OutcomeOf(k, "test"))
	}
	return out
}

func scenarios() []scenario {
	retry := func(w *way) {
		w.route.SameTargetRetries = 2
		w.route.Actions[config.KindOverloaded] = config.ActionRetry
	}
	large := OutcomeOf(config.KindTooLarge, "")
	large.Status = 413
	larger := func(w *way) {
		for i, size := range []int64{10, 20, 10, 20} {
			w.policy.Targets[i].Limits.Body = size
		}
	}
	over := config.KindOverloaded
	return []scenario{
		{"failover", "a b c", nil, kinds(over, over, over)},
		{"retries, then the next", "a b", retry, kinds(over, over, over, over, over)},
		{"keys, then the next", "a/2 b/2", nil, kinds(config.KindCredential, config.KindCredential, config.KindCredential, config.KindCredential)},
		{"the first target again", "a b a", nil, kinds(over, over, over)},
		{"same target twice", "a a b", nil, kinds(over, over, over)},
		{"a kind that stops", "a b", nil, kinds(over, config.KindInvalidRequest)},
		{"attempts end", "a b c", func(w *way) { w.route.MaxAttempts = 2 }, kinds(over, over)},
		{"413, then the larger ones only", "a b c d", larger, []Outcome{large, OutcomeOf(over, ""), large}},
		{"keys of the next after a key of the first", "a/2 b/2", nil, kinds(config.KindRateLimit, over, config.KindRateLimit, config.KindRateLimit)},
	}
}

// Whichever attempt another replica takes over, open or closed, it decides as
// the first one would have.
func TestResumeDecidesTheSame(t *testing.T) {
	for _, s := range scenarios() {
		for at := range s.fails {
			for _, open := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, attempt %d open %v", s.name, at+1, open), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						whole := s.run(newWay(t, s.chain), 0)
						w := newWay(t, s.chain)
						if s.route != nil {
							s.route(w)
						}
						var steps []string
						for _, o := range s.fails[:at] {
							steps = append(steps, w.step(o))
						}
						if open {
							w.next()
						}
						other := w.elsewhere()
						w.x.End(OutcomeOf(config.KindClientGone, ""), time.Now())
						steps = append(steps, s.rest(other, at, open)...)
						if got := strings.Join(steps, ", "); got != whole {
							t.Errorf("\n got %s\nwant %s", got, whole)
						}
						other.x.End(OutcomeOf(config.KindClientGone, ""), time.Now())
						other.free()
						w.free()
					})
				})
			}
		}
	}
}

// run is all of the scenario on one replica.
func (s scenario) run(w *way, from int) string {
	if s.route != nil {
		s.route(w)
	}
	return strings.Join(s.rest(w, from, false), ", ")
}

// rest goes on at an attempt, which runs already when open.
func (s scenario) rest(w *way, from int, open bool) []string {
	var steps []string
	for _, o := range s.fails[from:] {
		if open {
			steps = append(steps, w.closeStep(o))
			open = false
			continue
		}
		steps = append(steps, w.step(o))
	}
	return steps
}

// step is one attempt that fails; "none" when there is none to make.
func (w *way) step(o Outcome) string {
	if _, ok := w.x.Next(time.Now()); !ok {
		return "none"
	}
	return w.closeStep(o)
}

func (w *way) closeStep(o Outcome) string {
	d := w.fail(o)
	pass(d.Wait)
	mark := ""
	if d.Exhausted {
		mark = "!"
	}
	return fmt.Sprintf("%s %s%s", w.name(w.x.Last()), d.Verb, mark)
}

// What a retry went on to is not what it was decided for when the target was
// ejected meanwhile: its count and its keys stay behind.
func TestResumeForgetsThePlaceBefore(t *testing.T) {
	past := time.Now().Add(-time.Second)
	closed := func(key int, v Verb, k config.Kind) Attempt {
		return Attempt{Place: 0, Model: wren, Key: key, Start: past, End: past, Outcome: OutcomeOf(k, ""), Decision: v}
	}
	t.Run("retries", func(t *testing.T) {
		w := newWay(t, "a b")
		w.route.SameTargetRetries = 1
		w.route.Actions[config.KindOverloaded] = config.ActionRetry
		w.x = Resume(w.x.Plan, w.health, anyKey, []Attempt{closed(0, VerbRetry, config.KindOverloaded), {Place: 1, Model: wren, Start: past}})
		if d := w.fail(OutcomeOf(config.KindOverloaded, "")); d.Verb != VerbRetry {
			t.Errorf("%+v, want the retry that b has", d)
		}
	})
	t.Run("keys", func(t *testing.T) {
		w := newWay(t, "a/2 b/2")
		w.x = Resume(w.x.Plan, w.health, anyKey, []Attempt{closed(0, VerbFailover, config.KindCredential), {Place: 1, Key: 1, Model: wren, Start: past}})
		if d := w.fail(OutcomeOf(config.KindCredential, "")); d.Verb != VerbFailover {
			t.Fatalf("%+v, want b's other key", d)
		}
		if got := w.name(w.next()); got != "b:0" {
			t.Errorf("next is %s", got)
		}
	})
}

func TestMerge(t *testing.T) {
	now := time.Now()
	over := OutcomeOf(config.KindOverloaded, "elsewhere")
	ended := Attempt{Place: 0, Model: wren, Start: now, End: now.Add(time.Second), Outcome: over, Decision: VerbFailover}
	running := Attempt{Place: 1, Model: wren, Start: now.Add(time.Second)}
	t.Run("the end of the running one and a later one", func(t *testing.T) {
		w := newWay(t, "a b")
		w.next()
		w.x.Merge([]Attempt{ended, running})
		if len(w.x.Attempts) != 2 || w.x.State() != StateAttempting || w.x.Attempts[0].Outcome != over || w.x.Attempts[0].End != ended.End {
			t.Fatal(w.dump())
		}
		if n := w.health.of(w.policy.Target("a")).slots.taken.Load(); n != 0 {
			t.Errorf("the slot of a: %d taken", n)
		}
		if err := w.x.Commit(2, now); err != nil {
			t.Error(err)
		}
		w.x.End(OutcomeOf(config.KindOK, ""), now)
		w.free()
	})
	t.Run("twice is once", func(t *testing.T) {
		w := newWay(t, "a b")
		w.next()
		w.x.Merge([]Attempt{ended, running})
		before := w.dump()
		w.x.Merge([]Attempt{ended, running})
		if w.dump() != before {
			t.Errorf("\n got %s\nwant %s", w.dump(), before)
		}
		w.x.End(OutcomeOf(config.KindOK, ""), now)
		w.free()
	})
	t.Run("a known end stays", func(t *testing.T) {
		w := newWay(t, "a b")
		w.next()
		w.fail(OutcomeOf(config.KindTimeout, "here"))
		w.x.Merge([]Attempt{ended})
		if got := w.x.Attempts[0].Outcome.Kind; got != config.KindTimeout {
			t.Errorf("became %s", got)
		}
	})
	t.Run("a place that is not in the plan ends the list", func(t *testing.T) {
		for _, place := range []int{-1, 2, 1 << 30} {
			w := newWay(t, "a b")
			w.next()
			w.x.Merge([]Attempt{ended, {Place: place, Model: wren, Start: now}, running})
			if len(w.x.Attempts) != 1 || w.x.State() != StateDeciding {
				t.Errorf("place %d: %s", place, w.dump())
			}
		}
	})
	for _, state := range []State{StateCommitted, StateEnded} {
		t.Run("nothing while "+state.String(), func(t *testing.T) {
			w := newWay(t, "a b")
			w.stepTo(state)
			before := w.dump()
			w.x.Merge([]Attempt{ended, running})
			if w.dump() != before {
				t.Errorf("\n got %s\nwant %s", w.dump(), before)
			}
		})
	}
	t.Run("without a slot to be had", func(t *testing.T) {
		w := newWay(t, "a b")
		for range 3 {
			w.health.Admit(w.policy.Target("b"), wren, nil, nil)
		}
		w.x.Merge([]Attempt{ended, running})
		if d := w.fail(over); d.Verb != VerbStop || !d.Exhausted {
			t.Errorf("%+v", d)
		}
		if n := w.health.of(w.policy.Target("b")).slots.taken.Load(); n != 3 {
			t.Errorf("b has %d taken, want the 3 of others", n)
		}
	})
}
