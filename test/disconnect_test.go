package test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// goroutines is the service's own count.
func (e *env) goroutines() (float64, error) {
	all, err := e.service().samples()
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.name == "go_goroutines" {
			return s.value, nil
		}
	}
	return 0, errors.New("the service has no metric go_goroutines")
}

// TestClientLeaves in each phase: everything is freed, nobody is blamed.
func TestClientLeaves(t *testing.T) {
	waits := []string{"same_target_retries: 1", "actions: {rate_limit: retry}"}
	silent := fakeplatform.Silence()
	held := fakeplatform.Stream(startEvent, ping).Ending(fakeplatform.EndStall)
	committed := fakeplatform.Stream(startEvent, deltaEvent).Ending(fakeplatform.EndStall)
	limited := fakeplatform.Error(429, "x", fakeplatform.Field{Name: "retry-after", Value: "50"})
	cases := []struct {
		name    string
		call    call
		route   []string
		scripts [][]fakeplatform.Answer
		target  int  // the one that is asked last
		reads   bool // the client has its headers before it leaves
	}{
		{"thinking", call{}, nil, [][]fakeplatform.Answer{{silent}}, 0, false},
		{"thinking-sse", call{stream: true}, nil, [][]fakeplatform.Answer{{silent}}, 0, false},
		{"thinking-1mb", call{pad: 1 << 20}, nil, [][]fakeplatform.Answer{{silent}}, 0, false},
		{"second-attempt", call{}, nil, [][]fakeplatform.Answer{{entitlement}, {silent}}, 1, false},
		{"held", call{stream: true}, nil, [][]fakeplatform.Answer{{held}}, 0, false},
		{"held-second", call{stream: true}, nil, [][]fakeplatform.Answer{{entitlement}, {held}}, 1, false},
		{"waiting", call{}, waits, [][]fakeplatform.Answer{{limited}}, 0, false},
		{"committed", call{stream: true}, nil, [][]fakeplatform.Answer{{committed}}, 0, true},
	}
	var lanes []lane
	for _, c := range cases {
		lanes = append(lanes, lane{name: c.name, targets: two(), route: c.route})
	}
	lanes = append(lanes, lane{name: "warm", targets: two()}, lane{name: "upload", targets: two(), uncounted: true})
	e := start(t, options{}, lanes...)
	for range 3 {
		servedBy(e.lane("warm"), call{})
		servedBy(e.lane("warm"), call{stream: true})
	}
	e.metric(0, "inflight")
	before, err := e.goroutines()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			shared := e.lane(c.name)
			l := shared.in(t)
			for i, s := range c.scripts {
				l.fakes[i].Script(s...)
			}
			leave(t, l, c.call, c.target, c.reads)
			checkGone(t, l, c.target)
		})
	}
	t.Run("upload", func(t *testing.T) { leaveUploading(t, e) })
	e.metric(0, "inflight")
	e.metric(0, "held_streams")
	e.metric(0, "held_bytes")
	eventually(t, 10*time.Second, "no goroutine is left", func() error {
		now, err := e.goroutines()
		if err == nil && now > before+2 {
			err = fmt.Errorf("%v goroutines, %v before", now, before)
		}
		return err
	})
}

func leave(t *testing.T, l *laneRun, c call, target int, reads bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.ctx, c.client = ctx, ownClient()
	done := make(chan error, 1)
	read := make(chan struct{})
	go func() {
		resp, err := l.open(c)
		if err == nil {
			defer resp.Body.Close()
			_, err = io.ReadFull(resp.Body, make([]byte, len(startEvent)))
			close(read)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
		}
		done <- err
	}()
	l.at(target, 1)
	if reads {
		<-read
	} else {
		eventually(t, time.Second, "it is under way", func() error {
			r := l.fakes[target].Requests()[0]
			if r.Answer == "" {
				return errNotYet
			}
			return nil
		})
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("an answer came before the client left")
	}
}

