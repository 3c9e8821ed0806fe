package extproc

import (
	"time"

	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/messages"
)

const (
	// entriesWait is how long the end of an exchange waits for what is missing.
	entriesWait = 500 * time.Millisecond
	// orphanWait is how long an exchange whose plan stream is over is kept for the
	// entry that tells how it ended.
	orphanWait = 10 * time.Minute
	// longSilence: a client that leaves an attempt which has sent nothing for so
	// long has run out of patience with the target (contract, section 4).
	longSilence = 30 * time.Second
)

// What an exchange came to, as trail and metrics name it.
const (
	outcomeRejected    = trail.OutcomeRejected
	outcomeExhausted   = trail.OutcomeExhausted
	outcomeServiceDown = trail.OutcomeServiceDown
)

// ending collects what the streams and the log tell about an exchange's end.
// The exchange's mu guards it.
type ending struct {
	planOver   bool   // the plan stream ended
	exchange   *entry // the access-log entry of the whole
	attempt    *entry // that of attempt attemptN, the newest that told of its end
	attemptN   int
	answered   *reply // Crossdoor's own final answer, when it gave one
	timer      *time.Timer
	waitedLong bool // the timer ran for an orphan
	done       bool
	read       messages.Ending // what the answer's last bytes say
}

// planOver notes that the plan stream of x ended, for whatever reason.
func (s *Server) planOver(x *exchange) {
	x.mu.Lock()
	x.end.planOver = true
	x.letGo()
	x.mu.Unlock()
	s.tryEnd(x)
}

// tryEnd ends the exchange when all that can be known is known, and else sees
// to it that it ends soon.
func (s *Server) tryEnd(x *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.end.done, !x.end.planOver && x.end.exchange == nil:
	case x.toldAll():
		s.finishExchange(x)
	default:
		s.endIn(x, s.patience(x))
	}
}

// endIn ends the exchange after a while with what is there then. x.mu is held.
func (s *Server) endIn(x *exchange, wait time.Duration) {
	x.end.waitedLong = wait > entriesWait
	if x.end.timer == nil {
		x.end.timer = time.AfterFunc(wait, func() { s.endAnyway(x) })
		return
	}
	x.end.timer.Reset(wait)
}

// toldAll reports whether nothing more is to be expected. x.mu is held.
func (x *exchange) toldAll() bool {
	if x.other != nil && x.end.answered == nil {
		return x.end.exchange != nil
	}
	if x.run == nil || (x.end.answered != nil && x.now() == nil) {
		return x.end.planOver
	}
	if x.end.exchange == nil {
		return false
	}
	a := x.now()
	return a == nil || x.entryOf(a) != nil
}

// endAnyway ends the exchange with what is there.
func (s *Server) endAnyway(x *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.end.done {
		return
	}
	// The connection may have broken since the timer was set.
	if wait := s.patience(x); wait > entriesWait && !x.end.waitedLong {
		s.endIn(x, wait)
		return
	}
	s.finishExchange(x)
}

// patience is how long what is missing is waited for. The end of the plan stream
// is not that of an answer which is on its way: Envoys before 1.39 close it after the
// headers, and a connection may break. The exchange's entry tells. x.mu is held.
func (s *Server) patience(x *exchange) time.Duration {
	committed := x.run != nil && x.run.State() == policy.StateCommitted && x.entryOf(x.run.Last()) == nil
	onItsWay := s.envoys.planEndsEarly() && (committed || (x.other != nil && x.other.status != 0))
	if x.end.exchange == nil && (onItsWay || x.connection.lost()) {
		return orphanWait
	}
	return entriesWait
}

// finishExchange is the one end of every exchange. x.mu is held.
func (s *Server) finishExchange(x *exchange) {
	x.end.done = true
	if x.end.timer != nil {
		x.end.timer.Stop()
	}
	now := time.Now()
	x.letGo()
	if x.run != nil {
		x.closeLast(now)
		x.run.End(policy.OutcomeOf(config.KindClientGone, ""), now)
	}
	if e := x.end.exchange; e != nil && e.status != 0 {
		x.status = e.status // what the client really got
	}
	over := x.end.exchange.overBy(now)
	if r := x.record(over); r != nil {
		s.count(x, r, over)
		s.trail.Add(r)
	}
	s.table.remove(x.id, now) // last: a drain waits for an empty table
}

