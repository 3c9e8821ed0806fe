package test

import (
	"slices"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestPlatformSecond: every platform behind the first-party API, after an error
// answer and after a stream that begins with an error; and on attempt 3.
func TestPlatformSecond(t *testing.T) {
	busy := fakeplatform.Error(529, "Overloaded")
	event := fakeplatform.Stream(fakeplatform.StreamError("overloaded_error", "Overloaded"))
	first := firstParty.target()
	var flows []flow
	add := func(d door, chain string, q question, scripts ...[]fakeplatform.Answer) {
		f := flow{
			lane: doorLane(d.name, []target{first, d.target()}), call: q.call, scripts: scripts,
			status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", body: d.answer(q, 1), ends: endsOf(q, "b ok"),
		}
		if chain != "" {
			f.lane.name += "-aba"
			f.lane.route = doorLane(f.lane.name, nil).route
			f.lane.chain, f.attempts = chain, "b overloaded failover, a overloaded failover, b ok serve"
			f.body = d.answer(q, 2)
		}
		f.more = func(t testing.TB, l *laneRun, a *answer, r record) {
			l.checkFirst(t, q)
			reqs := l.fakes[1].Requests()
			for _, got := range reqs {
				d.checkSent(t, q, got)
			}
			if chain != "" && !sameAttempts(t, d, reqs) {
				t.Errorf("the third attempt differs from the first")
			}
			checkConverted(t, q, a)
			checkAccount(t, q, r)
		}
		flows = append(flows, f)
	}
	for _, d := range doors {
		for _, q := range questions {
			add(d, "", q, []fakeplatform.Answer{busy})
			add(d, "[@b, @a, @b]", q, []fakeplatform.Answer{busy}, []fakeplatform.Answer{d.busy()})
			if q.call.stream {
				add(d, "", q, []fakeplatform.Answer{event})
			}
		}
	}
	runDoors(t, options{}, flows...)
}

// busy is an overload as the platform says it.
func (d door) busy() fakeplatform.Answer {
	switch d.platform {
	case fakeplatform.Bedrock:
		return fakeplatform.BedrockError(503, "", "Bedrock is unable to process your request.")
	case fakeplatform.Vertex:
		return fakeplatform.GoogleError(503, "The service is currently unavailable.")
	}
	return fakeplatform.Error(529, "Overloaded")
}

// checkFirst: the first-party target got the client's very bytes, whichever
// attempt it was.
func (l *laneRun) checkFirst(t testing.TB, q question) {
	t.Helper()
	body := q.call.body
	if body == nil {
		body = goodBody(doorModel, q.call.stream, 0)
	}
	for _, got := range l.fakes[0].Requests() {
		if got.BodySHA256 != hash(body) {
			t.Errorf("the first-party target got %.300q", got.Body)
		}
	}
}

// sameAttempts compares two requests at one platform. Signatures are of their
// time.
func sameAttempts(t testing.TB, d door, reqs []fakeplatform.Request) bool {
	t.Helper()
	if len(reqs) != 2 {
		t.Errorf("%d requests", len(reqs))
		return false
	}
	a, b := reqs[0], reqs[1]
	if d.sigv4 {
		unsigned := func(r *fakeplatform.Request) {
			r.Header = slices.DeleteFunc(slices.Clone(r.Header), func(f fakeplatform.Field) bool { return f.Name == "x-amz-date" || f.Name == "authorization" })
		}
		unsigned(&a)
		unsigned(&b)
	}
	if diff := sameHeaders(a, b); diff != "" {
		t.Errorf("headers: %s", diff)
	}
	return a.BodySHA256 == b.BodySHA256 && a.Target == b.Target
}
