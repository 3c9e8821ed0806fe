package policy

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Verb is what was decided about an attempt, as the trail names it.
type Verb string

// The decisions of the trail record.
const (
	VerbServe    Verb = "serve"
	VerbRetry    Verb = "retry"
	VerbFailover Verb = "failover"
	VerbStop     Verb = "stop"
)

// Decision is what follows a failed attempt.
type Decision struct {
	Verb Verb
	// Wait comes before the next attempt; only same-target retries wait.
	Wait time.Duration
	// Exhausted: the kind's action would have gone on, but no target, attempt or
	// time was left.
	Exhausted bool
}

// afterWindow is added to a wait for a retry time, so that the ejection that
// the same answer caused is over when the attempt is due.
const afterWindow = 5 * time.Millisecond

// decide says what follows a, which has just been closed with a failure, and
// points the cursor at the place where the next attempt belongs.
func (x *Exchange) decide(a *Attempt, now time.Time) Decision {
	route, o := x.Plan.Route, a.Outcome
	target := x.Plan.Places[a.Place].Entry.Target
	action := route.Action(o.Kind, target)
	if action == config.ActionStop {
		if o.Kind != config.KindTooLarge || o.Status != http.StatusRequestEntityTooLarge {
			return Decision{Verb: VerbStop}
		}
		// A 413 speaks of this target's limit alone; a larger one may take it.
		x.larger = max(x.larger, target.Limits.Body)
		if !x.moveOn(a.Place + 1) {
			return Decision{Verb: VerbStop}
		}
		return x.goOn(Decision{Verb: VerbFailover}, now)
	}
	// A failure that ejected the target leaves nothing to retry; a 429 always
	// ejects its key, and its wait is as long as that.
	retriable := o.Kind == config.KindRateLimit || x.available(a.Place)
	if action == config.ActionRetry && x.retries < route.SameTargetRetries && retriable {
		if wait, ok := x.retryWait(a, now); ok {
			x.retries++
			return x.goOn(Decision{Verb: VerbRetry, Wait: wait}, now)
		}
	}
	if (o.Blame == BlameKey || o.Blame == BlameKeyModel) && a.Key >= 0 {
		x.tried = append(x.tried, a.Key)
		if x.available(a.Place) {
			return x.goOn(Decision{Verb: VerbFailover}, now)
		}
	}
	if !x.moveOn(a.Place + 1) {
		return Decision{Verb: VerbStop, Exhausted: true}
	}
	return x.goOn(Decision{Verb: VerbFailover}, now)
}

// goOn is d unless attempts or time have run out.
func (x *Exchange) goOn(d Decision, now time.Time) Decision {
	if len(x.Attempts) >= x.Plan.Route.MaxAttempts || !now.Before(x.Plan.Deadline) {
		return Decision{Verb: VerbStop, Exhausted: true}
	}
	return d
}

// moveOn points the cursor at the first place from i on that would admit an
// attempt now.
func (x *Exchange) moveOn(i int) bool {
	next, ok := x.firstFrom(i)
	if ok {
		x.cursor, x.retries, x.tried = next, 0, nil
	}
	return ok
}

// firstFrom is the first place from i on that would admit an attempt now.
func (x *Exchange) firstFrom(i int) (int, bool) {
	for ; i < len(x.Plan.Places); i++ {
		if x.available(i) {
			return i, true
		}
	}
	return 0, false
}

// available reports whether a place would admit an attempt now, and notes why
// it would not.
func (x *Exchange) available(i int) bool {
	p := &x.Plan.Places[i]
	if x.barred(p) {
		return false
	}
	v := x.health.Look(p.Entry.Target, p.Model, x.keyUsable(i))
	if i != x.cursor {
		p.Skip = v.Skip
	}
	return v.Skip == ""
}

// retryWait is how long a same-target retry waits, and whether there is one: a
// stated retry time is waited out whole or not at all, and a backoff that
// outlasts the total is only begun where no later target could take over.
func (x *Exchange) retryWait(a *Attempt, now time.Time) (time.Duration, bool) {
	o := a.Outcome
	wait := Backoff(x.Plan.Route.Backoff, x.retries+1, rand.Float64)
	if o.Kind != config.KindRateLimit {
		_, later := x.firstFrom(a.Place + 1)
		return wait, !later || now.Add(wait).Before(x.Plan.Deadline)
	}
	stated := o.Cooldown
	if o.HasRetryAfter {
		stated = o.RetryAfter
	}
	wait = max(wait, stated+afterWindow)
	return wait, stated <= x.Plan.Route.RetryAfter.Max && now.Add(wait).Before(x.Plan.Deadline)
}
