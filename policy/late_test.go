package policy

import (
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// A success is told with the access log, a moment after it was one. Failures that
// came meanwhile still count; those before it do not.
func TestBreakerSuccessToldLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := &config.Target{Name: "fp", Keys: []config.Key{{Name: "K"}}}
		r := newRig(t, fp)
		if r.policy.Breaker.Failures != 3 {
			t.Fatal("the numbers below are for 3 failures")
		}
		r.fail(fp, config.KindOverloaded, 1)
		good := r.admit(fp)
		pass(time.Millisecond)
		o := OutcomeOf(config.KindOK, "")
		o.At = time.Now()
		pass(time.Millisecond)
		r.fail(fp, config.KindOverloaded, 1)
		good.Report(o)
		r.fail(fp, config.KindOverloaded, 1)
		r.admit(fp).Report(OutcomeOf(config.KindInvalidRequest, "neutral")) // two since: not open
		r.fail(fp, config.KindOverloaded, 1)
		r.shut(fp, 0)
	})
}

// An error whose answer is on its way already is the last word, whatever would
// have followed. Only what would have been tried again exhausts the exchange.
func TestConcede(t *testing.T) {
	for _, c := range []struct {
		kind      config.Kind
		exhausted bool
	}{{config.KindOverloaded, true}, {config.KindRateLimit, true}, {config.KindInvalidRequest, false}} {
		t.Run(string(c.kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWay(t, "a b")
				a := w.next()
				if err := w.x.Concede(a.N, OutcomeOf(c.kind, "unread"), time.Now()); err != nil {
					t.Fatal(err)
				}
				if a.Decision != VerbStop || a.Waited != 0 || w.x.Exhausted() != c.exhausted {
					t.Errorf("%s, waits %v, exhausted %v", a.Decision, a.Waited, w.x.Exhausted())
				}
			})
		})
	}
}
