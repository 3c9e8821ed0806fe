package test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestUnjudgedErrors: one of two replicas is gone when the platform's error
// comes. Where the other one judges it fails over, whoever planned. Where none
// does, the error passes to the client; whoever records the exchange calls it
// what it was. What the dead one planned may leave no record: Envoy drops
// entries that it cannot send, until it knows.
func TestUnjudgedErrors(t *testing.T) {
	t.Parallel()
	kinds := []unjudged{
		{"", fakeplatform.Error(529, "x"), "overloaded"},
		{"", fakeplatform.Error(500, "x"), "server_error"},
		{"", fakeplatform.Error(429, "x"), "rate_limit"},
	}
	// The first stream that a dead replica cuts tells Envoy. Whether a judge is
	// asked for before that is a race, so it is run until it was won.
	const rounds = 12
	var lanes []lane
	for n := range rounds {
		lanes = append(lanes, lane{name: fmt.Sprintf("round-%d", n), targets: two(), uncounted: true})
	}
	e := start(t, options{replicas: 2}, lanes...)
	passed := 0
	for n := 0; n < rounds && passed == 0; n++ {
		c := kinds[n%len(kinds)]
		c.lane = lanes[n].name
		passed = c.run(t, e.lane(c.lane))
		e.services[1].start()
		e.waitReady()
	}
	if passed == 0 {
		t.Error("every error found a judge: the case shows nothing")
	}
	e.metric(0, "inflight")
	e.metric(0, "body_bytes")
}

// unjudged is one round of TestUnjudgedErrors.
type unjudged struct {
	lane   string
	answer fakeplatform.Answer
	kind   string
}

// run kills a replica under a few requests, holds answers and records against
// each other, and returns how many errors passed that the other one planned.
func (c unjudged) run(t *testing.T, l *laneRun) (passed int) {
	t.Helper()
	const requests = 4
	gate := make(chan struct{})
	var waiting []<-chan *answer
	for n := range requests { // one after the other: both replicas plan
		l.fakes[0].Script(c.answer.Held(gate))
		waiting = append(waiting, l.later(call{client: ownClient()}))
		l.at(0, n+1)
	}
	l.e.services[1].proc.kill()
	close(gate)
	want := map[int]string{
		503:             "a " + c.kind + " failover: service_down", // judged by the living, sent on by the dead
		200:             "a " + c.kind + " failover, b ok serve: failed_over",
		c.answer.Status: "a " + c.kind + " stop: exhausted",
	}
	for _, w := range waiting {
		a := <-w
		if want[a.status] == "" {
			t.Errorf("%s: the client got %s", c.lane, describe(a, a.err))
		}
		if a.id() == "" {
			continue // planned by the dead one: nobody is left to say more
		}
		if a.status == c.answer.Status {
			passed++
		}
		if r := l.byID(a.id()); r.summary()+": "+r.Outcome != want[a.status] || r.Status != a.status {
			t.Errorf("%s: %d was recorded as %s", c.lane, a.status, r.line)
		}
		if got := a.header.Get("x-should-retry"); a.status != 200 && got != "false" {
			t.Errorf("%s: %d with x-should-retry %q", c.lane, a.status, got)
		}
	}
	for _, r := range l.records() {
		if !slices.Contains(slices.Collect(maps.Values(want)), r.summary()+": "+r.Outcome) {
			t.Errorf("%s: record %s", c.lane, r.line)
		}
	}
	return passed
}

// TestServiceIsBackInTime: the platform's error comes when there is a service
// again. It judges what it did not plan: the request fails over.
func TestServiceIsBackInTime(t *testing.T) {
	t.Parallel()
	e := start(t, options{}, lane{name: "back", targets: two()})
	l := e.lane("back")
	gate := make(chan struct{})
	l.fakes[0].Script(fakeplatform.Error(529, "x").Held(gate))
	waiting := l.later(call{})
	l.at(0, 1)
	e.service().proc.kill()
	e.service().start()
	e.waitReady()
	close(gate)
	if a := <-waiting; a.status != 200 || len(l.fakes[1].Requests()) != 1 {
		t.Errorf("the client got %s", describe(a, a.err))
	}
	if r := l.nth(1); r.summary() != "a overloaded failover, b ok serve" || r.Outcome != "failed_over" {
		t.Errorf("record %s", r.line)
	}
}
