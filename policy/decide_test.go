package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// failures are the kinds that an attempt can fail with before the commit.
var failures = []config.Kind{
	config.KindConnection, config.KindTimeout, config.KindOverloaded, config.KindServerError, config.KindRateLimit,
	config.KindBillingQuota, config.KindCredential, config.KindPermission, config.KindModelUnavailable,
	config.KindEntitlement, config.KindUnsupportedFeature, config.KindTooLarge, config.KindInvalidRequest,
	config.KindModeration, config.KindInvalidOutput,
}

// expected walks a chain by the contract's words: failover goes to the next
// place, a kind that blames the key to the next key first, stop stays; a long
// kind or a 429 ejects what it blames, so a target that comes again is passed.
func expected(chain string, keys int, kind config.Kind, action config.Action, most int) string {
	blame, long := BlameOf(kind)
	byKey := blame == BlameKey || blame == BlameKeyModel
	var tries []string
	seen := map[string]bool{}
	for name := range strings.FieldsSeq(chain) {
		if seen[name] && (long || byKey) {
			continue
		}
		seen[name] = true
		for k := range keys {
			if k == 0 || byKey {
				tries = append(tries, fmt.Sprintf("%s:%d", name, k))
			}
		}
	}
	// A target without a key's blame goes round its keys when it comes again.
	again := map[string]int{}
	for i, try := range tries {
		name, _, _ := strings.Cut(try, ":")
		if !byKey {
			tries[i] = fmt.Sprintf("%s:%d", name, again[name]%keys)
		}
		again[name]++
	}
	if action == config.ActionStop {
		return tries[0] + " stop"
	}
	// Out of attempts and out of targets look alike.
	tries = tries[:min(len(tries), most)]
	for i := range tries {
		verb := " failover"
		if i == len(tries)-1 {
			verb = " stop!"
		}
		tries[i] += verb
	}
	return strings.Join(tries, ", ")
}

// Every kind, with failover and stop, over chains, keys and attempts allowed.
func TestDecideProduct(t *testing.T) {
	for _, chain := range []string{"a", "a b", "a b a", "a a", "a b c d"} {
		for _, keys := range []int{1, 2, 3} {
			for _, most := range []int{1, 2, 6, 50} {
				for _, action := range []config.Action{config.ActionFailover, config.ActionStop} {
					for _, kind := range failures {
						name := fmt.Sprintf("%s, %d keys, at most %d, %s %s", chain, keys, most, kind, action)
						bubble(t, func(t *testing.T) {
							words := strings.Fields(chain)
							for i := range words {
								words[i] += fmt.Sprintf("/%d", keys)
							}
							w := newWay(t, strings.Join(words, " "))
							w.route.MaxAttempts = most
							w.route.Actions[kind] = action
							got := w.walk(OutcomeOf(kind, "test"))
							if want := expected(chain, keys, kind, action, most); got != want {
								t.Errorf("%s:\n got %s\nwant %s", name, got, want)
							}
							w.x.End(OutcomeOf(config.KindClientGone, ""), time.Now())
							w.free()
						})
					}
				}
			}
		}
	}
}

// The default actions, by what the first decision is.
func TestDecideDefaults(t *testing.T) {
	stops := map[config.Kind]bool{config.KindTooLarge: true, config.KindInvalidRequest: true, config.KindModeration: true, config.KindInvalidOutput: true}
	withClients := map[config.Kind]bool{config.KindCredential: true, config.KindPermission: true, config.KindBillingQuota: true, config.KindEntitlement: true}
	for _, kind := range failures {
		for _, passthrough := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, passthrough %v", kind, passthrough), func(t *testing.T) {
				w := newWay(t, "a b")
				if passthrough {
					w.policy.Target("a").Keys[0] = config.Key{Source: config.KeyPassthrough}
				}
				w.next()
				want := VerbFailover
				if stops[kind] || (passthrough && withClients[kind]) {
					want = VerbStop
				}
				if d := w.fail(OutcomeOf(kind, "")); d.Verb != want || d.Exhausted || d.Wait != 0 {
					t.Errorf("%+v, want %s", d, want)
				}
			})
		}
	}
}

func TestDecideDeadline(t *testing.T) {
	cases := []struct {
		name string
		used time.Duration
		want string
	}{
		{"time left", 10*time.Minute - 1, "failover"},
		{"the last moment", 10 * time.Minute, "stop"},
		{"over", 11 * time.Minute, "stop"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWay(t, "a b")
				w.next()
				pass(c.used)
				d := w.fail(OutcomeOf(config.KindOverloaded, ""))
				if string(d.Verb) != c.want || d.Exhausted != (c.want == "stop") || w.x.Exhausted() != d.Exhausted {
					t.Errorf("%+v, want %s", d, c.want)
				}
			})
		})
	}
	t.Run("a retry that would end after it goes on at once", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWay(t, "a b")
			w.route.SameTargetRetries = 1
			w.route.Actions[config.KindRateLimit] = config.ActionRetry
			w.next()
			pass(10*time.Minute - 4*time.Second)
			if d := w.fail(OutcomeOf(config.KindRateLimit, "")); d.Verb != VerbFailover {
				t.Errorf("%+v", d)
			}
		})
	})
}

