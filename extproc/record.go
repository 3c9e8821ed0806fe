package extproc

import (
	"time"

	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/messages"
)

// record is the exchange as the trail keeps it; nil when it leaves none. x.mu
// is held and every attempt is closed.
func (x *exchange) record(now time.Time) *trail.Record {
	r := &trail.Record{
		Time: x.started, ID: x.id, Model: x.facts.Model, Client: x.clientName, Policy: x.policy.Hash,
		Status: x.status, Outcome: x.outcome(), Tier: trail.TierPortable, MS: now.Sub(x.started).Milliseconds(),
	}
	if r.Outcome == "" {
		return nil
	}
	if x.other != nil {
		x.other.record(x, r, now)
	}
	if x.run == nil {
		return r
	}
	p := x.run.Plan
	r.Route, r.Stream = p.Route.Name, p.Request.Stream
	x.recordPlan(r)
	for _, a := range x.run.Attempts {
		if a.N <= x.issued {
			r.Attempts = append(r.Attempts, x.recordAttempt(a))
		}
	}
	if x.servedBy > 0 {
		a := x.run.Attempts[x.servedBy-1]
		t := x.target(a)
		r.ServedBy, r.RequestID = t.Name, x.detail(a).requestID
		r.AddedMS = a.Start.Sub(p.Start).Milliseconds()
		r.Degraded = x.degraded()
	}
	if !x.committed.IsZero() {
		ms := x.committed.Sub(x.started).Milliseconds()
		r.CommittedMS = &ms
	}
	r.StopReason = x.end.read.StopReason
	if x.end.read.HasUsage {
		r.Usage = usage(x.end.read.Usage)
	}
	return r
}

func (x *exchange) recordPlan(r *trail.Record) {
	usable := 0
	for i, place := range x.run.Plan.Places {
		planned := trail.Planned{Target: place.Entry.Target.Name, Model: place.Model, Stripped: place.Stripped}
		tried := false
		for _, a := range x.run.Attempts[:x.issued] {
			if a.Place == i {
				tried = true
				planned.Key = keyPlace(place.Entry.Target, a.Key)
			}
		}
		if !tried {
			planned.Skipped = string(place.Skip)
		}
		if !permanent(place.Skip) {
			usable++
		}
		r.Plan = append(r.Plan, planned)
	}
	if usable == 1 {
		r.Tier = trail.TierSingleTarget
	}
}

// permanent reports whether a place was out for this request whatever the
// health of its target.
func permanent(s policy.Skip) bool {
	switch s {
	case policy.SkipNone, policy.SkipEjected, policy.SkipBusy, policy.SkipCredential:
		return false
	}
	return true
}

func keyPlace(t *config.Target, key int) string {
	if key < 0 || key >= len(t.Keys) {
		return ""
	}
	return t.Keys[key].Place()
}

func (x *exchange) recordAttempt(a *policy.Attempt) trail.Attempt {
	t := x.target(a)
	d := x.detail(a)
	out := trail.Attempt{
		N: a.N, Target: t.Name, Model: a.Model, Key: keyPlace(t, a.Key), Host: t.Endpoint.Authority(),
		StartMS: a.Start.Sub(x.started).Milliseconds(), MS: a.End.Sub(a.Start).Milliseconds(),
		Status: a.Status, Outcome: string(a.Outcome.Kind), WaitedMS: a.Waited.Milliseconds(),
		UpstreamRequestID: d.requestID, Decision: string(a.Decision), Error: d.message,
	}
	if a.Outcome.HasRetryAfter {
		out.RetryAfterMS = a.Outcome.RetryAfter.Milliseconds()
	}
	if out.Decision == "" {
		out.Decision = string(policy.VerbStop)
	}
	return out
}

// outcome is what the exchange came to; "" for one that leaves no record. x.mu
// is held.
func (x *exchange) outcome() string {
	if x.other != nil {
		return x.other.ended(x)
	}
	if r := x.end.answered; r != nil {
		return r.outcome
	}
	a := (*policy.Attempt)(nil)
	if x.run != nil {
		a = x.run.Last()
	}
	switch {
	case a == nil:
		return trail.OutcomeClientGone
	case x.servedBy == a.N && a.Decision == policy.VerbServe:
		return x.servedOutcome(a)
	case a.Outcome.Kind == config.KindClientGone, x.status == 0:
		return trail.OutcomeClientGone
	case x.run.Exhausted():
		return trail.OutcomeExhausted
	}
	return trail.OutcomeStopped
}

func (x *exchange) servedOutcome(a *policy.Attempt) string {
	switch a.Outcome.Kind {
	case config.KindOK, config.KindModeration:
		if a.Place != x.firstPlace() {
			return trail.OutcomeFailedOver
		}
		return trail.OutcomeServed
	case config.KindClientGone:
		return trail.OutcomeClientGone
	}
	return trail.OutcomeStreamFailed
}

// firstPlace is the place that serves this request in good health.
func (x *exchange) firstPlace() int {
	for i, p := range x.run.Plan.Places {
		if !permanent(p.Skip) {
			return i
		}
	}
	return 0
}

func usage(u messages.Usage) *trail.Usage {
	return &trail.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadInputTokens: u.CacheReadInputTokens, CacheCreationInputTokens: u.CacheCreationInputTokens,
	}
}
