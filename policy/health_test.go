package policy

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

const wren = "claude-wren-1"

// rig is a Health over one policy, with what its observer was told.
type rig struct {
	*testing.T

	health *Health
	policy *config.Policy

	mu     sync.Mutex
	opened []Event
	closed []Event
}

func testPolicy(targets ...*config.Target) *config.Policy {
	return &config.Policy{
		Targets: targets,
		Breaker: config.Breaker{Failures: 3, Window: 15 * time.Second, MaxWindow: 50 * time.Second, LongWindow: time.Minute},
	}
}

func testTarget(name string, keys ...string) *config.Target {
	t := &config.Target{Name: name, Platform: config.PlatformAnthropic, Endpoint: config.Endpoint{Host: name + ".example", Port: 443, TLS: true}}
	for _, k := range keys {
		t.Keys = append(t.Keys, config.Key{Source: config.KeyEnv, Name: k})
	}
	return t
}

func newRig(t *testing.T, targets ...*config.Target) *rig {
	r := &rig{T: t, policy: testPolicy(targets...)}
	r.health = NewHealth(r.policy, func(m string) bool { return m == wren || m == "claude-lark-2" }, Observer{
		Opened: func(e Event) { r.mu.Lock(); r.opened = append(r.opened, e); r.mu.Unlock() },
		Closed: func(e Event) { r.mu.Lock(); r.closed = append(r.closed, e); r.mu.Unlock() },
	})
	return r
}

// admit must be let in.
func (r *rig) admit(t *config.Target) *Admission {
	r.Helper()
	if v := r.health.Look(t, wren, nil); v.Skip != SkipNone {
		r.Fatalf("look: %s until %v, want none", v.Skip, time.Until(v.Until))
	}
	a, v := r.health.Admit(t, wren, nil, nil)
	if a == nil {
		r.Fatalf("admit: %s until %v, want an admission", v.Skip, time.Until(v.Until))
	}
	return a
}

// shut must be refused as ejected, for d more; 0 is not looked at.
func (r *rig) shut(t *config.Target, d time.Duration) {
	r.Helper()
	look := r.health.Look(t, wren, nil)
	a, v := r.health.Admit(t, wren, nil, nil)
	if a != nil || v.Skip != SkipEjected || look != v {
		r.Fatalf("look %+v, admit %v %+v, want ejected", look, a, v)
	}
	if d != 0 && time.Until(v.Until) != d {
		r.Fatalf("ejected for %v, want %v", time.Until(v.Until), d)
	}
}

func (r *rig) fail(t *config.Target, k config.Kind, times int) {
	r.Helper()
	for range times {
		r.admit(t).Report(OutcomeOf(k, "test"))
	}
}

// probe must be let in, as the probe.
func (r *rig) probe(t *config.Target) *Admission {
	r.Helper()
	a := r.admit(t)
	if !a.Probe {
		r.Fatal("admitted, but not as a probe")
	}
	return a
}

func limited(d time.Duration) Outcome {
	o := OutcomeOf(config.KindRateLimit, "test")
	o.Cooldown = d
	return o
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// pass lets d go by on the bubble's own clock: nothing really waits.
func pass(d time.Duration) { <-time.After(d) }

func TestBreakerOpensAfterConsecutiveFailures(t *testing.T) {
	for _, c := range []struct {
		kind  config.Kind
		scope Scope
		model string
	}{
		{config.KindConnection, ScopeTarget, ""},
		{config.KindTimeout, ScopeModel, wren},
		{config.KindOverloaded, ScopeModel, wren},
		{config.KindServerError, ScopeModel, wren},
		{config.KindStreamError, ScopeModel, wren},
		{config.KindTruncated, ScopeModel, wren},
		{config.KindIdle, ScopeModel, wren},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fp := testTarget("fp", "A")
				r := newRig(t, fp)
				r.fail(fp, c.kind, 2)
				r.admit(fp).Report(OutcomeOf(config.KindOK, "ok"))
				r.fail(fp, c.kind, 2)
				r.admit(fp).Report(OutcomeOf(config.KindInvalidRequest, "neutral"))
				r.fail(fp, c.kind, 1)
				r.shut(fp, 15*time.Second)
				want := Event{Scope: c.scope, Target: "fp", Model: c.model, Kind: c.kind, Window: 15 * time.Second, Until: time.Now().Add(15 * time.Second)}
				if len(r.opened) != 1 || r.opened[0] != want {
					t.Errorf("told %+v, want %+v", r.opened, want)
				}
				a, _ := r.health.Admit(fp, "claude-lark-2", nil, nil)
				if other := a != nil; other != (c.scope == ScopeModel) {
					t.Errorf("another model admitted: %v", other)
				}
			})
		})
	}
}