func checkGone(t *testing.T, l *laneRun, target int) {
	t.Helper()
	r := l.nth(1)
	if r.Outcome != "client_gone" {
		t.Errorf("outcome %q: %s", r.Outcome, r.line)
	}
	l.e.metric(1, "requests_total", "route", l.name, "outcome", "client_gone")
	for _, scope := range []string{"target", "model"} {
		if state, err := l.e.breaker(scope, l.targetName(target)); err != nil || state > 0 {
			t.Errorf("breaker %s: %v (%v)", scope, state, err)
		}
	}
	if l.name == "waiting" {
		return // the platform had answered
	}
	eventually(t, 2*time.Second, "the platform sees it", func() error {
		if req := l.fakes[target].Requests()[0]; req.Gone.IsZero() {
			return errNotYet
		}
		return nil
	})
}

// leaveUploading: a client that leaves in the middle of its body has no route
// yet, and all the same one record.
func leaveUploading(t *testing.T, e *env) {
	const head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
	for _, c := range []struct{ name, upload string }{
		{"with a length", head + "content-length: 100000\r\n\r\n{\"model\":\"upload\","},
		{"chunked", head + "transfer-encoding: chunked\r\n\r\n12\r\n{\"model\":\"upload\",\r\n"},
		{"1 MiB of it", head + "content-length: 2000000\r\n\r\n{\"model\":\"upload\",\"messages\":\"" + strings.Repeat("x", 1<<20)},
		{"nothing of it", head + "content-length: 100\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(readTrail(e.service().trail))
			heard := func() float64 { // messages that plans have had
				n, err := e.sum("grpc_messages_total", "role", "plan")
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			said := heard()
			c1, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", e.listen))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c1, c.upload); err != nil {
				t.Fatal(err)
			}
			if err := poll(2*time.Second, func() error {
				if heard() == said { // one that the service has not heard of leaves no record
					return errNotYet
				}
				return nil
			}); err != nil {
				t.Errorf("the upload is not under way: %v", err)
			}
			if err := c1.Close(); err != nil {
				t.Fatal(err)
			}
			var all []record
			eventually(t, 2*time.Second, "it has a record", func() error {
				if all = readTrail(e.service().trail)[before:]; len(all) == 0 {
					return errNotYet
				}
				return nil
			})
			r := all[0]
			if len(all) != 1 || r.Outcome != "client_gone" || r.Route != "" || len(r.Attempts) != 0 || len(r.Plan) != 0 || r.Status != 0 || !ulidForm.MatchString(r.ID) {
				t.Errorf("%d records, the first is %s", len(all), r.line)
			}
			e.metric(0, "inflight")
			e.metric(0, "body_bytes")
		})
	}
	e.metric(4, "requests_total", "route", "other", "outcome", "client_gone")
	if n := len(e.lane("upload").fakes[0].Requests()); n != 0 {
		t.Errorf("%d requests reached the platform", n)
	}
}

// TestQuietConnection: a request is held for 40 s while nothing else happens.
func TestQuietConnection(t *testing.T) {
	t.Parallel()
	late := 40 * time.Second
	thinking := flow{
		lane: lane{name: "thinking", route: []string{"timeouts: {attempt: 80s, first_token: 80s, hold: 60s}"}}, scripts: [][]fakeplatform.Answer{{fakeplatform.Message("m", "m", "x").After(late)}},
		status: 200, served: "a", outcome: "served", attempts: "a ok serve", min: late, max: late + 2*time.Second,
	}
	held := thinking
	held.lane.name, held.call.stream = "held", true
	held.scripts = [][]fakeplatform.Answer{{fakeplatform.StreamOf(fakeplatform.Part{Data: startEvent}, fakeplatform.Part{Wait: late, Data: fakeplatform.StreamError("overloaded_error", "x")})}}
	held.served, held.outcome, held.attempts = "b", "failed_over", "a overloaded failover, b ok serve"
	waiting := thinking
	waiting.lane = lane{name: "waiting", route: []string{"same_target_retries: 1", "actions: {rate_limit: retry}"}}
	waiting.scripts = [][]fakeplatform.Answer{{fakeplatform.Error(429, "x", fakeplatform.Field{Name: "retry-after", Value: "40"})}}
	waiting.attempts = "a rate_limit retry, a ok serve"
	runFlows(t, options{}, thinking, held, waiting)
}
