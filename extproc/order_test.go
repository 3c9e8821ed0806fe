package extproc

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// step is one thing that a peer may do on a stream, in order or out of it.
type step struct {
	name string
	do   func(p *filter, e *envoy)
}

func steps() []step {
	trailers := func(m *extprocv3.ProcessingRequest) func(*filter, *envoy) {
		return func(p *filter, _ *envoy) { p.send(m) }
	}
	return []step{
		{"request headers", func(p *filter, e *envoy) { p.requestHeaders(false, e.headers) }},
		{"request headers, end", func(p *filter, e *envoy) { p.requestHeaders(true, e.headers) }},
		{"request headers, none", func(p *filter, _ *envoy) { p.requestHeaders(false, nil) }},
		{"request body", func(p *filter, _ *envoy) { p.requestBody(streamBody) }},
		{"request body, garbage", func(p *filter, _ *envoy) { p.requestBody("\xff{") }},
		{"request body, empty", func(p *filter, _ *envoy) { p.requestBody("") }},
		{"request body, no route", func(p *filter, _ *envoy) { p.requestBody(`{"model":"gpt-5"}`) }},
		{"response headers 200", func(p *filter, _ *envoy) { p.responseHeaders(false, from(200, "application/json")) }},
		{"response headers 200, stream", func(p *filter, _ *envoy) { p.responseHeaders(false, from(200, eventStream)) }},
		{"response headers 529", func(p *filter, _ *envoy) { p.responseHeaders(false, overloaded()) }},
		{"response headers, local", func(p *filter, _ *envoy) { p.responseHeaders(true, local(503, "UF;refused")) }},
		{"response headers, none", func(p *filter, _ *envoy) { p.responseHeaders(false, nil) }},
		{"response body", func(p *filter, _ *envoy) { p.responseBody(startEvent, false) }},
		{"response body, content", func(p *filter, _ *envoy) { p.responseBody(deltaEvent, false) }},
		{"response body, end", func(p *filter, _ *envoy) { p.responseBody(overloadedBody, true) }},
		{"request trailers", trailers(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{}})},
		{"response trailers", trailers(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}}})},
		{"nothing", trailers(&extprocv3.ProcessingRequest{})},
	}
}

var roles = []string{names.RolePlan, names.RoleAttempt, names.RoleJudge}

// Every message as the first one, and as the second one after every other, in
// every role, beside an exchange that runs: no panic, and nothing is left.
func TestOrder(t *testing.T) {
	for _, role := range roles {
		for _, first := range steps() {
			t.Run(role+", "+first.name, func(t *testing.T) {
				inWorld(t, twoTargets+"breaker: {failures: 1000}\n", func(r *replica) {
					for _, second := range steps() {
						e := r.post(streamBody)
						p := r.open(role, maps.Clone(e.meta))
						request := &envoy{headers: maps.Clone(e.headers)}
						first.do(p, request)
						synctest.Wait()
						second.do(p, request)
						p.leave()
						e.plan.leave()
					}
				})
			})
		}
	}
}

// On the plan's own stream a message out of turn is let pass: the request goes on
// as it was.
func TestOrderOnThePlan(t *testing.T) {
	const once = "a second one is let pass"
	cases := []struct {
		name string
		send func(p *filter, e *envoy)
	}{
		{"body before the headers", func(p *filter, _ *envoy) { p.requestBody(plainBody) }},
		{"trailers before the headers", func(p *filter, _ *envoy) {
			p.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{}})
		}},
		{once + ": headers", func(p *filter, e *envoy) {
			p.requestHeaders(false, e.headers)
			p.recv()
			p.requestHeaders(false, e.headers)
		}},
		{once + ": body", func(p *filter, e *envoy) {
			p.requestHeaders(false, e.headers)
			p.recv()
			p.requestBody(plainBody)
			p.recv()
			p.requestBody(plainBody)
		}},
		{"headers after the body", func(p *filter, e *envoy) {
			p.requestHeaders(false, e.headers)
			p.recv()
			p.requestBody(plainBody)
			p.recv()
			p.requestHeaders(false, e.headers)
		}},
		{"a response's body", func(p *filter, e *envoy) {
			p.requestHeaders(false, e.headers)
			p.recv()
			p.responseBody("x", true)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, withLimit(twoTargets), func(r *replica) {
				p := r.open(names.RolePlan, nil)
				c.send(p, &envoy{headers: clientHeadersOf("/v1/messages")})
				m := p.recv()
				if m == nil || m.GetImmediateResponse() != nil || len(setHeaders(m))+len(removedHeaders(m))+len(metaOf(m)) != 0 {
					t.Errorf("not neutral: %v", m)
				}
				p.leave()
			})
		})
	}
}

// withLimit gives the targets one slot each, so that one left taken is seen.
func withLimit(yaml string) string {
	return strings.ReplaceAll(yaml, "plaintext: true", "plaintext: true, max_concurrency: 1")
}

// A message in which Envoy sent none of the phases cannot be answered: the
// stream fails, which the filter is made to fail open for.
func TestOrderNoPhase(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		p := r.open(names.RolePlan, nil)
		p.send(&extprocv3.ProcessingRequest{})
		if m, err := p.stream.Recv(); err == nil {
			t.Errorf("answered with %v", m)
		}
		p.leave()
	})
}

