package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// State is where an exchange is. Only Exchange.move changes it.
type State uint8

// The states, in the order in which an exchange can reach them; a failed
// attempt leads from Attempting or Holding to Deciding and back to Attempting.
const (
	StatePlanned State = iota
	StateAttempting
	StateHolding
	StateDeciding
	StateCommitted
	StateEnded
)

func (s State) String() string {
	return [...]string{"planned", "attempting", "holding", "deciding", "committed", "ended"}[s]
}

// legal says which states may follow which.
var legal = map[State][]State{
	StatePlanned:    {StateAttempting, StateEnded},
	StateAttempting: {StateHolding, StateDeciding, StateCommitted, StateEnded},
	StateHolding:    {StateDeciding, StateCommitted, StateEnded},
	StateDeciding:   {StateAttempting, StateCommitted, StateEnded},
	StateCommitted:  {StateEnded},
}

// ErrOrder is wrapped by every refusal of a step that does not fit the state:
// a message that came late, twice or out of turn. The exchange is unchanged.
var ErrOrder = errors.New("out of order")

// Attempt is one try at one target.
type Attempt struct {
	N     int // from 1
	Place int // index into Plan.Places
	Model string
	Key   int // index into the target's keys
	Probe bool

	Start   time.Time
	Headers time.Time // of the answer; zero when none came
	End     time.Time // zero while it runs

	Status   int
	Outcome  Outcome // meaningful once End is set
	Decision Verb
	Waited   time.Duration // between this attempt and the next

	admission *Admission
}

// Closed reports whether the attempt's outcome is known.
func (a *Attempt) Closed() bool { return !a.End.IsZero() }

// Exchange is one request's way through its plan: which attempt runs, what the
// earlier ones came to, what is legal next. It is not safe for concurrent use:
// its owner serialises the calls.
type Exchange struct {
	Plan     *Plan
	Attempts []*Attempt

	state     State
	health    *Health
	usable    func(t *config.Target, key int) bool
	cursor    int   // the place that the next attempt is tried at first
	retries   int   // same-target retries used at cursor
	tried     []int // keys that failed at cursor by their own fault
	larger    int64 // only targets with a larger body limit than this
	exhausted bool
}

// NewExchange begins an exchange over a plan. usable says whether a target's
// key has a value (for passthrough: whether the client brought one).
func NewExchange(p *Plan, h *Health, usable func(t *config.Target, key int) bool) *Exchange {
	return &Exchange{Plan: p, health: h, usable: usable}
}

// State is where the exchange is.
func (x *Exchange) State() State { return x.state }

// Exhausted reports whether the last decision ended the exchange for want of
// targets, attempts or time, not because the answer belongs to the client.
func (x *Exchange) Exhausted() bool { return x.exhausted }

// Last is the newest attempt, or nil.
func (x *Exchange) Last() *Attempt {
	if len(x.Attempts) == 0 {
		return nil
	}
	return x.Attempts[len(x.Attempts)-1]
}

func (x *Exchange) move(to State) error {
	if slices.Contains(legal[x.state], to) {
		x.state = to
		return nil
	}
	return fmt.Errorf("%w: %s does not follow %s", ErrOrder, to, x.state)
}

// Next begins the next attempt at the first place, from the cursor on, that
// admits one. ok is false when none does; the places then say why.
func (x *Exchange) Next(now time.Time) (a *Attempt, ok bool) {
	if x.state != StatePlanned && x.state != StateDeciding {
		return nil, false
	}
	for i := x.cursor; i < len(x.Plan.Places); i++ {
		admission := x.admit(i)
		if admission == nil {
			continue
		}
		if i != x.cursor {
			x.cursor, x.retries, x.tried = i, 0, nil
		}
		return x.begin(admission, now), true
	}
	x.exhausted = true
	return nil, false
}

func (x *Exchange) begin(adm *Admission, now time.Time) *Attempt {
	a := &Attempt{
		N: len(x.Attempts) + 1, Place: x.cursor, Model: adm.Model, Key: adm.Key, Probe: adm.Probe,
		Start: now, admission: adm,
	}
	x.Attempts = append(x.Attempts, a)
	x.state = StateAttempting // from planned or deciding, checked by Next
	return a
}

// admit asks for a slot at a place and notes why there is none.
func (x *Exchange) admit(i int) *Admission {
	p := &x.Plan.Places[i]
	if x.barred(p) {
		return nil
	}
	adm, v := x.health.Admit(p.Entry.Target, p.Model, x.keyUsable(i), nil)
	if adm == nil {
		p.Skip = v.Skip
		return nil
	}
	p.Skip = ""
	return adm
}

