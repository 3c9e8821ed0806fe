package main

import (
	"time"

	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
)

// targetStates is the health registry as /readyz shows it.
func targetStates(p *config.Policy, snapshot []policy.BreakerState) []operate.TargetState {
	out := make([]operate.TargetState, len(p.Targets))
	at := make(map[string]*operate.TargetState, len(p.Targets))
	for i, t := range p.Targets {
		out[i] = operate.TargetState{Name: t.Name, Platform: t.Platform, State: operate.StateClosed}
		at[t.Name] = &out[i]
	}
	for _, b := range snapshot {
		t := at[b.Target]
		if t == nil {
			continue
		}
		state, until := stateName(b.State), ""
		if !b.Until.IsZero() {
			until = b.Until.UTC().Format(time.RFC3339)
		}
		if b.Scope == policy.ScopeTarget {
			t.State, t.Until = state, until
			continue
		}
		if b.State != policy.StateClosed {
			t.Scopes = append(t.Scopes, operate.ScopeState{Scope: string(b.Scope), Model: b.Model, Key: b.Key, State: state, Until: until})
		}
	}
	return out
}

func stateName(state int) string {
	switch state {
	case policy.StateOpen:
		return operate.StateOpen
	case policy.StateHalfOpen:
		return operate.StateHalfOpen
	}
	return operate.StateClosed
}
