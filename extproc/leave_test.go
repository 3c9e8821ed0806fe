package extproc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// phase is how far a request has come when its client leaves. It returns the
// streams that Envoy has open then, besides the plan's.
type phase struct {
	name  string
	body  string
	reach func(e *envoy) []*filter
}

func phases() []phase {
	held := func(e *envoy, headers map[string]string, body string) []*filter {
		p := e.judge(e.replica, false, headers)
		if body != "" {
			p.responseBody(body, false)
		}
		synctest.Wait()
		return []*filter{p}
	}
	return []phase{
		{"thinking", plainBody, func(*envoy) []*filter { return nil }},
		{"a stream is held", streamBody, func(e *envoy) []*filter { return held(e, from(200, eventStream), startEvent) }},
		{"an error body is read", plainBody, func(e *envoy) []*filter { return held(e, overloaded(), `{"type"`) }},
		{"the judge waits", plainBody, func(e *envoy) []*filter {
			p := e.judge(e.replica, true, from(429, "application/json", "retry-after", "60"))
			synctest.Wait()
			return []*filter{p}
		}},
		{"between attempts", plainBody, func(e *envoy) []*filter { e.judged(e.replica, overloaded(), overloadedBody); return nil }},
		{"the attempt waits", plainBody, func(e *envoy) []*filter {
			e.judge(e.replica, true, from(429, "application/json", "retry-after", "60")).leave()
			p := e.open(names.RoleAttempt, e.meta)
			p.requestHeaders(false, e.headers)
			synctest.Wait()
			return []*filter{p}
		}},
		{"at the second", plainBody, func(e *envoy) []*filter {
			e.judged(e.replica, overloaded(), overloadedBody)
			e.attempt(e.replica)
			return nil
		}},
		{"committed", streamBody, func(e *envoy) []*filter {
			p := held(e, from(200, eventStream), startEvent+deltaEvent)[0]
			p.recv()
			p.leave()
			e.final(from(200, eventStream))
			return nil
		}},
	}
}

// A client that leaves frees everything within a second, blames nobody, and is
// recorded once.
func TestLeave(t *testing.T) {
	yaml := withRoute("actions: {rate_limit: retry}, same_target_retries: 1")
	for _, ph := range phases() {
		for _, planFirst := range []bool{true, false} {
			name := ph.name + ", the plan's stream ends last"
			if planFirst {
				name = ph.name + ", the plan's stream ends first"
			}
			t.Run(name, func(t *testing.T) {
				inWorld(t, yaml, func(r *replica) {
					e := r.post(ph.body)
					streams := ph.reach(e)
					if len(handlers()) == 0 {
						t.Fatal("no handler runs")
					}
					if planFirst {
						e.plan.leave()
					}
					for _, p := range streams {
						p.leave()
					}
					e.plan.leave()
					e.log(r, names.LogAttempt, ended{status: -1, flag: "DC", details: "downstream_remote_disconnect"})
					e.log(r, names.LogExchange, ended{status: -1, flag: "DC", details: "downstream_remote_disconnect"})
					pass(time.Second)
					synctest.Wait()
					r.idle()
					all := r.records()
					if len(all) != 1 {
						t.Fatalf("%d records, want 1", len(all))
					}
					if rec := all[0]; rec.Outcome != trail.OutcomeClientGone {
						t.Errorf("outcome %s: %+v", rec.Outcome, rec.Attempts)
					}
					last := all[0].Attempts[len(all[0].Attempts)-1]
					if ph.name != "the judge waits" && ph.name != "the attempt waits" && last.Outcome != "client_gone" && last.Outcome != "overloaded" {
						t.Errorf("last attempt %s", last.Outcome)
					}
				})
			})
		}
	}
}

// An attempt that sent nothing for 30 s made the client lose its patience: a
// timeout of the target.
func TestLeaveOutOfPatience(t *testing.T) {
	cases := []struct {
		name  string
		after time.Duration
		seen  bool // its headers came
		want  string
	}{
		{"soon", longSilence - time.Second, false, "client_gone"},
		{"after a long silence", longSilence, false, "timeout"},
		{"the answer had begun", longSilence, true, "client_gone"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, withTimeouts("first_token: 60s, hold: 55s"), func(r *replica) {
				e := r.post(streamBody)
				if c.seen {
					e.judge(r, false, from(200, eventStream)).responseBody(startEvent, false)
				}
				pass(c.after)
				e.plan.leave()
				e.log(r, names.LogAttempt, ended{status: -1, flag: "DC"})
				e.log(r, names.LogExchange, ended{status: -1, flag: "DC"})
				rec := r.record()
				if rec.Attempts[0].Outcome != c.want || rec.Outcome != trail.OutcomeClientGone {
					t.Errorf("%s, %s; want %s", rec.Outcome, rec.Attempts[0].Outcome, c.want)
				}
			})
		})
	}
}

// The body may go between the moment that an attempt is found and the one in
// which it is sent: the client left, or the total is over.
func TestLeaveWhileAttemptIsMade(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(plainBody)
		e.judged(r, overloaded(), overloadedBody)
		s := r.server
		x, _ := s.table.get(e.headers[names.ID])
		a, _ := s.nextAttempt(context.Background(), x, "2")
		if a == nil {
			t.Fatal("no attempt")
		}
		x.mu.Lock()
		x.letGo() // what planOver and expire do
		x.mu.Unlock()
		var out wire.Response
		if s.sendAttempt(x, a, &out, false) {
			t.Error("an attempt was made without a body")
		}
		e.plan.leave()
	})
}

func attemptsOf(r *trail.Record) (out []string) {
	for _, a := range r.Attempts {
		out = append(out, a.Target+" "+a.Outcome)
	}
	return out
}