// barred reports whether a place is out whatever its health.
func (x *Exchange) barred(p *Place) bool {
	switch p.Skip {
	case "", SkipEjected, SkipBusy, SkipCredential:
	default:
		return true
	}
	limit := p.Entry.Target.Limits.Body
	return x.larger > 0 && limit > 0 && limit <= x.larger
}

func (x *Exchange) keyUsable(place int) func(int) bool {
	t := x.Plan.Places[place].Entry.Target
	return func(key int) bool {
		if place == x.cursor && slices.Contains(x.tried, key) {
			return false
		}
		return x.usable(t, key)
	}
}

// Held notes that attempt n answered a stream whose headers are held.
func (x *Exchange) Held(n int, now time.Time) error {
	a, err := x.running(n)
	if err != nil {
		return err
	}
	if err := x.move(StateHolding); err != nil {
		return err
	}
	a.Headers = now
	return nil
}

// Commit notes that attempt n's answer goes to the client. What it came to is
// told to Finish.
func (x *Exchange) Commit(n int, now time.Time) error {
	a, err := x.running(n)
	if err != nil {
		return err
	}
	if err := x.move(StateCommitted); err != nil {
		return err
	}
	if a.Headers.IsZero() {
		a.Headers = now
	}
	a.Decision = VerbServe
	return nil
}

// Fail closes attempt n with a failure before the commit and says what follows.
func (x *Exchange) Fail(n int, o Outcome, now time.Time) (Decision, error) {
	a, err := x.running(n)
	if err != nil {
		return Decision{}, err
	}
	if err := x.move(StateDeciding); err != nil {
		return Decision{}, err
	}
	x.close(a, o, now)
	d := x.decide(a, now)
	a.Decision = d.Verb
	a.Waited = d.Wait
	x.exhausted = d.Exhausted
	return d, nil
}

// Concede closes attempt n with a failure that nothing follows any more: its
// answer is on its way to the client. Only what would have been tried again
// leaves the exchange exhausted.
func (x *Exchange) Concede(n int, o Outcome, now time.Time) error {
	d, err := x.Fail(n, o, now)
	if err != nil {
		return err
	}
	a := x.Last()
	x.exhausted = d.Exhausted || d.Verb != VerbStop
	a.Decision, a.Waited = VerbStop, 0
	return nil
}

// Finish closes a committed attempt with how it really ended.
func (x *Exchange) Finish(n int, o Outcome, now time.Time) error {
	a, err := x.running(n)
	if err != nil {
		return err
	}
	if x.state != StateCommitted {
		return fmt.Errorf("%w: attempt %d ends while %s", ErrOrder, n, x.state)
	}
	x.close(a, o, now)
	return nil
}

// End gives back whatever the exchange still holds: an attempt that runs is
// closed with o. Ending twice is a no-op.
func (x *Exchange) End(o Outcome, now time.Time) {
	if x.state == StateEnded {
		return
	}
	if a := x.Last(); a != nil && !a.Closed() {
		x.close(a, o, now)
	}
	x.state = StateEnded
}

// running is attempt n when it is the newest and still open.
func (x *Exchange) running(n int) (*Attempt, error) {
	a := x.Last()
	if a == nil || a.N != n || a.Closed() {
		return nil, fmt.Errorf("%w: attempt %d is not the one that runs", ErrOrder, n)
	}
	return a, nil
}

func (x *Exchange) close(a *Attempt, o Outcome, now time.Time) {
	a.End = now
	if o.Status != 0 {
		a.Status = o.Status
	}
	if o.Kind == config.KindRateLimit {
		o.Cooldown = Cooldown(o, x.Plan.Route.RetryAfter)
	}
	a.Outcome = o
	if a.admission != nil {
		o.At = now
		if o.Kind == config.KindModeration { // the target did what it was asked to
			o.Kind = config.KindOK
		}
		a.admission.Report(o)
	}
}

// OutcomeSoFar is what the attempt came to; one that runs, or whose answer is
// on its way to the client, is ok as far as anyone knows.
func (a *Attempt) OutcomeSoFar() config.Kind {
	if a.Closed() {
		return a.Outcome.Kind
	}
	return config.KindOK
}

// Elapsed is how long the attempt took until it failed, or until its answer
// could go to the client.
func (a *Attempt) Elapsed(now time.Time) time.Duration {
	switch {
	case !a.Headers.IsZero() && a.Decision == VerbServe:
		return a.Headers.Sub(a.Start)
	case a.Closed():
		return a.End.Sub(a.Start)
	}
	return now.Sub(a.Start)
}
