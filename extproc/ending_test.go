package extproc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// streaming brings a stream as far as its commit.
func (r *replica) streaming() *envoy {
	r.Helper()
	e := r.post(streamBody)
	p := e.judge(r, false, from(200, eventStream))
	p.responseBody(startEvent+deltaEvent, false)
	if m := p.recv(); m == nil || retries(m) {
		r.Fatalf("not released: %v", m)
	}
	if m := e.final(from(200, eventStream)); m.GetImmediateResponse() != nil {
		r.Fatalf("not served: %v", m)
	}
	return e
}

// How a committed stream ended, by flags and tail of both entries (envoy.md,
// section 4).
func TestHowStreamsEnd(t *testing.T) {
	const reset = "upstream_reset_after_response_started{connection_termination}"
	const cut = deltaEvent
	cases := []struct {
		name     string
		attempt  *ended // nil: never comes
		exchange *ended
		late     time.Duration // of the exchange's entry
		want     string
		outcome  string
	}{
		{"whole", &ended{tail: startEvent + deltaEvent + stopEvents}, &ended{}, 0, "ok", trail.OutcomeServed},
		{"whole, cut at the front", &ended{tail: stopEvents[20:]}, &ended{}, 0, "ok", trail.OutcomeServed},
		{"protocol error", &ended{flag: "UPE", details: reset}, &ended{flag: "UPE", details: reset}, 0, "truncated", trail.OutcomeStreamFailed},
		{"connection closed", &ended{flag: "UC", details: reset}, &ended{flag: "UPE", details: reset}, 0, "truncated", trail.OutcomeStreamFailed},
		{"reset", &ended{flag: "UR", details: reset}, &ended{flag: "UPE", details: reset}, 0, "truncated", trail.OutcomeStreamFailed},
		{"by details alone", &ended{details: reset}, &ended{}, 0, "truncated", trail.OutcomeStreamFailed},
		{"no tail is a cut", &ended{}, &ended{}, 0, "truncated", trail.OutcomeStreamFailed},
		{"silent: both entries at once", &ended{flag: "SI", details: "stream_idle_timeout"}, &ended{flag: "UPE", details: reset}, 0, "idle", trail.OutcomeStreamFailed},
		{"silent: both within a second", &ended{flag: "SI", details: "stream_idle_timeout"}, &ended{flag: "UPE", details: reset}, 900 * time.Millisecond, "idle", trail.OutcomeStreamFailed},
		{"a client that does not read: a late entry", &ended{flag: "SI", details: "stream_idle_timeout"}, &ended{flag: "UPE", details: reset}, 3 * time.Second, "client_gone", trail.OutcomeClientGone},
		{"client gone, both say so", &ended{flag: "DC"}, &ended{flag: "DC"}, 0, "client_gone", trail.OutcomeClientGone},
		{"client gone, the exchange says so", &ended{}, &ended{flag: "DC"}, 0, "client_gone", trail.OutcomeClientGone},
		{"client gone after the whole answer", &ended{tail: stopEvents}, &ended{flag: "DC"}, 0, "ok", trail.OutcomeServed},
		{"error in the tail", &ended{tail: deltaEvent + errorEvent}, &ended{}, 0, "stream_error", trail.OutcomeStreamFailed},
		{"no message_stop", &ended{tail: cut}, &ended{}, 0, "truncated", trail.OutcomeStreamFailed},
		{"only the exchange's entry", nil, &ended{}, 0, "ok", trail.OutcomeServed},
		{"only the exchange's entry, cut", nil, &ended{flag: "UPE", details: reset}, 0, "truncated", trail.OutcomeStreamFailed},
		{"only the exchange's entry, client gone", nil, &ended{flag: "DC"}, 0, "client_gone", trail.OutcomeClientGone},
		{"only the attempt's entry", &ended{tail: stopEvents}, nil, 0, "ok", trail.OutcomeServed},
		{"none", nil, nil, 0, "client_gone", trail.OutcomeClientGone},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.streaming()
				if c.attempt != nil {
					e.log(r, names.LogAttempt, *c.attempt)
				}
				pass(c.late)
				e.plan.leave()
				if c.exchange != nil {
					e.log(r, names.LogExchange, *c.exchange)
				}
				tell := r.record
				if c.attempt == nil && c.exchange == nil {
					tell = r.lateRecord
				}
				rec := tell()
				if got := rec.Attempts[0]; got.Outcome != c.want || got.Decision != trail.DecisionServe || rec.Outcome != c.outcome {
					t.Errorf("%s (%s), %s; want %s, %s", got.Outcome, got.Decision, rec.Outcome, c.want, c.outcome)
				}
				if got := r.metric("crossdoor_stream_ends_total", "target", "a", "end", c.want); got != 1 {
					t.Errorf("stream_ends_total{end=%q} is %v: want 1", c.want, got)
				}
				if c.want == "ok" && c.attempt != nil && (rec.Usage == nil || rec.Usage.OutputTokens != 9 || rec.StopReason != "end_turn") {
					t.Errorf("usage %+v, stop reason %q", rec.Usage, rec.StopReason)
				}
			})
		})
	}
}

