package policy

import (
	"errors"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Scope names what a breaker ejects; its text is the metric's label.
type Scope string

// The scopes (contract, section 5).
const (
	ScopeTarget   Scope = "target"
	ScopeModel    Scope = "model" // target and model
	ScopeKey      Scope = "key"
	ScopeKeyModel Scope = "key_model"
)

// calmPeriod is how long a breaker must have been closed for its windows to
// start small again (contract, section 5).
const calmPeriod = time.Hour

// What a report tells gobreaker; nil is a success.
var (
	errFailed  = errors.New("failed")
	errNeutral = errors.New("neutral")
)

// class is which window a failure opens with.
type class uint8

const (
	classCounted  class = iota // after N consecutive ones; window doubles
	classLong                  // at once; long window doubles
	classCooldown              // at once; the time the answer asked for
)

// failure is a report as one breaker sees it.
type failure struct {
	class    class
	cooldown time.Duration
}

// scopeID is a breaker within its target; members that do not apply are "".
type scopeID struct {
	scope Scope
	model string
	key   string
}

// breaker is one scope. Its target's lock guards it, so that an attempt passes
// all of its scopes or none. See the package comment for why cb is replaced.
type breaker struct {
	id  scopeID
	cfg *config.Breaker
	cb  *gobreaker.TwoStepCircuitBreaker[struct{}]

	// tripping makes the next failure open cb whatever its count.
	tripping bool
	// until is the deadline of the open period; it only moves later.
	until time.Time
	// counted and long are the last windows used, 0 for none since a calm period.
	counted, long time.Duration
	closedAt      time.Time
	failedAt      []time.Time // of the failures that count, since the last success
	// dropped: cleared by a reload or a new key; late reports mean nothing.
	dropped bool
}

// grant is one attempt's passage through one breaker.
type grant struct {
	b     *breaker
	cb    *gobreaker.TwoStepCircuitBreaker[struct{}]
	done  func(error)
	probe bool
}

// change is what a report did, for the observer.
type change uint8

const (
	changeNone change = iota
	changeOpened
	changeClosed
)

func newBreaker(id scopeID, cfg *config.Breaker) *breaker {
	b := &breaker{id: id, cfg: cfg}
	b.cb = b.instance(time.Minute) // replaced before it ever opens by itself
	return b
}

// instance is a closed gobreaker whose open period, once opened, ends at the
// moment d from now. gobreaker is still open at its expiry itself, and reads 0 as
// a minute: hence the nanosecond and the least period.
func (b *breaker) instance(d time.Duration) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     max(d, time.Microsecond) - time.Nanosecond,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return b.tripping || int64(c.ConsecutiveFailures) >= int64(b.cfg.Failures)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errNeutral) },
	})
}

// free reports whether an attempt could pass now.
func (b *breaker) free() bool {
	switch b.cb.State() {
	case gobreaker.StateClosed:
		return true
	case gobreaker.StateHalfOpen:
		c := b.cb.Counts()
		return c.Requests <= c.TotalExclusions
	}
	return false
}

// pass takes a passage; false when the breaker is not free.
func (b *breaker) pass() (grant, bool) {
	probe := b.cb.State() == gobreaker.StateHalfOpen
	done, err := b.cb.Allow()
	if err != nil {
		return grant{}, false
	}
	return grant{b: b, cb: b.cb, done: done, probe: probe}, true
}

// stale: the breaker has opened, or was cleared, since the passage.
func (g grant) stale() bool { return g.b.dropped || g.cb != g.b.cb }

// neutral gives the passage back without a word about health.
func (g grant) neutral() { g.done(errNeutral) }

// succeed closes a breaker that this attempt probed. at is when the attempt
// ended: a success that is told late undoes only the failures before it.
func (g grant) succeed(at, now time.Time) change {
	if g.stale() {
		return changeNone
	}
	g.done(nil)
	if !g.probe {
		g.b.countAgain(at)
		return changeNone
	}
	g.b.closedAt, g.b.until = now, time.Time{}
	return changeClosed
}

// countAgain counts the failures since a success once more, which has just reset
// the count.
func (b *breaker) countAgain(since time.Time) {
	b.failedAt = slices.DeleteFunc(b.failedAt, func(t time.Time) bool { return !t.After(since) })
	for range b.failedAt {
		if done, err := b.cb.Allow(); err == nil { // closed: never refused
			done(errFailed)
		}
	}
}

// fail counts a failure, or opens the breaker with the window that it deserves.
func (g grant) fail(f failure, now time.Time) change {
	b := g.b
	if g.stale() {
		b.extend(f, now)
		return changeNone
	}
	if f.class == classCooldown && f.cooldown <= 0 {
		g.neutral() // told to come back at once: nothing to wait for
		return changeNone
	}
	b.failedAt = append(b.failedAt, now)
	b.tripping = f.class != classCounted
	g.done(errFailed)
	b.tripping = false
	if b.cb.State() != gobreaker.StateOpen {
		return changeNone
	}
	b.open(now.Add(b.window(f, g.probe, now)), now)
	return changeOpened
}

// extend is what a report of an older passage may still do: move the deadline
// of an open breaker to a later moment. Only failures that name their own time
// do; a counted one was part of what opened it.
func (b *breaker) extend(f failure, now time.Time) {
	if b.cb.State() != gobreaker.StateOpen {
		return
	}
	var until time.Time
	switch f.class {
	case classCooldown:
		until = now.Add(f.cooldown)
	case classLong:
		if b.long == 0 {
			b.long = b.cfg.LongWindow
		}
		until = now.Add(b.long)
	default:
		return
	}
	if until.After(b.until) {
		b.open(until, now)
	}
}

// open starts an open period in a fresh instance.
func (b *breaker) open(until, now time.Time) {
	b.until, b.failedAt = until, nil
	b.cb = b.instance(until.Sub(now))
	// A new instance is closed, so this cannot be refused.
	if done, err := b.cb.Allow(); err == nil {
		b.tripping = true
		done(errFailed)
		b.tripping = false
	}
}

// window is how long a failure ejects. A failed probe doubles the window of its
// class; a breaker that had closed goes on from the last one, unless it was
// closed for an hour.
func (b *breaker) window(f failure, probe bool, now time.Time) time.Duration {
	if f.class == classCooldown {
		return f.cooldown
	}
	if !probe && !b.closedAt.IsZero() && now.Sub(b.closedAt) >= calmPeriod {
		b.counted, b.long = 0, 0
	}
	last, first, limit := &b.counted, b.cfg.Window, b.cfg.MaxWindow
	if f.class == classLong {
		last, first, limit = &b.long, b.cfg.LongWindow, config.MaxLongWindow
	}
	switch {
	case *last == 0:
		*last = first
	case probe:
		*last *= 2
	}
	*last = min(*last, limit)
	return *last
}