func TestBreakerKindsThatBlameNothing(t *testing.T) {
	for _, k := range []config.Kind{config.KindEntitlement, config.KindUnsupportedFeature, config.KindTooLarge,
		config.KindInvalidRequest, config.KindModeration, config.KindInvalidOutput, config.KindClientGone} {
		t.Run(string(k), func(t *testing.T) {
			fp := testTarget("fp", "A")
			r := newRig(t, fp)
			r.fail(fp, k, 20)
			if len(r.opened) != 0 {
				t.Errorf("opened %+v", r.opened)
			}
		})
	}
}

func TestBreakerStrayFailuresDoNotAddUp(t *testing.T) {
	fp := testTarget("fp", "A")
	r := newRig(t, fp)
	for i := range 1000 {
		k := config.KindOK
		if i%3 == 0 {
			k = config.KindOverloaded
		}
		r.fail(fp, k, 1)
	}
	if len(r.opened) != 0 {
		t.Errorf("opened %+v", r.opened)
	}
}

func TestBreakerWindowDoublesToItsLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		r.fail(fp, config.KindOverloaded, 3)
		for _, w := range []time.Duration{15 * time.Second, 30 * time.Second, 50 * time.Second, 50 * time.Second} {
			r.shut(fp, w)
			pass(w - time.Nanosecond)
			r.shut(fp, time.Nanosecond)
			pass(time.Nanosecond)
			r.probe(fp).Report(OutcomeOf(config.KindOverloaded, "again"))
		}
		if len(r.opened) != 5 || len(r.closed) != 0 {
			t.Errorf("opened %d times, closed %d", len(r.opened), len(r.closed))
		}
	})
}

func TestBreakerOneSuccessCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		r.fail(fp, config.KindConnection, 3)
		pass(15 * time.Second)
		r.probe(fp).Report(OutcomeOf(config.KindOK, "ok"))
		if a := r.admit(fp); a.Probe {
			t.Error("still probing")
		}
		want := []Event{{Scope: ScopeTarget, Target: "fp", Kind: config.KindOK}}
		if !slices.Equal(r.closed, want) {
			t.Errorf("told %+v, want %+v", r.closed, want)
		}
		r.fail(fp, config.KindConnection, 2)
		r.admit(fp) // two are not three: counting began anew
	})
}

func TestBreakerWindowAfterClosing(t *testing.T) {
	for _, c := range []struct {
		name   string
		closed time.Duration
		want   time.Duration
	}{
		{"within the hour it goes on", time.Hour - time.Second, 30 * time.Second},
		{"after a closed hour it is small", time.Hour, 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fp := testTarget("fp", "A")
				r := newRig(t, fp)
				r.fail(fp, config.KindOverloaded, 3)
				pass(15 * time.Second)
				r.fail(fp, config.KindOverloaded, 1)
				pass(30 * time.Second)
				r.probe(fp).Report(OutcomeOf(config.KindOK, "ok"))
				pass(c.closed)
				r.fail(fp, config.KindOverloaded, 3)
				r.shut(fp, c.want)
				pass(c.want)
				r.probe(fp).Report(OutcomeOf(config.KindOverloaded, "again"))
				r.shut(fp, min(2*c.want, 50*time.Second))
			})
		})
	}
}

func TestBreakerExactlyOneProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		r.fail(fp, config.KindOverloaded, 3)
		pass(15 * time.Second)
		admitted := make(chan *Admission, 50)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if r.health.Look(fp, wren, nil).Skip == SkipNone {
					if a, _ := r.health.Admit(fp, wren, nil, nil); a != nil {
						admitted <- a
					}
				}
			})
		}
		wg.Wait()
		if len(admitted) != 1 {
			t.Fatalf("%d admitted, want 1", len(admitted))
		}
		if v := r.health.Look(fp, wren, nil); v != (Verdict{SkipEjected, time.Now()}) {
			t.Errorf("beside a probe: %+v", v)
		}
		(<-admitted).Report(OutcomeOf(config.KindOK, "ok"))
		r.admit(fp)
		r.admit(fp)
	})
}

