package test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// on is the value of a metric without labels at one replica.
func (s *service) on(name string) (float64, error) {
	all, err := s.samples()
	if err != nil {
		return 0, err
	}
	for _, m := range all {
		if m.name == name {
			return m.value, nil
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

// TestJoinedBodiesAreFreed: an attempt that lands on a replica which did not plan
// takes the body there as well. It is let go with the attempt, not with the
// exchange, which that replica may never hear of again.
func TestJoinedBodiesAreFreed(t *testing.T) {
	t.Parallel()
	const requests, pad = 16, 1 << 20
	e := start(t, options{replicas: 2, concurrency: "2"}, lane{name: "joined", targets: three("joined")})
	l := e.lane("joined")
	l.fakes[0].Always(entitlement)
	l.fakes[1].Always(entitlement)
	gate := make(chan struct{})
	l.fakes[2].Always(bigMessage("joined").Held(gate))
	var wg sync.WaitGroup
	for n := range requests {
		wg.Go(func() {
			a := l.send(call{pad: pad, stream: n%2 == 0, client: ownClient()})
			if a.status != 200 || a.header.Get("x-crossdoor-served-by") != "joined-c" {
				t.Errorf("got %s", describe(a, a.err))
			}
		})
	}
	l.at(2, requests)
	for i, s := range e.services {
		if n, err := s.on("crossdoor_join_miss_total"); err != nil || n == 0 {
			t.Errorf("replica %d joined %v exchanges (%v): the case shows nothing", i, n, err)
		}
	}
	// The last attempts run: their bodies are with whoever planned, once each.
	kept := float64(requests) * float64(len(goodBody("joined", false, pad)))
	if got, err := e.sum("body_bytes"); err != nil || got < kept || got > kept+requests*64 {
		t.Errorf("%v bytes of bodies while %d requests wait (%v), want %v", got, requests, err, kept)
	}
	close(gate)
	wg.Wait()
	e.metric(0, "inflight")
	for i, s := range e.services {
		for _, name := range []string{"crossdoor_body_bytes", "crossdoor_held_bytes", "crossdoor_held_streams", "crossdoor_inflight"} {
			eventually(t, 2*time.Second, fmt.Sprintf("%s of replica %d is 0", name, i), func() error {
				got, err := s.on(name)
				if err == nil && got != 0 {
					err = fmt.Errorf("%v", got)
				}
				return err
			})
		}
	}
	e.metric(requests, "requests_total", "route", "joined", "outcome", "failed_over")
}