// Failures after the commit count on the target's model; a client that does not
// read or left counts nothing.
func TestHowStreamsEndCounts(t *testing.T) {
	yaml := twoTargets + "breaker: {failures: 1}\n"
	for _, c := range []struct {
		name   string
		end    ended
		late   time.Duration
		opened bool
	}{
		{"cut", ended{flag: "UPE"}, 0, true},
		{"error event", ended{tail: errorEvent}, 0, true},
		{"silent", ended{flag: "SI"}, 0, true},
		{"whole", ended{tail: stopEvents}, 0, false},
		{"client does not read", ended{flag: "SI"}, 3 * time.Second, false},
		{"client gone", ended{flag: "DC"}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, yaml, func(r *replica) {
				e := r.streaming()
				e.log(r, names.LogAttempt, c.end)
				pass(c.late)
				e.plan.leave()
				e.log(r, names.LogExchange, ended{})
				r.record()
				if got := r.metric("crossdoor_breaker_opened_total", "target", "a"); (got == 1) != c.opened {
					t.Errorf("opened %v times", got)
				}
			})
		})
	}
}

// Whatever the order of the plan stream's end and the entries, the exchange ends
// once, within a second of the exchange's entry, or of what comes first of it and
// the plan's end when the attempt's is there.
func TestEndsOnce(t *testing.T) {
	steps := map[string]func(e *envoy){
		"plan":     func(e *envoy) { e.plan.leave() },
		"exchange": func(e *envoy) { e.log(e.replica, names.LogExchange, ended{}) },
		"attempt":  func(e *envoy) { e.log(e.replica, names.LogAttempt, ended{tail: stopEvents}) },
		"late":     func(*envoy) { pass(2 * time.Second) },
	}
	orders := [][]string{
		{"plan", "exchange", "attempt"}, {"plan", "attempt", "exchange"}, {"exchange", "plan", "attempt"},
		{"exchange", "attempt", "plan"}, {"attempt", "exchange", "plan"}, {"attempt", "plan", "exchange"},
		{"plan"}, {"exchange"}, {"plan", "exchange"}, {"exchange", "plan"},
		{"plan", "plan", "exchange", "exchange", "attempt", "attempt"},
		{"attempt", "attempt", "exchange", "exchange"},
		{"plan", "late", "exchange", "attempt"}, {"exchange", "late", "attempt", "plan"},
		{"attempt", "exchange", "late", "attempt", "exchange", "plan"},
	}
	for _, order := range orders {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, stream %v", order, stream), func(t *testing.T) {
				inWorld(t, twoTargets, func(r *replica) {
					var e *envoy
					if stream {
						e = r.streaming()
					} else {
						e = r.post(plainBody)
						e.final(from(200, "application/json"))
					}
					for _, step := range order {
						steps[step](e)
					}
					tell := r.record
					if len(order) == 1 && order[0] == "plan" {
						tell = r.lateRecord
					}
					rec := tell()
					if rec.Status != 200 || rec.ServedBy != "a" || len(rec.Attempts) != 1 {
						t.Errorf("%+v", rec)
					}
					if n := r.server.table.Len(); n != 0 {
						t.Errorf("%d exchanges left", n)
					}
					// A tombstone swallows what comes late; afterwards an entry is one
					// of another replica, whose state ends nothing twice here.
					e.log(r, names.LogExchange, ended{})
					e.log(r, names.LogAttempt, ended{tail: stopEvents})
					r.record()
					e.plan.leave()
				})
			})
		}
	}
}

// The entry of an earlier attempt says nothing about the one that served.
func TestEndOfAnEarlierAttempt(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(streamBody)
		e.judged(r, local(503, "UC;x"), "")
		e.attempt(r)
		p := e.judge(r, false, from(200, eventStream))
		p.responseBody(startEvent+deltaEvent, false)
		p.recv()
		e.final(from(200, eventStream))
		e.log(r, names.LogAttempt, ended{status: 503, flag: "UC", count: "1"})
		e.log(r, names.LogAttempt, ended{tail: stopEvents, count: "2"})
		e.plan.leave()
		e.log(r, names.LogExchange, ended{})
		rec := r.record()
		if got := attemptsOf(rec); !slices.Equal(got, []string{"a connection", "b ok"}) || rec.Outcome != trail.OutcomeFailedOver {
			t.Errorf("%s %v", rec.Outcome, got)
		}
	})
}

// Several entries in one message are each read, garbage among them is not.
func TestEntriesInOneMessage(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(plainBody)
		e.final(from(200, "application/json"))
		other := r.post(plainBody)
		e.plan.leave()
		r.logs(names.LogExchange, nil, e.entry(names.LogExchange, ended{}), (&envoy{}).entry(names.LogExchange, ended{}))
		r.logs("something else", e.entry(names.LogAttempt, ended{tail: "{}"}))
		if rec := r.record(); rec.ID != e.headers[names.ID] {
			t.Errorf("ended %s", rec.ID)
		}
		if n := r.server.table.Len(); n != 1 {
			t.Errorf("%d exchanges, want the other one", n)
		}
		other.plan.leave()
	})
}

// How long an answer on its way is waited for follows from which Envoys send
// entries: those before 1.39 end the plan stream with the headers.
func TestPatienceByVersion(t *testing.T) {
	for _, c := range []struct {
		name  string
		minor []int
		late  bool
	}{
		{"nobody has said yet", nil, true},
		{"1.38", []int{38}, true},
		{"1.39", []int{39}, false},
		{"1.40", []int{40}, false},
		{"one that does not say", []int{0}, false},
		{"1.40 and 1.37", []int{40, 37}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				for _, minor := range c.minor {
					r.server.envoys.seen(minor)
				}
				r.streaming().plan.leave()
				tell := r.record
				if c.late {
					tell = r.lateRecord
				}
				if rec := tell(); rec.Outcome != trail.OutcomeClientGone {
					t.Errorf("outcome %q", rec.Outcome)
				}
			})
		})
	}
}
