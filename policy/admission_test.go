package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

func TestAdmitSpreadsKeys(t *testing.T) {
	fp := testTarget("fp", "A", "B", "C")
	r := newRig(t, fp)
	var got []int
	for range 6 {
		got = append(got, r.admit(fp).Key)
	}
	if want := []int{0, 1, 2, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

func TestAdmitSkipsKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A", "B", "C")
		r := newRig(t, fp)
		usable := func(k int) bool { return k != 2 }
		keys := func(avoid ...int) []int {
			var got []int
			for range 3 {
				a, v := r.health.Admit(fp, wren, usable, avoid)
				if a == nil {
					t.Fatalf("refused: %+v", v)
				}
				got = append(got, a.Key)
				a.Report(OutcomeOf(config.KindClientGone, ""))
			}
			return got
		}
		if got := keys(); !slices.Equal(got, []int{0, 1, 0}) {
			t.Errorf("without the credential of 2: %v", got)
		}
		if got := keys(0); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("avoiding 0: %v", got)
		}
		if a, v := r.health.Admit(fp, wren, usable, []int{0, 1}); a != nil || v.Skip != SkipEjected || v.Until != time.Now() {
			t.Errorf("avoiding all: %v %+v", a, v)
		}
		a, _ := r.health.Admit(fp, wren, usable, []int{1})
		a.Report(limited(20 * time.Second))
		if got := keys(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("0 ejected: %v", got)
		}
		if a, _ := r.health.Admit(fp, "claude-lark-2", func(k int) bool { return k == 0 }, nil); a == nil {
			t.Error("0 is out for another model too")
		}
		a, _ = r.health.Admit(fp, wren, usable, nil)
		a.Report(OutcomeOf(config.KindCredential, ""))
		if v := r.health.Look(fp, wren, usable); v.Skip != SkipEjected || time.Until(v.Until) != 20*time.Second {
			t.Errorf("both out: %s for %v, want the sooner, 20s", v.Skip, time.Until(v.Until))
		}
		r.fail(testTargetOf(r, "fp"), config.KindOK, 1) // nil usable: the third key
	})
}

func testTargetOf(r *rig, name string) *config.Target { return r.policy.Target(name) }

func TestAdmitUntilIsTheLastOfItsScopes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		r := newRig(t, fp)
		a := r.admit(fp)
		r.fail(fp, config.KindOverloaded, 3) // 15s
		a.Report(OutcomeOf(config.KindCredential, ""))
		r.shut(fp, time.Minute)
		pass(15 * time.Second)
		r.shut(fp, 45*time.Second) // the model's half-open slot was not taken
		pass(45 * time.Second)
		r.probe(fp).Report(OutcomeOf(config.KindOK, "ok"))
		if len(r.closed) != 2 {
			t.Errorf("closed %+v, want model and key", r.closed)
		}
	})
}

func TestAdmitCredential(t *testing.T) {
	fp := testTarget("fp", "A", "B")
	r := newRig(t, fp)
	none := func(int) bool { return false }
	a, v := r.health.Admit(fp, wren, none, nil)
	if a != nil || v != (Verdict{Skip: SkipCredential}) || r.health.Look(fp, wren, none) != v {
		t.Errorf("got %v %+v, want credential", a, v)
	}
}

func TestAdmitWithoutKeys(t *testing.T) {
	open := testTarget("open")
	r := newRig(t, open)
	a := r.admit(open)
	if a.Key != -1 {
		t.Errorf("key %d, want -1", a.Key)
	}
	a.Report(OutcomeOf(config.KindCredential, "")) // blames a key that there is not
	r.fail(open, config.KindConnection, 3)
	r.shut(open, 0)
}

func TestAdmitBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp := testTarget("fp", "A")
		fp.MaxConcurrency = 2
		r := newRig(t, fp)
		first := r.admit(fp)
		r.admit(fp)
		busy := Verdict{Skip: SkipBusy, Until: time.Now()}
		a, v := r.health.Admit(fp, wren, nil, nil)
		if a != nil || v != busy || r.health.Look(fp, wren, nil) != busy {
			t.Fatalf("got %v %+v, want busy", a, v)
		}
		first.Report(OutcomeOf(config.KindClientGone, ""))
		first.Report(OutcomeOf(config.KindClientGone, "")) // frees nothing more
		r.admit(fp)
		if a, _ = r.health.Admit(fp, wren, nil, nil); a != nil {
			t.Error("a third one was admitted")
		}
	})
}

func TestPassthroughBlamesNobodyForTheClient(t *testing.T) {
	for _, c := range []struct {
		kind config.Kind
		open bool
	}{
		{config.KindRateLimit, false},
		{config.KindBillingQuota, false},
		{config.KindCredential, false},
		{config.KindPermission, false},
		{config.KindEntitlement, false},
		{config.KindModelUnavailable, true},
		{config.KindOverloaded, true},
		{config.KindConnection, true},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			fp := testTarget("fp")
			fp.Keys = []config.Key{{Source: config.KeyPassthrough}}
			r := newRig(t, fp)
			for range 10 {
				if a, _ := r.health.Admit(fp, wren, nil, nil); a != nil {
					a.Report(OutcomeOf(c.kind, ""))
				}
			}
			if got := r.health.Look(fp, wren, nil).Skip == SkipEjected; got != c.open {
				t.Errorf("ejected: %v, want %v", got, c.open)
			}
		})
	}
}

func TestUnknownModelsShareOneEntry(t *testing.T) {
	fp := testTarget("fp", "A")
	r := newRig(t, fp)
	for i := range 100 {
		if a, _ := r.health.Admit(fp, fmt.Sprintf("made-up-%d", i), nil, nil); a != nil {
			a.Report(OutcomeOf(config.KindOverloaded, ""))
		}
	}
	r.admit(fp)
	var models []string
	for _, s := range r.health.Snapshot() {
		if s.Scope == ScopeModel {
			models = append(models, fmt.Sprint(s.Model, s.State))
		}
	}
	if want := []string{wren + "0", "other2"}; !slices.Equal(models, want) {
		t.Errorf("models %v, want %v", models, want)
	}
}

func TestSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fp, foundry := testTarget("fp", "A"), testTarget("foundry", "B")
		r := newRig(t, fp, foundry)
		r.fail(fp, config.KindOverloaded, 3)
		r.fail(foundry, config.KindConnection, 3)
		pass(15 * time.Second)
		r.probe(fp).Report(OutcomeOf(config.KindOverloaded, ""))
		want := []BreakerState{
			{Scope: ScopeKey, Target: "fp", Key: "env:A"},
			{Scope: ScopeKeyModel, Target: "fp", Model: wren, Key: "env:A"},
			{Scope: ScopeModel, Target: "fp", Model: wren, State: StateOpen, Until: time.Now().Add(30 * time.Second)},
			{Scope: ScopeTarget, Target: "fp"},
			{Scope: ScopeKey, Target: "foundry", Key: "env:B"},
			{Scope: ScopeKeyModel, Target: "foundry", Model: wren, Key: "env:B"},
			{Scope: ScopeModel, Target: "foundry", Model: wren},
			{Scope: ScopeTarget, Target: "foundry", State: StateHalfOpen},
		}
		if got := r.health.Snapshot(); !slices.Equal(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	})
}
