package policy

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/crossdoor/crossdoor/policy/config"
)

// otherModel is the entry that models outside the policy and the built-in table
// share, so that a client cannot create breakers or metric series.
const otherModel = "other"

// Event is a breaker that opened or closed. Model and Key (a place) are "" where
// they do not apply.
type Event struct {
	Scope  Scope
	Target string
	Model  string
	Key    string
	// Kind is what opened it, ok for a probe that closed it, "" for an ejection
	// that a reload or a new key cleared.
	Kind config.Kind
	// Window and Until are those of the ejection; zero when it closed.
	Window time.Duration
	Until  time.Time
}

// Observer is told of changes, one call a change, outside every lock, on the
// goroutine of the report that made it; two reports at once may tell in either
// order. nil members are not called.
type Observer struct {
	Opened func(Event)
	Closed func(Event)
}

// The states of a BreakerState, as the metric breaker_state has them.
const (
	StateClosed   = 0
	StateHalfOpen = 1
	StateOpen     = 2
)

// BreakerState is one breaker at a moment. Key is a place; members that do not
// apply are "". Until is zero unless it is open.
type BreakerState struct {
	Scope  Scope
	Target string
	Model  string
	Key    string
	State  int
	Until  time.Time
}

// Health is who is ejected, and how many attempts are at each target. It is safe
// for concurrent use. Targets are told apart by pointer, so an exchange that
// keeps an older policy counts on the older target, never on a changed one.
type Health struct {
	known    func(model string) bool
	observer Observer

	mu      sync.RWMutex
	targets map[*config.Target]*targetHealth // this policy's and the last one's
	current []*config.Target                 // this policy's, in its order
}

// NewHealth begins with everyone healthy. known says which models (platform
// IDs) have entries of their own; nil is all. It must be safe for concurrent
// use.
func NewHealth(p *config.Policy, known func(model string) bool, o Observer) *Health {
	h := &Health{known: known, observer: o, targets: map[*config.Target]*targetHealth{}}
	h.Reload(p)
	return h
}

// Look says whether an attempt could be admitted now, without taking anything.
// model is the platform's ID; usable says whether the credential of t.Keys[i] is
// there, nil is all of them.
func (h *Health) Look(t *config.Target, model string, usable func(key int) bool) Verdict {
	s := h.of(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, v := s.choose(t, h.label(model), usable, nil, time.Now())
	if v.Skip == SkipNone && s.slots.full(t.MaxConcurrency) {
		return Verdict{Skip: SkipBusy, Until: time.Now()}
	}
	return v
}

// Admit takes a slot of the target and the probe of each half-open scope, or
// says why not; then the Admission is nil. Usable keys that are not ejected are
// spread round-robin. avoid lists keys that this exchange has tried: when only
// those are left the verdict is SkipEjected. The caller must Report the
// Admission.
func (h *Health) Admit(t *config.Target, model string, usable func(key int) bool, avoid []int) (*Admission, Verdict) {
	s := h.of(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	key, v := s.choose(t, h.label(model), usable, avoid, now)
	if v.Skip != SkipNone {
		return nil, v
	}
	if !s.slots.take(t.MaxConcurrency) {
		return nil, Verdict{Skip: SkipBusy, Until: now}
	}
	a := &Admission{Target: t, Model: model, Key: key, health: h, state: s}
	for _, id := range scopesOf(t, h.label(model), key) {
		g, ok := s.breaker(id).pass()
		if !ok { // choose saw it free under this same lock
			a.giveBack()
			return nil, Verdict{Skip: SkipEjected, Until: now}
		}
		a.grants = append(a.grants, g)
		a.Probe = a.Probe || g.probe
	}
	if key >= 0 {
		s.next = key + 1
	}
	return a, Verdict{}
}

// ResetKey clears the ejections of one key, named by its place, after its
// credential changed. Names that are not there are ignored.
func (h *Health) ResetKey(target, place string) {
	h.mu.RLock()
	var s *targetHealth
	for _, t := range h.current {
		if t.Name == target {
			s = h.targets[t]
		}
	}
	h.mu.RUnlock()
	if s == nil {
		return
	}
	h.closed(s.drop(func(id scopeID) bool { return id.key == place && place != "" }))
}

// Snapshot is every breaker of the current policy that an attempt has met, by
// target in the policy's order, then scope, model and key.
func (h *Health) Snapshot() []BreakerState {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var all []BreakerState
	for _, t := range h.current {
		all = append(all, h.targets[t].snapshot()...)
	}
	return all
}

// of is the state of a target. One that no recent policy has is an exchange's
// that outlived two reloads: it gets a state of its own until the next one.
func (h *Health) of(t *config.Target) *targetHealth {
	h.mu.RLock()
	s := h.targets[t]
	h.mu.RUnlock()
	if s != nil {
		return s
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s = h.targets[t]; s == nil {
		s = newTargetHealth(t.Name, config.Breaker{}, h.slotsOf(t.Name))
		s.retired = true
		h.targets[t] = s
	}
	return s
}

// slotsOf keeps one count for a name across reloads: the attempts that run are
// at the platform whatever the policy says now. h.mu is held.
func (h *Health) slotsOf(name string) *slots {
	for t, s := range h.targets {
		if t.Name == name {
			return s.slots
		}
	}
	return &slots{}
}

func (h *Health) label(model string) string {
	if h.known == nil || h.known(model) {
		return model
	}
	return otherModel
}

func (h *Health) opened(events []Event) {
	for _, e := range events {
		if h.observer.Opened != nil {
			h.observer.Opened(e)
		}
	}
}

func (h *Health) closed(events []Event) {
	for _, e := range events {
		if h.observer.Closed != nil {
			h.observer.Closed(e)
		}
	}
}

// targetHealth is one target's breakers. mu guards all of it but slots.
type targetHealth struct {
	name  string
	slots *slots

	mu       sync.Mutex
	cfg      config.Breaker
	breakers map[scopeID]*breaker
	next     int // where the round of keys goes on
	// retired: no longer the current policy's target of this name, which alone
	// the observer is told about.
	retired bool
}

func newTargetHealth(name string, cfg config.Breaker, s *slots) *targetHealth {
	return &targetHealth{name: name, slots: s, cfg: withDefaults(cfg), breakers: map[scopeID]*breaker{}}
}

// withDefaults fills what a policy built by hand leaves 0 with the contract's
// defaults.
func withDefaults(c config.Breaker) config.Breaker {
	if c.Failures <= 0 {
		c.Failures = 5
	}
	c.Window = cmp.Or(max(c.Window, 0), 15*time.Second)
	c.MaxWindow = cmp.Or(max(c.MaxWindow, 0), 5*time.Minute)
	c.LongWindow = cmp.Or(max(c.LongWindow, 0), time.Minute)
	return c
}

// breaker is the scope's, made when an attempt first meets it.
func (s *targetHealth) breaker(id scopeID) *breaker {
	b := s.breakers[id]
	if b == nil {
		b = newBreaker(id, &s.cfg)
		s.breakers[id] = b
	}
	return b
}

func (s *targetHealth) snapshot() []BreakerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]BreakerState, 0, len(s.breakers))
	for id, b := range s.breakers {
		st := BreakerState{Scope: id.scope, Target: s.name, Model: id.model, Key: id.key}
		switch b.cb.State() {
		case gobreaker.StateOpen:
			st.State, st.Until = StateOpen, b.until
		case gobreaker.StateHalfOpen:
			st.State = StateHalfOpen
		case gobreaker.StateClosed:
			st.State = StateClosed
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b BreakerState) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Key, b.Key))
	})
	return all
}