func TestBreakerNeutralProbeGivesItsSlotBack(t *testing.T) {
	for _, k := range []config.Kind{config.KindClientGone, config.KindInvalidRequest, config.KindConnection} {
		t.Run(string(k), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fp := testTarget("fp", "A")
				r := newRig(t, fp)
				r.fail(fp, config.KindOverloaded, 3)
				pass(15 * time.Second)
				for range 2 {
					a := r.probe(fp)
					r.shut(fp, 0)
					a.Report(OutcomeOf(k, "no word about the model"))
					a.Report(OutcomeOf(config.KindOK, "a second report"))
				}
				r.probe(fp).Report(OutcomeOf(config.KindOK, "ok"))
			})
		})
	}
}

func TestBreakerLongKinds(t *testing.T) {
	for _, c := range []struct {
		kind  config.Kind
		scope Scope
	}{
		{config.KindCredential, ScopeKey},
		{config.KindBillingQuota, ScopeKey},
		{config.KindPermission, ScopeModel},
		{config.KindModelUnavailable, ScopeModel},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fp := testTarget("fp", "A")
				r := newRig(t, fp)
				for _, minutes := range []int{1, 2, 4, 8, 10, 10} {
					shut := time.Duration(minutes) * time.Minute
					r.fail(fp, c.kind, 1)
					r.shut(fp, shut)
					pass(shut)
				}
				if r.opened[0].Scope != c.scope {
					t.Errorf("opened %s, want %s", r.opened[0].Scope, c.scope)
				}
			})
		})
	}
}

func TestBreakerBlamelessPermission(t *testing.T) {
	fp := testTarget("fp", "A")
	r := newRig(t, fp)
	for range 10 {
		r.admit(fp).Report(Classify(coded(said(403, "permission_error", "no"), "user_profile_disabled"), noon))
	}
	r.admit(fp)
}

func TestBreakerRateLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		for _, d := range []time.Duration{7 * time.Second, 3 * time.Second, 3 * time.Second} { // its own time, never doubled
			r.admit(fp).Report(limited(d))
			r.shut(fp, d)
			if a, _ := r.health.Admit(fp, "claude-lark-2", nil, nil); a == nil {
				t.Error("the key is out for another model too")
			} else {
				a.Report(OutcomeOf(config.KindClientGone, ""))
			}
			pass(d)
		}
		o := limited(0)
		r.admit(fp).Report(o)
		r.shut(fp, 5*time.Second) // the contract's default
		pass(5 * time.Second)
		o.HasRetryAfter = true
		r.admit(fp).Report(o) // a stated 0
		r.admit(fp)
	})
}

func TestBreakerLateReports(t *testing.T) {
	for _, c := range []struct {
		name string
		late Outcome
		want time.Duration // left of an ejection of 10s begun 1s ago
	}{
		{"later 429", limited(60 * time.Second), 60 * time.Second},
		{"sooner 429", limited(2 * time.Second), 9 * time.Second},
		{"success", OutcomeOf(config.KindOK, "ok"), 9 * time.Second},
		{"client gone", OutcomeOf(config.KindClientGone, ""), 9 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fp := testTarget("fp", "A")
				r := newRig(t, fp)
				first, second := r.admit(fp), r.admit(fp)
				first.Report(limited(10 * time.Second))
				pass(time.Second)
				second.Report(c.late)
				r.shut(fp, c.want)
				pass(c.want)
				r.probe(fp)
				if len(r.opened) != 1 {
					t.Errorf("told %d times, want once", len(r.opened))
				}
			})
		})
	}
}

func TestBreakerLateReportsOfCountedAndLongFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		var late []*Admission
		for range 20 {
			late = append(late, r.admit(fp))
		}
		r.fail(fp, config.KindOverloaded, 3)
		pass(time.Second)
		for _, a := range late[:10] {
			a.Report(OutcomeOf(config.KindOverloaded, "late"))
		}
		r.shut(fp, 14*time.Second)
		late[10].Report(OutcomeOf(config.KindModelUnavailable, "late"))
		r.shut(fp, time.Minute) // names its own time: later
		pass(time.Minute)
		late[11].Report(OutcomeOf(config.KindModelUnavailable, "late")) // half-open: the probe decides
		p := r.probe(fp)
		late[12].Report(OutcomeOf(config.KindOK, "late"))
		r.shut(fp, 0)
		p.Report(OutcomeOf(config.KindOK, "ok"))
		for _, a := range late[13:] {
			a.Report(OutcomeOf(config.KindModelUnavailable, "late")) // closed since
		}
		r.admit(fp)
	})
}
