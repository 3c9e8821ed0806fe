package policy

import (
	"net/http"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Resume rebuilds an exchange that another replica began from its plan and the
// attempts it made so far, in order. Of these only the newest may be open; it
// gets an admission of this replica's if there is one to be had.
func Resume(p *Plan, h *Health, usable func(t *config.Target, key int) bool, attempts []Attempt) *Exchange {
	x := NewExchange(p, h, usable)
	x.Merge(attempts)
	return x
}

// Merge takes over what another replica knows better: later attempts, and how
// the newest known one ended. Known ends stay.
func (x *Exchange) Merge(attempts []Attempt) {
	if x.state == StateEnded || x.state == StateCommitted {
		return
	}
	for i := range attempts {
		a := attempts[i]
		if a.Place < 0 || a.Place >= len(x.Plan.Places) {
			return
		}
		if i < len(x.Attempts) {
			if mine := x.Attempts[i]; !mine.Closed() && a.Closed() {
				x.close(mine, a.Outcome, a.End)
				mine.Decision, mine.Waited = a.Decision, a.Waited
				x.follow(mine)
			}
			continue
		}
		a.N = i + 1
		x.Attempts = append(x.Attempts, &a)
		x.follow(&a)
	}
}

// follow puts the exchange behind its newest attempt.
func (x *Exchange) follow(a *Attempt) {
	if a.Place != x.cursor {
		x.cursor, x.retries, x.tried = a.Place, 0, nil
	}
	if !a.Closed() {
		x.state = StateAttempting
		only := func(key int) bool { return key == a.Key }
		target := x.Plan.Places[a.Place].Entry.Target
		a.admission, _ = x.health.Admit(target, a.Model, only, nil)
		return
	}
	x.state = StateDeciding
	switch a.Decision {
	case VerbRetry:
		x.retries++
	case VerbFailover:
		if target := x.Plan.Places[a.Place].Entry.Target; a.Outcome.Status == http.StatusRequestEntityTooLarge &&
			x.Plan.Route.Action(a.Outcome.Kind, target) == config.ActionStop {
			x.larger = max(x.larger, target.Limits.Body) // decide says why
		}
		if a.Outcome.Blame == BlameKey || a.Outcome.Blame == BlameKeyModel {
			x.tried = append(x.tried, a.Key)
			return
		}
		x.cursor, x.retries, x.tried = a.Place+1, 0, nil
	case VerbStop, VerbServe:
	}
}

// Abandon closes the running attempt without blaming anyone: the request's own
// time ran out.
func (x *Exchange) Abandon(k config.Kind, now time.Time) {
	x.exhausted = true
	x.End(Outcome{Kind: k, Reason: "total"}, now)
}
