package extproc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// The total timeout ends the request with an answer that nobody asked for, in
// whatever phase it is; the client's own timeout shortens it.
func TestPlanTotal(t *testing.T) {
	yaml := withTimeouts("total: 30s, attempt: 20s, first_token: 10s, hold: 5s")
	cases := []struct {
		name    string
		headers []string
		phase   func(e *envoy)
		after   time.Duration
		sent    string
	}{
		{"thinking", nil, func(*envoy) {}, 30 * time.Second, "1"},
		{"thinking, an impatient client", []string{"x-stainless-timeout", "10"}, func(*envoy) {}, 9500 * time.Millisecond, "1"},
		{"held", nil, func(e *envoy) { e.judge(e.replica, false, from(200, "text/event-stream")) }, 30 * time.Second, "1"},
		{"between attempts", nil, func(e *envoy) { e.judged(e.replica, from(529, "application/json"), overloadedBody) }, 30 * time.Second, "1"},
		{"at the second", nil, func(e *envoy) {
			e.judged(e.replica, from(529, "application/json"), overloadedBody)
			e.attempt(e.replica)
		}, 30 * time.Second, "2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, yaml, func(r *replica) {
				start := time.Now()
				e := r.post(streamBody, c.headers...)
				c.phase(e)
				m := e.plan.recv()
				if took := time.Since(start); took < c.after || took > c.after+250*time.Millisecond {
					t.Errorf("after %v, want %v", took, c.after)
				}
				wantRejection(t, m, 504, "timeout_error", "total")
				if got := setHeaders(m)[names.ClientAttempts]; got != c.sent {
					t.Errorf("attempts %s, want %s", got, c.sent)
				}
				if n := r.server.table.Bytes(); n != 0 {
					t.Errorf("%d bytes kept", n)
				}
				// An attempt that is asked for now gets the same answer.
				if got := e.attempt(r).GetImmediateResponse().GetStatus().GetCode(); got != 504 {
					t.Errorf("an attempt afterwards: %v", got)
				}
				e.plan.leave()
				pass(time.Second)
				if rec := r.record(); rec.Outcome != trail.OutcomeExhausted || rec.Status != 504 || rec.ServedBy != "" {
					t.Errorf("%+v", rec)
				}
			})
		})
	}
}

// After the commit the total does not count any more.
func TestPlanTotalIsDisarmed(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(plainBody)
		e.final(from(200, "application/json"))
		if !e.plan.silentFor(time.Hour) {
			t.Error("something was sent after the answer")
		}
		synctest.Wait()
	})
}

// Draining, the service plans nothing new and ends what runs.
func TestPlanDraining(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(plainBody)
		drained := make(chan error, 1)
		go func() { drained <- r.server.Drain(context.Background()) }()
		pass(time.Second)
		p := r.open(names.RolePlan, nil)
		p.requestHeaders(false, clientHeadersOf("/v1/messages"))
		if m := p.recv(); m != nil {
			t.Errorf("planned while draining: %v", m)
		}
		if m := e.judged(r, from(529, "application/json"), overloadedBody); !retries(m) {
			t.Errorf("no failover while draining: %v", m)
		}
		if m := e.attempt(r); setHeaders(m)[names.Target] != "crossdoor-target-b" {
			t.Errorf("attempt while draining: %v", m)
		}
		select {
		case <-drained:
			t.Error("drained while an exchange runs")
		default:
		}
		e.final(from(200, "application/json"))
		e.plan.leave()
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

// What was joined can go on elsewhere: draining does not wait for it.
func TestDrainWithJoined(t *testing.T) {
	inTwo(t, twoTargets, func(a, b *replica) {
		e := a.post(plainBody)
		e.judged(a, overloaded(), overloadedBody)
		e.attempt(b)
		start := time.Now()
		if err := b.server.Drain(context.Background()); err != nil || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if b.server.Inflight() != 0 || a.server.Inflight() != 1 {
			t.Errorf("in flight: %d and %d", a.server.Inflight(), b.server.Inflight())
		}
		e.served()
	})
}