// closeLast closes the attempt that still runs with how it ended. x.mu is held.
func (x *exchange) closeLast(now time.Time) {
	a := x.now()
	if a == nil {
		return
	}
	if x.run.State() == policy.StateCommitted {
		o := x.howItEnded(a)
		o.Status = a.Status
		_ = x.run.Finish(a.N, o, x.entryOf(a).overBy(now)) // cannot fail: a runs and is committed
		return
	}
	o := policy.OutcomeOf(config.KindClientGone, "")
	if a.Headers.IsZero() && a.N <= x.issued && now.Sub(a.Start) >= longSilence {
		o = policy.OutcomeOf(config.KindTimeout, "client_gave_up")
	}
	x.run.End(o, now)
}

// howItEnded reads the end of the committed answer. x.mu is held.
func (x *exchange) howItEnded(a *policy.Attempt) policy.Outcome {
	e, whole := x.entryOf(a), x.end.exchange
	switch {
	case e == nil && whole == nil:
		return policy.OutcomeOf(config.KindClientGone, "unknown")
	case e == nil:
		e = whole
	}
	switch {
	case e.flags.idle && clientStalled(e, whole):
		return policy.OutcomeOf(config.KindClientGone, "client_does_not_read")
	case e.flags.idle:
		return policy.OutcomeOf(config.KindIdle, "stream_idle_timeout")
	case e.flags.upstreamBroke:
		return policy.OutcomeOf(config.KindTruncated, "reset")
	case x.convertedElsewhere(a) && (whole == nil || !whole.flags.downstreamGone):
		o := policy.OutcomeOf(config.KindTruncated, "service") // it died, and cut the client
		o.Blame = policy.BlameNothing
		return o
	case e.flags.downstreamGone, whole != nil && whole.flags.downstreamGone && !e.hasTail:
		return policy.OutcomeOf(config.KindClientGone, "")
	case !e.hasTail && e != whole:
		return policy.OutcomeOf(config.KindTruncated, "cut")
	}
	return x.readTail(e)
}

// readTail judges an answer that came to its end by its last bytes. x.mu is
// held.
func (x *exchange) readTail(e *entry) policy.Outcome {
	ok := policy.OutcomeOf(config.KindOK, "")
	if x.opaque || !e.hasTail {
		return ok
	}
	contentType := "application/json"
	if x.judged {
		contentType = "text/event-stream"
	}
	x.end.read = messages.ReadTail(contentType, e.tail)
	if c := x.converted; c != nil && c.n == x.servedBy { // the tail is in the platform's framing
		x.end.read = c.ending
	}
	if x.end.read.StopReason == "refusal" {
		ok.Kind = config.KindModeration // an answer like any other to the target's health
	}
	switch {
	case !x.judged:
		return ok
	case x.end.read.Err != nil:
		return policy.OutcomeOf(config.KindStreamError, x.end.read.Err.Type)
	case !x.end.read.Stop:
		return policy.OutcomeOf(config.KindTruncated, "no_message_stop")
	}
	return ok
}

// stallGap is by how much the exchange's own entry comes after that of its
// silent attempt when it is the client that does not read.
const stallGap = time.Second

// clientStalled tells a client that does not read from a target that fell
// silent: of the first the exchange's own entry comes later, if at all
// (envoy.md, section 4), or says that the client closed. A target's silence makes
// Envoy cut the client.
func clientStalled(e, whole *entry) bool {
	return e != whole && (whole == nil || whole.flags.downstreamGone || whole.at.Sub(e.at) > stallGap)
}

// overBy is when what the entry tells of ended: now when there is no entry, it
// does not say, or the clocks disagree.
func (e *entry) overBy(now time.Time) time.Time {
	if e == nil || e.over.IsZero() || e.over.After(now) || now.Sub(e.over) > entriesWait+stallGap {
		return now
	}
	return e.over
}

// entryOf is attempt a's access-log entry, nil while it is missing. x.mu is
// held.
func (x *exchange) entryOf(a *policy.Attempt) *entry {
	if x.end.attemptN != a.N {
		return nil
	}
	return x.end.attempt
}
