package policy

import (
	"slices"

	"github.com/sony/gobreaker/v2"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Reload takes over a new policy. What a target has been through stays with it
// by name, except (contract, section 5): a target that is reached in another way
// starts clean; a key that is gone or new does; after a change of the model map
// all that was said about models does. Cleared ejections are told to the
// observer as closed. A new `breaker` block counts from the next failure on.
// Attempts under way report to what they were admitted by.
func (h *Health) Reload(p *config.Policy) {
	var cleared []Event
	h.mu.Lock()
	next := make(map[*config.Target]*targetHealth, 2*len(p.Targets))
	for _, t := range h.current {
		next[t] = h.targets[t] // exchanges keep the policy they began with
	}
	kept := map[*targetHealth]bool{}
	for _, t := range p.Targets {
		var s *targetHealth
		if old := h.named(t.Name); old != nil && sameWay(old, t) {
			s = h.targets[old]
			cleared = append(cleared, s.drop(changedBy(old, t))...)
			s.configure(p.Breaker)
		} else {
			s = newTargetHealth(t.Name, p.Breaker, h.slotsOf(t.Name))
		}
		next[t], kept[s] = s, true
	}
	for _, t := range h.current {
		if s := h.targets[t]; !kept[s] {
			cleared = append(cleared, s.retire()...)
		}
	}
	h.targets, h.current = next, slices.Clone(p.Targets)
	h.mu.Unlock()
	h.closed(cleared)
}

func (h *Health) named(name string) *config.Target {
	for _, t := range h.current {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (s *targetHealth) configure(c config.Breaker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = withDefaults(c) // breakers point at it
}

// retire forgets all and falls silent: the name is another target's now.
func (s *targetHealth) retire() []Event {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	return s.drop(func(scopeID) bool { return true })
}

// drop forgets the breakers that match and returns an event for each that was
// not closed.
func (s *targetHealth) drop(match func(scopeID) bool) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []Event
	for id, b := range s.breakers {
		if !match(id) {
			continue
		}
		if b.cb.State() != gobreaker.StateClosed {
			events = append(events, s.event(id, ""))
		}
		b.dropped = true
		delete(s.breakers, id)
	}
	return events
}

// changedBy matches the scopes that the step from one definition of a target to
// the next makes meaningless.
func changedBy(old, t *config.Target) func(scopeID) bool {
	sameID := func(a, b config.ModelRule) bool { return a.Model == b.Model && a.ID == b.ID }
	models := !slices.EqualFunc(old.Models, t.Models, sameID) || old.Profile != t.Profile
	return func(id scopeID) bool {
		gone := id.key != "" && !slices.ContainsFunc(t.Keys, func(k config.Key) bool { return k.Place() == id.key })
		return gone || models && id.model != ""
	}
}

// sameWay compares what decides how a target is reached and what it makes of a
// request. Labels, limits, max_concurrency and degraded decide only who is sent
// there.
func sameWay(a, b *config.Target) bool {
	return a.Platform == b.Platform &&
		a.Endpoint == b.Endpoint &&
		a.PathPrefix == b.PathPrefix &&
		a.CAFile == b.CAFile &&
		a.ConnectTimeout == b.ConnectTimeout &&
		a.Region == b.Region &&
		a.Project == b.Project &&
		a.Location == b.Location &&
		a.Workspace == b.Workspace &&
		a.Resource == b.Resource &&
		a.Hosting == b.Hosting &&
		a.Auth == b.Auth &&
		slices.Equal(a.ForwardHeaders, b.ForwardHeaders)
}
