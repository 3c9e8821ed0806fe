package policy

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// ejectAll opens all four scopes of key 0 and returns what is open.
func ejectAll(r *rig, t *config.Target) {
	r.Helper()
	var all []*Admission
	for range 9 {
		all = append(all, r.admit(t))
	}
	for i, a := range all {
		switch {
		case i < 3:
			a.Report(OutcomeOf(config.KindConnection, ""))
		case i < 6:
			a.Report(OutcomeOf(config.KindOverloaded, ""))
		case i < 8:
			a.Report(OutcomeOf(config.KindCredential, ""))
		default:
			a.Report(limited(time.Minute))
		}
	}
}

func (r *rig) open() []Scope {
	scopes := []Scope{}
	for _, s := range r.health.Snapshot() {
		if s.State == StateOpen {
			scopes = append(scopes, s.Scope)
		}
	}
	return scopes
}

func TestReloadClearsWhatChanged(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*config.Target)
		open []Scope
	}{
		{"nothing", func(*config.Target) {}, []Scope{ScopeKey, ScopeKeyModel, ScopeModel, ScopeTarget}},
		{"labels", func(t *config.Target) { t.Labels = map[string]string{"region": "eu"} }, []Scope{ScopeKey, ScopeKeyModel, ScopeModel, ScopeTarget}},
		{"url", func(t *config.Target) { t.Endpoint.Port = 8443 }, []Scope{}},
		{"platform", func(t *config.Target) { t.Platform = config.PlatformFoundry }, []Scope{}},
		{"forward headers", func(t *config.Target) { t.ForwardHeaders = []string{"x-a"} }, []Scope{}},
		{"key", func(t *config.Target) { t.Keys = []config.Key{{Name: "B"}} }, []Scope{ScopeModel, ScopeTarget}},
		{"another key besides", func(t *config.Target) { t.Keys = append(t.Keys, config.Key{Name: "B"}) }, []Scope{ScopeKey, ScopeKeyModel, ScopeModel, ScopeTarget}},
		{"models", func(t *config.Target) { t.Models = []config.ModelRule{{Model: "a", ID: "b"}} }, []Scope{ScopeKey, ScopeTarget}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				fp := testTarget("fp", "A")
				r := newRig(t, fp)
				ejectAll(r, fp)
				next := testTarget("fp", "A")
				c.edit(next)
				r.health.Reload(testPolicy(next))
				if got := r.open(); !slices.Equal(got, c.open) {
					t.Errorf("open %v, want %v", got, c.open)
				}
				if len(r.closed) != 4-len(c.open) {
					t.Errorf("told of %+v, want %d", r.closed, 4-len(c.open))
				}
				for _, e := range r.closed {
					if e.Kind != "" || e.Target != "fp" {
						t.Errorf("told %+v", e)
					}
				}
			})
		})
	}
}

func TestReloadKeepsOldAttemptsApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		running := []*Admission{r.admit(fp), r.admit(fp), r.admit(fp)}
		next := testTarget("fp", "A")
		next.Endpoint.Host = "new.example"
		r.health.Reload(testPolicy(next))
		for _, a := range running {
			a.Report(OutcomeOf(config.KindConnection, "at the old address"))
		}
		r.fail(fp, config.KindConnection, 3) // exchanges that still have the old policy
		r.shut(fp, 0)
		r.admit(next)
		if len(r.opened) != 0 {
			t.Errorf("told of the old target: %+v", r.opened)
		}
	})
}

func TestReloadCountsRunningAttempts(t *testing.T) {
	fp := testTarget("fp", "A")
	r := newRig(t, fp)
	running := r.admit(fp)
	next := testTarget("fp", "A")
	next.Endpoint.Host = "new.example"
	next.MaxConcurrency = 1
	r.health.Reload(testPolicy(next))
	if v := r.health.Look(next, wren, nil); v.Skip != SkipBusy {
		t.Errorf("got %q, want busy", v.Skip)
	}
	running.Report(OutcomeOf(config.KindOK, "ok"))
	r.admit(next)
}

func TestReloadTakesNewBreakerSettings(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		r.fail(fp, config.KindOverloaded, 1)
		next := testPolicy(testTarget("fp", "A"))
		next.Breaker.Failures, next.Breaker.Window = 2, 4*time.Second
		r.health.Reload(next)
		r.fail(next.Targets[0], config.KindOverloaded, 1)
		r.shut(next.Targets[0], 4*time.Second)
	})
}

func TestReloadRemovedTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp, testTarget("foundry", "B"))
		r.fail(fp, config.KindOverloaded, 3)
		for range 3 {
			r.health.Reload(testPolicy(testTarget("foundry", "B")))
		}
		if len(r.closed) != 1 || len(r.health.Snapshot()) != 0 {
			t.Errorf("told %+v, left %+v", r.closed, r.health.Snapshot())
		}
		r.fail(fp, config.KindOverloaded, 5) // an exchange that outlived the reloads
		if len(r.opened) != 1 || len(r.health.Snapshot()) != 0 {
			t.Errorf("told %+v, left %+v", r.opened, r.health.Snapshot())
		}
	})
}

func TestResetKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		ejectAll(r, fp)
		r.health.ResetKey("fp", "env:B")
		r.health.ResetKey("nobody", "env:A")
		r.health.ResetKey("fp", "")
		if got := len(r.open()); got != 4 {
			t.Fatalf("%d open, want all 4", got)
		}
		r.health.ResetKey("fp", "env:A")
		if got := r.open(); !slices.Equal(got, []Scope{ScopeModel, ScopeTarget}) {
			t.Errorf("open %v, want model and target", got)
		}
	})
}

// Everything at once, for the race detector: afterwards every slot is free.
func TestHealthConcurrency(t *testing.T) {
	fp := testTarget("fp", "A", "B")
	fp.MaxConcurrency = 8
	r := newRig(t, fp)
	kinds := []config.Kind{config.KindOK, config.KindOverloaded, config.KindRateLimit, config.KindCredential, config.KindClientGone}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 200 {
				if a, _ := r.health.Admit(fp, wren, nil, nil); a != nil {
					a.Report(OutcomeOf(kinds[(g+i)%len(kinds)], ""))
				}
				switch i % 50 {
				case 7:
					r.health.Reload(r.policy)
				case 11:
					r.health.ResetKey("fp", "env:A")
				case 13:
					r.health.Snapshot()
				}
			}
		})
	}
	wg.Wait()
	if taken := r.health.of(fp).slots.taken.Load(); taken != 0 {
		t.Errorf("%d slots taken, want 0", taken)
	}
}
