package policy

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Admission is the right to one attempt, held until Report. Its exported
// members do not change.
type Admission struct {
	Target *config.Target
	Model  string // the platform's ID
	Key    int    // index in Target.Keys; -1 for a target without keys
	// Probe: a half-open scope waits for how this attempt ends.
	Probe bool

	health   *Health
	state    *targetHealth
	grants   []grant
	reported atomic.Bool
}

// Report says how the attempt ended and frees its slot. The first call counts,
// later ones do nothing; safe for concurrent use.
//
// KindOK is a success for every scope of the attempt. A failure counts for the
// scope that it blames and is neutral for the others; one that blames nothing,
// client_gone for one, is neutral for all. Neutral leaves counts as they are and
// gives a probe's slot back. With the client's own credential what that
// credential may have caused is neutral.
func (a *Admission) Report(o Outcome) {
	if a.reported.Swap(true) {
		return
	}
	now := time.Now()
	var opened, closed []Event
	a.state.mu.Lock()
	a.state.slots.free()
	for _, g := range a.grants {
		switch a.tell(g, o, now) {
		case changeOpened:
			e := a.state.event(g.b.id, o.Kind)
			e.Until, e.Window = g.b.until, g.b.until.Sub(now)
			opened = append(opened, e)
		case changeClosed:
			closed = append(closed, a.state.event(g.b.id, config.KindOK))
		case changeNone:
		}
	}
	retired := a.state.retired
	a.state.mu.Unlock()
	if retired {
		return
	}
	a.health.opened(opened)
	a.health.closed(closed)
}

// tell passes the outcome on to one scope.
func (a *Admission) tell(g grant, o Outcome, now time.Time) change {
	switch {
	case o.Kind == config.KindOK && o.At.IsZero():
		return g.succeed(now, now)
	case o.Kind == config.KindOK:
		return g.succeed(o.At, now)
	case scopeOf(o.Blame) != g.b.id.scope || a.clientsOwn(o.Kind):
		g.neutral()
		return changeNone
	case o.Kind == config.KindRateLimit:
		cooldown := o.Cooldown
		if cooldown == 0 {
			cooldown = Cooldown(o, config.RetryAfter{})
		}
		return g.fail(failure{class: classCooldown, cooldown: cooldown}, now)
	case o.Long:
		return g.fail(failure{class: classLong}, now)
	}
	return g.fail(failure{class: classCounted}, now)
}

// clientsOwn: the client's own credential may have caused this kind, which then
// says nothing to others (contract, section 5).
func (a *Admission) clientsOwn(k config.Kind) bool {
	if a.Key < 0 || a.Target.Keys[a.Key].Source != config.KeyPassthrough {
		return false
	}
	switch k {
	case config.KindRateLimit, config.KindBillingQuota, config.KindCredential,
		config.KindPermission, config.KindEntitlement:
		return true
	}
	return false
}

// giveBack undoes an admission that did not come about. The state's lock is held.
func (a *Admission) giveBack() {
	for _, g := range a.grants {
		g.neutral()
	}
	a.state.slots.free()
}

// scopeOf is the scope a blame counts on; "" for none.
func scopeOf(b Blame) Scope {
	switch b {
	case BlameTarget:
		return ScopeTarget
	case BlameTargetModel:
		return ScopeModel
	case BlameKey:
		return ScopeKey
	case BlameKeyModel:
		return ScopeKeyModel
	case BlameNothing:
	}
	return ""
}

// scopesOf lists what an attempt passes. model is a label.
func scopesOf(t *config.Target, model string, key int) []scopeID {
	ids := []scopeID{{scope: ScopeTarget}, {scope: ScopeModel, model: model}}
	if key >= 0 {
		place := t.Keys[key].Place()
		ids = append(ids, scopeID{scope: ScopeKey, key: place}, scopeID{scope: ScopeKeyModel, model: model, key: place})
	}
	return ids
}

// choose finds the key that an attempt would use, or says what is in its way.
// model is a label. A missing credential comes first: no waiting mends it.
func (s *targetHealth) choose(t *config.Target, model string, usable func(int) bool, avoid []int, now time.Time) (int, Verdict) {
	key, keyUntil, v := s.chooseKey(t, model, usable, avoid, now)
	if v == SkipCredential {
		return -1, Verdict{Skip: v}
	}
	free, until := s.blocked(scopesOf(t, model, -1), now)
	if free && v == SkipNone {
		return key, Verdict{}
	}
	return -1, Verdict{Skip: SkipEjected, Until: latest(until, keyUntil)}
}

// chooseKey goes round the keys from where the last choice ended. Without one,
// until is the soonest moment that any of the usable ones may work.
func (s *targetHealth) chooseKey(t *config.Target, model string, usable func(int) bool, avoid []int, now time.Time) (key int, until time.Time, v Skip) {
	if len(t.Keys) == 0 {
		return -1, time.Time{}, SkipNone
	}
	v = SkipCredential
	for i := range t.Keys {
		k := (s.next + i) % len(t.Keys)
		if usable != nil && !usable(k) {
			continue
		}
		v = SkipEjected
		free, at := s.blocked(scopesOf(t, model, k)[2:], now)
		if !free && (until.IsZero() || at.Before(until)) {
			until = at
		}
		if free && !slices.Contains(avoid, k) {
			return k, time.Time{}, SkipNone
		}
	}
	if until.IsZero() {
		until = now
	}
	return -1, until, v
}

// blocked reports whether all of the scopes are free, and if not the moment when
// the last of them may be; now for one whose probe is under way.
func (s *targetHealth) blocked(ids []scopeID, now time.Time) (free bool, until time.Time) {
	free = true
	for _, id := range ids {
		b := s.breakers[id]
		if b == nil || b.free() {
			continue
		}
		free = false
		until = latest(until, latest(now, b.until))
	}
	return free, until
}

// event is the part of an Event that names the scope.
func (s *targetHealth) event(id scopeID, k config.Kind) Event {
	return Event{Scope: id.scope, Target: s.name, Model: id.model, Key: id.key, Kind: k}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// slots counts the attempts at a target, however many policies they come from.
type slots struct{ taken atomic.Int64 }

func (s *slots) full(limit int) bool { return limit > 0 && s.taken.Load() >= int64(limit) }

func (s *slots) take(limit int) bool {
	if s.taken.Add(1) > int64(limit) && limit > 0 {
		s.taken.Add(-1)
		return false
	}
	return true
}

func (s *slots) free() { s.taken.Add(-1) }