func TestOrderUnknownRole(t *testing.T) {
	for _, role := range []string{"", "plan ", "Judge", "other"} {
		t.Run(role, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				p := r.open(role, nil)
				p.requestHeaders(false, clientHeadersOf("/v1/messages"))
				if _, err := p.stream.Recv(); status.Code(err) != codes.InvalidArgument {
					t.Errorf("got %v", err)
				}
				p.leave()
			})
		})
	}
}

// An attempt or a judge of a request that never got a plan has none to go on
// with.
func TestOrderOfARejectedRequest(t *testing.T) {
	for _, body := range []string{`{"model":"gpt-5"}`, `{`} {
		for _, role := range []string{names.RoleAttempt, names.RoleJudge} {
			t.Run(role+" "+body, func(t *testing.T) {
				inWorld(t, twoTargets, func(r *replica) {
					e, m := r.ask(body)
					id := setHeaders(m)[names.ClientRequestID]
					p := r.open(role, map[string]string{names.MetaID: id, names.MetaAttempt: "1"})
					headers := clientHeadersOf("/v1/messages", names.ID, id)
					if role == names.RoleJudge {
						p.responseHeaders(true, overloaded())
					} else {
						p.requestHeaders(false, headers)
					}
					if m := p.recv(); m.GetModeOverride() != nil {
						p.requestBody(body)
						p.recv()
					}
					p.leave()
					e.plan.leave()
					if n := len(r.records()); n != 1 {
						t.Errorf("%d records, want one", n)
					}
				})
			})
		}
	}
}

// session drives streams of all roles with whatever the bytes say.
type session struct {
	*replica

	e       *envoy
	streams map[string]*filter
	over    time.Time // when the exchange may have ended

	mu   sync.Mutex
	meta map[string]string
}

func (s *session) stream(role string) *filter {
	if p := s.streams[role]; p != nil {
		return p
	}
	s.mu.Lock()
	meta := maps.Clone(s.meta)
	s.mu.Unlock()
	p := s.open(role, meta)
	s.streams[role] = p
	go func() {
		for m := p.recv(); m != nil; m = p.recv() {
			s.mu.Lock()
			s.e.apply(m)
			maps.Copy(s.meta, metaOf(m))
			s.mu.Unlock()
		}
	}()
	return p
}

func (s *session) run(data []byte) {
	all := steps()
	for _, b := range data {
		role, what := roles[int(b>>6)%3], int(b&63)
		switch {
		case what < len(all):
			p := s.stream(role)
			s.mu.Lock()
			e := &envoy{headers: maps.Clone(s.e.headers)}
			s.mu.Unlock()
			all[what].do(p, e)
		case what < 24 && s.streams[role] != nil:
			s.streams[role].leave()
			delete(s.streams, role)
			s.mayEnd()
		case what < 24, !s.over.IsZero() && time.Since(s.over) > tombstoneFor/2 && what < 32:
			// An entry that comes later than any does would end the exchange again.
		case what < 28:
			s.mayEnd()
			s.log(names.LogExchange, b)
		case what < 32:
			s.log(names.LogAttempt, b)
		case what < 40:
			pass(time.Duration(what) * 100 * time.Millisecond)
		case what < 44:
			pass(time.Minute)
		}
		synctest.Wait()
	}
	for _, p := range s.streams {
		p.leave()
	}
}

func (s *session) mayEnd() {
	if s.over.IsZero() {
		s.over = time.Now()
	}
}

func (s *session) log(name string, b byte) {
	s.mu.Lock()
	e := &envoy{replica: s.replica, headers: maps.Clone(s.e.headers), meta: maps.Clone(s.meta), count: int(b & 3)}
	s.mu.Unlock()
	e.log(s.replica, name, ended{flag: []string{"", "DC", "SI", "UPE"}[b&3], tail: []string{"", stopEvents}[b>>7]})
}

// FuzzSession: no sequence of messages panics, hangs or leaves anything behind.
func FuzzSession(f *testing.F) {
	const plan, attempt, judge = 0, 1 << 6, 2 << 6
	f.Add([]byte{plan, plan | 3, plan | 7, 24, 28})
	f.Add([]byte{plan, plan | 3, judge | 9, judge | 14, attempt, plan | 7, 20, 24, 28})
	f.Add([]byte{plan, plan | 3, judge | 8, judge | 12, 40, judge | 13, plan | 8})
	f.Add([]byte{plan, plan | 3, plan | 3, attempt, attempt | 3, judge | 10, attempt, attempt})
	f.Add([]byte{plan | 3, plan, plan | 1, plan | 2, attempt | 3, judge | 3})
	f.Add([]byte{attempt, attempt | 3, attempt, judge | 7, 24, 28})
	f.Add([]byte{plan, plan | 3, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, attempt, plan | 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		inWorld(t, withLimit(twoTargets), func(r *replica) {
			s := &session{replica: r, streams: map[string]*filter{}, meta: map[string]string{}}
			s.e = &envoy{replica: r, headers: clientHeadersOf("/v1/messages"), meta: map[string]string{}}
			s.run(data[:min(len(data), 64)])
			pass(time.Second)
			seen := map[string]bool{}
			for _, rec := range r.records() {
				if seen[rec.ID] {
					t.Errorf("two records of %s", rec.ID)
				}
				seen[rec.ID] = true
			}
		})
	})
}
