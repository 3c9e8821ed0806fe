package test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// bigMessage is larger than what a client's window takes unread (4 MiB) and
// smaller than what Envoy keeps for it (16 MiB): its attempt is over while the
// exchange is not.
func bigMessage(model string) fakeplatform.Answer {
	return fakeplatform.Message("m", model, strings.Repeat("late ", 2<<20))
}

// TestLateSuccess: the end of an exchange tells that its attempt was good. What
// failed before that attempt ended is undone by it; what failed after it, while
// the client still read, is not.
func TestLateSuccess(t *testing.T) {
	t.Parallel()
	// The service believes Envoy's clock for a second and a half only: a machine
	// that was too slow for that has shown nothing and gets another lane.
	const tries, believed = 3, time.Second
	var lanes []lane
	for i := range tries {
		lanes = append(lanes, lane{name: fmt.Sprintf("after-%d", i), targets: two()})
	}
	lanes = append(lanes, lane{name: "before", targets: two()})
	e := start(t, options{top: []string{"breaker: {failures: 2, window: 1m, max_window: 2m}"}}, lanes...)
	t.Run("failures after it stay", func(t *testing.T) {
		for i := range tries {
			l := e.lane(fmt.Sprintf("after-%d", i)).in(t)
			if took := lateSuccess(t, l); took < believed {
				failOnce(t, l, 3)
				l.state("model", 2)
				return
			}
		}
		t.Errorf("%d times more than %v passed between the end of an attempt and that of its exchange", tries, believed)
	})
	t.Run("failures before it are undone", func(t *testing.T) {
		l := e.lane("before").in(t)
		gate := make(chan struct{})
		l.fakes[0].Script(fakeplatform.Message("m", "before", "x").Held(gate))
		overlapping := l.later(call{})
		l.at(0, 1)
		failOnce(t, l, 1)
		close(gate)
		if a := <-overlapping; a.status != 200 {
			t.Fatal(describe(a, a.err))
		}
		l.nth(2)
		failOnce(t, l, 3)
		l.state("model", 0)
		failOnce(t, l, 4)
		l.state("model", 2)
	})
}

// lateSuccess has an answer of the first target end, one of its failures come
// after it, and the exchange of the former end last. It returns how much later
// that was than its attempt's end.
func lateSuccess(t *testing.T, l *laneRun) time.Duration {
	t.Helper()
	l.fakes[0].Script(bigMessage(l.name))
	resp, err := l.open(call{h2: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get("x-crossdoor-request-id")
	eventually(t, 5*time.Second, "the attempt is over", func() error {
		open, err := l.e.envoyStat("cluster.crossdoor-target-" + l.targetName(0) + ".upstream_rq_active")
		if err == nil && (open != 0 || l.fakes[0].Requests()[0].Ended.IsZero()) {
			err = errNotYet
		}
		return err
	})
	over := time.Now()
	failOnce(t, l, 1)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if r := l.byID(id); r.summary() != "a ok serve" || l.nth(2).ID != id {
		t.Fatalf("the success was not told last: %s", r.line)
	}
	return time.Since(over)
}

// failOnce has the first target fail a request, whose record is the n-th.
func failOnce(t *testing.T, l *laneRun, n int) {
	t.Helper()
	l.fakes[0].Script(fakeplatform.Error(529, "x"))
	if got := servedBy(l, call{}); got != "200 "+l.targetName(1) {
		t.Errorf("failure %d: %s", n, got)
	}
	l.nth(n)
}
