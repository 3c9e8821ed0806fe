package extproc

import (
	"net/http"
	"sync"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy"
)

// looseFor is how long an attempt's entry is kept for the entry of its
// exchange.
const looseFor = 5 * time.Second

// maxLoose bounds the entries that are kept.
const maxLoose = 10000

// looseEntries are attempts' entries of exchanges that this replica does not
// know.
type looseEntries struct {
	mu      sync.Mutex
	entries map[string]looseEntry
}

type looseEntry struct {
	entry *entry
	at    time.Time
}

func (l *looseEntries) keep(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.entries == nil {
		l.entries = map[string]looseEntry{}
	}
	if len(l.entries) >= maxLoose {
		for id, old := range l.entries {
			if now.Sub(old.at) > looseFor {
				delete(l.entries, id)
			}
		}
	}
	if len(l.entries) < maxLoose {
		l.entries[e.id] = looseEntry{entry: e, at: now}
	}
}

func (l *looseEntries) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.entries[id]
	return ok
}

func (l *looseEntries) take(id string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[id]
	if !ok {
		return nil
	}
	delete(l.entries, id)
	return e.entry
}

// foreign deals with an entry of an exchange that another replica planned: it
// is handed on while that replica lives; else the exchange ends here, from what
// the entries and the state carry. raw is the entry as it came, which is the
// caller's. It reports whether the exchange ends here.
func (s *Server) foreign(log string, e *entry, raw []byte) (ours bool) {
	if e.node != s.node && s.peers.handOn(e.node, log, raw, func() { s.orphan(log, e) }) {
		return false
	}
	return s.orphan(log, e)
}

// orphan ends an exchange whose replica is gone, unless another one does. An
// attempt's entry waits for the exchange's, which carries the state, and that one
// for the attempt's a moment: Envoy sends them on streams of their own.
func (s *Server) orphan(log string, e *entry) (ours bool) {
	if log != names.LogExchange {
		s.loose.keep(e)
		return true
	}
	if s.peers == nil && s.notOurs(e) {
		return false
	}
	x := s.join(e.id, clientRequest{}, e.node, e.state)
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.end.exchange != nil: // told twice
	case x.now() == nil || s.loose.has(e.id):
		s.adoptEnd(x, e)
	default:
		x.end.exchange = e
		time.AfterFunc(entriesWait, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			s.adoptEnd(x, e)
		})
	}
	return true
}

// notOurs reports, where no peers are known, that an exchange was planned by
// another replica that lives: it began after this process did, so it is not one
// that a process before this one left behind.
func (s *Server) notOurs(e *entry) bool {
	c := readState(e.state)
	if c == nil || !time.UnixMilli(c.Began).After(s.began) {
		return false
	}
	s.strangers.Do(func() {
		s.log.Warn("entries of another replica's exchanges arrive here: give every replica --advertise and --peers, else the trail has gaps")
	})
	return true
}

// adoptEnd ends a joined exchange by its access-log entry. x.mu is held.
func (s *Server) adoptEnd(x *exchange, e *entry) {
	if x.end.done {
		return
	}
	x.end.exchange, x.status, x.end.planOver = e, e.status, true
	if a := x.now(); a != nil {
		x.end.attempt, x.end.attemptN = s.loose.take(x.id), a.N
		x.issued = len(x.run.Attempts)
		if e.status == 200 && x.run.State() != policy.StateCommitted {
			now := time.Now()
			_ = x.run.Commit(a.N, now) // cannot fail: a runs
			x.servedBy, x.committed, a.Status = a.N, now, e.status
		}
		s.adoptFailure(x, a, e)
	}
	if e.status >= 500 && x.servedBy == 0 {
		x.end.answered = serviceFailed()
		x.end.answered.outcome = outcomeServiceDown
	}
	s.finishExchange(x)
}

// adoptFailure closes attempt a of a joined exchange with the error answer that
// passed to the client without a judge: nobody was there to read it. x.mu is
// held.
func (s *Server) adoptFailure(x *exchange, a *policy.Attempt, whole *entry) {
	if !whole.platforms(x.end.attempt) {
		return
	}
	now := time.Now()
	o := classify(policy.Answer{Status: whole.status, Local: "-;via_upstream", Platform: x.target(a).Platform, Original: x.original(a)}, now)
	if err := x.run.Concede(a.N, o, whole.overBy(now)); err != nil {
		s.log.Error("attempt failed", "id", x.id, "error", err)
		return
	}
	x.servedBy = a.N
}

// platforms tells a platform's error answer from one that Envoy made, by the
// entry of the last attempt. Without that one only a 4xx is sure: nothing else
// makes those once an attempt was sent.
func (e *entry) platforms(attempt *entry) bool {
	if attempt == nil {
		return e.status >= http.StatusBadRequest && e.status < http.StatusInternalServerError
	}
	return attempt.details == "via_upstream" && attempt.status == e.status && e.status >= http.StatusBadRequest
}
