package policy

import (
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

func TestDecideRetry(t *testing.T) {
	cases := []struct {
		name    string
		chain   string
		kind    config.Kind
		retries int
		most    int
		want    string
	}{
		{"twice, then the next", "a b", config.KindOverloaded, 2, 6, "a:0 retry, a:0 retry, a:0 failover, b:0 retry, b:0 retry, b:0 stop!"},
		{"none allowed is failover", "a b", config.KindOverloaded, 0, 6, "a:0 failover, b:0 stop!"},
		{"attempts end before the retries", "a b", config.KindServerError, 5, 3, "a:0 retry, a:0 retry, a:0 stop!"},
		{"attempts end at the next target", "a b", config.KindTimeout, 1, 3, "a:0 retry, a:0 failover, b:0 stop!"},
		{"the same target comes again with retries of its own", "a b a", config.KindConnection, 1, 9, "a:0 retry, a:0 failover, b:0 retry, b:0 failover, a:0 retry, a:0 stop!"},
		{"round the keys, as each attempt does", "a/2 b", config.KindOverloaded, 2, 9, "a:0 retry, a:1 retry, a:0 failover, b:0 retry, b:0 retry, b:0 stop!"},
		{"a kind that blames nothing", "a b", config.KindEntitlement, 1, 9, "a:0 retry, a:0 failover, b:0 retry, b:0 stop!"},
		{"rate limit waits for its key", "a b", config.KindRateLimit, 1, 9, "a:0 retry, a:0 failover, b:0 retry, b:0 stop!"},
		{"one attempt", "a b", config.KindOverloaded, 2, 1, "a:0 stop!"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWay(t, c.chain)
				w.route.SameTargetRetries, w.route.MaxAttempts = c.retries, c.most
				w.route.Actions[c.kind] = config.ActionRetry
				if got := w.walk(OutcomeOf(c.kind, "test")); got != c.want {
					t.Errorf("\n got %s\nwant %s", got, c.want)
				}
				w.free()
			})
		})
	}
}

// Retries wait with full jitter up to a ceiling that doubles; nothing else
// waits.
func TestDecideBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		longest := make([]time.Duration, 5)
		for range 200 {
			w := newWay(t, "a b")
			w.route.SameTargetRetries, w.route.MaxAttempts = 5, 9
			w.route.Actions[config.KindOverloaded] = config.ActionRetry
			for i := range longest {
				w.next()
				d := w.fail(OutcomeOf(config.KindOverloaded, ""))
				if d.Verb != VerbRetry || w.x.Last().Waited != d.Wait {
					t.Fatalf("retry %d: %+v, noted %v", i+1, d, w.x.Last().Waited)
				}
				longest[i] = max(longest[i], d.Wait)
			}
			w.next()
			if d := w.fail(OutcomeOf(config.KindOverloaded, "")); d.Verb != VerbFailover || d.Wait != 0 {
				t.Fatalf("after the retries: %+v", d)
			}
		}
		for i, ms := range []int{200, 400, 800, 1600, 2000} {
			ceiling := time.Duration(ms) * time.Millisecond
			if longest[i] > ceiling || longest[i] < ceiling/2 {
				t.Errorf("retry %d waits up to %v, want up to %v", i+1, longest[i], ceiling)
			}
		}
	})
}

func TestDecideRetryAfter(t *testing.T) {
	cases := []struct {
		name       string
		retryAfter time.Duration
		stated     bool
		left       time.Duration // until the deadline
		verb       Verb
		least      time.Duration
	}{
		{"stated", 3 * time.Second, true, time.Minute, VerbRetry, 3 * time.Second},
		{"not stated is the default", 0, false, time.Minute, VerbRetry, 5 * time.Second},
		{"stated as now", 0, true, time.Minute, VerbRetry, 0},
		{"the longest", 5 * time.Minute, true, time.Hour, VerbRetry, 5 * time.Minute},
		{"above the longest", 5*time.Minute + time.Second, true, time.Hour, VerbFailover, 0},
		{"past the deadline", 30 * time.Second, true, 30 * time.Second, VerbFailover, 0},
		{"just before the deadline", 29 * time.Second, true, 30 * time.Second, VerbRetry, 29 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWay(t, "a b")
				w.route.SameTargetRetries = 1
				w.route.Backoff = config.Backoff{Base: time.Millisecond, Max: time.Millisecond}
				w.route.Actions[config.KindRateLimit] = config.ActionRetry
				w.route.Timeouts.Total = c.left
				w.start()
				w.next()
				o := OutcomeOf(config.KindRateLimit, "")
				o.RetryAfter, o.HasRetryAfter = c.retryAfter, c.stated
				d := w.fail(o)
				if d.Verb != c.verb || d.Wait < c.least || d.Wait > c.least+10*time.Millisecond {
					t.Fatalf("%+v, want %s after %v", d, c.verb, c.least)
				}
				pass(d.Wait)
				want := map[Verb]string{VerbRetry: "a:0", VerbFailover: "b:0"}[c.verb]
				if got := w.name(w.next()); got != want {
					t.Errorf("next is %s, want %s", got, want)
				}
			})
		})
	}
}