// A 413 speaks of one target's limit: only a larger one is tried, also later.
func TestDecideTooLarge(t *testing.T) {
	limits := func(w *way, sizes ...int64) {
		for i, s := range sizes {
			w.policy.Targets[i].Limits.Body = s
		}
	}
	of := func(status int) Outcome {
		o := OutcomeOf(config.KindTooLarge, "")
		o.Status = status
		return o
	}
	t.Run("413 to a larger limit", func(t *testing.T) {
		w := newWay(t, "a b c")
		limits(w, 10, 10, 20)
		if got := w.walk(of(413)); got != "a:0 failover, c:0 stop" {
			t.Error(got)
		}
	})
	t.Run("413 and nobody larger is this answer", func(t *testing.T) {
		w := newWay(t, "a b c")
		limits(w, 20, 10, 20)
		if got := w.walk(of(413)); got != "a:0 stop" || w.x.Exhausted() {
			t.Error(got, w.x.Exhausted())
		}
	})
	t.Run("400 prompt is too long", func(t *testing.T) {
		w := newWay(t, "a b c")
		limits(w, 10, 10, 20)
		if got := w.walk(of(400)); got != "a:0 stop" {
			t.Error(got)
		}
	})
	t.Run("the smaller ones stay out after another failure", func(t *testing.T) {
		w := newWay(t, "a b c d")
		limits(w, 10, 20, 10, 20)
		w.next()
		w.fail(of(413))
		if got := w.walk(OutcomeOf(config.KindOverloaded, "")); got != "b:0 failover, d:0 stop!" {
			t.Error(got)
		}
	})
	t.Run("attempts end", func(t *testing.T) {
		w := newWay(t, "a b")
		limits(w, 10, 20)
		w.route.MaxAttempts = 1
		if got := w.walk(of(413)); got != "a:0 stop!" {
			t.Error(got)
		}
	})
}

// Kinds change on the way: keys tried and retries count for one place only.
func TestDecideMixed(t *testing.T) {
	cases := []struct {
		name  string
		chain string
		kinds []config.Kind
		want  string
	}{
		{"a key, then the target", "a/3 b/2", []config.Kind{config.KindCredential, config.KindOverloaded, config.KindCredential, config.KindCredential}, "a:0 failover, a:1 failover, b:0 failover, b:1 stop!"},
		{"one key only", "a b", []config.Kind{config.KindRateLimit, config.KindRateLimit}, "a:0 failover, b:0 stop!"},
		{"stop at the second", "a b c", []config.Kind{config.KindTimeout, config.KindInvalidRequest}, "a:0 failover, b:0 stop"},
		{"the key of a comes again with a", "a/2 b a", []config.Kind{config.KindRateLimit, config.KindOverloaded, config.KindTimeout, config.KindTimeout}, "a:0 failover, a:1 failover, b:0 failover, a:1 stop!"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWay(t, c.chain)
				var steps []string
				for _, k := range c.kinds {
					a := w.next()
					d := w.fail(OutcomeOf(k, ""))
					mark := ""
					if d.Exhausted {
						mark = "!"
					}
					steps = append(steps, w.name(a)+" "+string(d.Verb)+mark)
				}
				if got := strings.Join(steps, ", "); got != c.want {
					t.Errorf("\n got %s\nwant %s", got, c.want)
				}
				w.free()
			})
		})
	}
}

// A target that does not take part when the decision is made is passed, and
// one that recovers before the attempt is due is not gone back to.
func TestDecideSkipsTheEjected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWay(t, "a b c")
		b, _ := w.health.Admit(w.policy.Target("b"), wren, nil, nil)
		b.Report(OutcomeOf(config.KindPermission, ""))
		w.next()
		if d := w.fail(OutcomeOf(config.KindOverloaded, "")); d.Verb != VerbFailover {
			t.Fatalf("%+v", d)
		}
		if w.x.Plan.Places[1].Skip != SkipEjected {
			t.Errorf("b is %q", w.x.Plan.Places[1].Skip)
		}
		pass(2 * time.Minute)
		if got := w.name(w.next()); got != "c:0" {
			t.Errorf("next is %s", got)
		}
	})
}

// A target without keys has none to go on to.
func TestDecideWithoutKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWay(t, "a b")
		w.policy.Target("a").Keys = nil
		if got := w.walk(OutcomeOf(config.KindRateLimit, "")); got != "a:-1 failover, b:0 stop!" {
			t.Error(got)
		}
	})
}
