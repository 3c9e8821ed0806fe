package test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// levels are what must come back to where it was, of one replica.
type levels struct{ goroutines, files float64 }

func (s *service) levels() (levels, error) {
	goroutines, err := s.on("go_goroutines")
	if err != nil {
		return levels{}, err
	}
	files, err := s.on("process_open_fds")
	return levels{goroutines, files}, err
}

// settled waits until nothing runs, and until two looks see the same levels.
func (s *service) settled(t testing.TB) levels {
	t.Helper()
	var last levels
	eventually(t, 10*time.Second, "nothing runs", func() error {
		for _, name := range []string{"crossdoor_inflight", "crossdoor_held_streams", "crossdoor_held_bytes", "crossdoor_body_bytes"} {
			if n, err := s.on(name); err != nil || n != 0 {
				return fmt.Errorf("%s is %v (%v)", name, n, err)
			}
		}
		now, err := s.levels()
		if err == nil && now != last {
			last, err = now, errNotYet
		}
		return err
	})
	return last
}

// TestNothingIsLeft after a load of everything at once: failures of every kind,
// streams that are held, cut, stalled, clients that leave in every phase, bodies
// that two replicas had.
func TestNothingIsLeft(t *testing.T) {
	const clients, load = 12, 8 * time.Second
	e := start(t, options{replicas: 2, concurrency: "2", top: []string{"breaker: {failures: 1000, window: 100ms, max_window: 100ms, long_window: 100ms}"}},
		lane{name: "mixed", targets: three("mixed"), uncounted: true, route: []string{
			"same_target_retries: 1", "actions: {server_error: retry}", "backoff: {base: 20ms, max: 50ms}",
			"timeouts: {attempt: 600ms, first_token: 600ms, hold: 300ms, idle: 1s, total: 3s}",
		}})
	l := e.lane("mixed")
	// The connections that Envoy keeps are made before anything is counted.
	m := mixedLoad{l: l}
	m.run(t, clients, time.Second)
	var before []levels
	for _, s := range e.services {
		before = append(before, s.settled(t))
	}
	for _, f := range l.fakes {
		f.Respond(mixed)
	}
	m.run(t, clients, load)
	t.Logf("%d served, %d not, %d left", m.served.Load(), m.failed.Load(), m.left.Load())
	if m.served.Load() < 50 || m.failed.Load() < 5 || m.left.Load() < 50 {
		t.Errorf("%d served, %d not, %d left by their clients: the load shows nothing", m.served.Load(), m.failed.Load(), m.left.Load())
	}
	for i, s := range e.services {
		if n, err := s.on("crossdoor_join_miss_total"); err != nil || n == 0 {
			t.Errorf("replica %d joined nothing (%v, %v)", i, n, err)
		}
		// A connection of Envoy's more or less has three goroutines and a file; a
		// leak has hundreds.
		eventually(t, 10*time.Second, "goroutines and files are back", func() error {
			after := s.settled(t)
			if after.goroutines > before[i].goroutines+12 || after.files > before[i].files+4 {
				return fmt.Errorf("replica %d: %+v, before %+v", i, after, before[i])
			}
			return nil
		})
	}
	for _, name := range []string{"http.llm.downstream_rq_active", "http.crossdoor_dispatch.downstream_rq_active", "cluster.crossdoor.upstream_rq_active"} {
		eventually(t, 5*time.Second, name+" is 0", func() error {
			n, err := e.envoyStat(name)
			if err == nil && n != 0 {
				err = fmt.Errorf("%d", n)
			}
			return err
		})
	}
}

// mixed is a platform's afternoon: half of what it answers is good.
func mixed(r fakeplatform.Request) fakeplatform.Answer {
	whole := append([][]byte{startEvent, ping}, wholeTail...)
	bad := []fakeplatform.Answer{
		fakeplatform.Error(529, "x"), fakeplatform.Error(500, "x"), entitlement, fakeplatform.HTML(502),
		fakeplatform.ResetBeforeHeaders(), fakeplatform.CloseBeforeHeaders(), fakeplatform.Silence(),
		fakeplatform.Stream(startEvent, ping).Ending(fakeplatform.EndStall),
		fakeplatform.Stream(startEvent, fakeplatform.StreamError("overloaded_error", "x")),
		fakeplatform.Stream(whole[:len(whole)-2]...).Ending(fakeplatform.EndReset),
		fakeplatform.Stream(whole[:len(whole)-2]...).Ending(fakeplatform.EndStall),
		fakeplatform.Message("m", r.Model, "cut").Ending(fakeplatform.EndClose),
	}
	if n := rand.IntN(2 * len(bad)); n < len(bad) {
		return bad[n]
	}
	return fakeplatform.Good(fakeplatform.Anthropic, r.Model, r.Stream)
}

// mixedLoad counts how its requests ended.
type mixedLoad struct {
	l                    *laneRun
	served, failed, left atomic.Int64
}

func (m *mixedLoad) run(t *testing.T, clients int, load time.Duration) {
	t.Helper()
	end := time.Now().Add(load)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for time.Now().Before(end) {
				m.one()
			}
		})
	}
	wg.Wait()
}

// one is a request: of any size, read to its end or left at any moment.
func (m *mixedLoad) one() {
	c := call{stream: rand.IntN(2) == 0, h2: rand.IntN(3) == 0, chunked: rand.IntN(4) == 0, pad: []int{0, 100, 10 << 10, 500 << 10}[rand.IntN(4)]}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	switch rand.IntN(8) {
	case 0, 1, 2:
		left, leave := context.WithTimeout(ctx, time.Duration(rand.IntN(500))*time.Millisecond)
		defer leave()
		c.ctx = left
	case 3:
		m.upload()
		return
	default:
		c.ctx = ctx
	}
	a, err := m.l.try(c)
	switch {
	case err != nil && c.ctx == ctx:
		m.l.e.t.Errorf("no answer: %v", err)
	case err != nil, a.err != nil && c.ctx != ctx:
		m.left.Add(1)
	case a.status == 200 && a.err == nil:
		m.served.Add(1)
	default:
		m.failed.Add(1)
	}
}

// upload leaves in the middle of its body.
func (m *mixedLoad) upload() {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.l.e.listen))
	if err != nil {
		m.l.e.t.Error(err)
		return
	}
	_, _ = io.WriteString(c, "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{\"model\":\"mixed\",") // it leaves all the same
	_ = c.Close()                                                                                                            // as above
	m.left.Add(1)
}
