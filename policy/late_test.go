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
