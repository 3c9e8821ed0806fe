package extproc

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// onResponse sees the final response headers: the answer of a platform goes on
// with the client's headers, anything else is replaced by an error in the
// client's schema.
func (p *planSession) onResponse() error {
	if p.deadline != nil {
		p.deadline.Stop()
	}
	code, _ := strconv.Atoi(headerOf(&p.req, ":status"))
	if p.x == nil {
		// Envoy answered before there was a plan: 413, 408, 400.
		return p.reject(envoyReply(code, p.policyOrCurrent().Limits.Body))
	}
	x := p.x
	x.mu.Lock()
	p.s.mergeState(x, p.req.Meta(names.MetaState))
	r := p.s.settle(x, &p.req, code, time.Now())
	extra := clientHeaders(x)
	x.status = code
	if r != nil {
		x.end.answered, x.status = r, r.status
	}
	// SDKs would send a request that failed everywhere twice more.
	if x.run != nil && x.run.Exhausted() && r == nil && x.passable > 0 && x.passable == x.servedBy {
		extra = append(extra, field{Name: "x-should-retry", Value: "false"})
	}
	var other *keptAnswer
	if k := x.translated; r == nil && k != nil && k.attempt == x.servedBy {
		other, x.status = k, k.status
	}
	x.letGo()
	x.mu.Unlock()
	if r != nil {
		return p.finish(r, extra)
	}
	return p.serve(extra, other)
}

// serve lets the answer go on with the client's headers, with the status and the
// body of other in place of its own where that is not nil. It stays the
// platform's answer: a final answer of ours may not have status 500 (envoy.md,
// rule 2).
func (p *planSession) serve(extra []field, other *keptAnswer) error {
	length := headerOf(&p.req, names.Length)
	p.send.Lock()
	defer p.send.Unlock()
	if p.answered {
		return nil
	}
	p.answered = true
	p.out.Reset()
	p.out.Kind, p.out.Set = wire.KindResponseHeaders, extra
	switch {
	case other != nil:
		p.out.Set = append(p.out.Set, field{Name: ":status", Value: strconv.Itoa(other.status)}, field{Name: "content-type", Value: typeJSON})
		p.out.Remove = append(p.out.Remove, names.Length)
		p.out.Replace, p.out.HasBody, p.out.Body = true, true, wire.NewBuffer(len(other.body))
		copy(p.out.Body.Bytes(), other.body)
	case length != "":
		// The judge's filter drops content-length; the body was not changed.
		p.out.Set = append(p.out.Set, field{Name: "content-length", Value: length})
		p.out.Remove = append(p.out.Remove, names.Length)
	}
	return p.stream.Send(&p.out)
}

// settle decides what the final response headers mean: nil when they go to the
// client. x.mu is held.
func (s *Server) settle(x *exchange, req *wire.Request, code int, now time.Time) *reply {
	if x.other != nil {
		return s.settleOther(x, req, code, now)
	}
	if x.run == nil {
		return envoyReply(code, x.policy.Limits.Body)
	}
	if x.end.answered != nil { // an attempt's own final answer comes by here
		return x.end.answered
	}
	local, judged := req.Header(names.Local)
	provider := judged && fromProvider(string(local))
	a := x.run.Last()
	switch {
	case a == nil:
		return serviceFailed()
	case string(local) == names.LocalService, !judged && code == http.StatusInternalServerError:
		// The attempt filter failed closed: the replica that it asked is gone. That
		// says nothing about the target. (Our own listener has made it a 503.)
		x.run.End(policy.OutcomeOf(config.KindClientGone, "service"), now)
		return serviceFailed()
	case a.Closed() && provider && x.passable == a.N:
		x.servedBy = a.N
		return nil
	case !a.Closed() && provider && a.N <= x.issued:
		// A plain 200, or an answer whose judge is gone: it is on its way.
		if code != http.StatusOK {
			s.unjudged(x, a, req, code, now)
			return nil
		}
		if err := x.run.Commit(a.N, now); err != nil {
			s.log.Error("commit", "id", x.id, "error", err)
		}
		a.Status, x.servedBy, x.committed = code, a.N, now
		x.seenRequestID(a, req)
		return nil
	}
	if !a.Closed() {
		// The held answer of the last attempt broke, or Envoy answered in its
		// place with nobody to judge.
		o := x.broken(a, string(local), code)
		if a.N > x.issued { // decided, but never sent
			o = policy.Outcome{Kind: config.KindClientGone}
		}
		s.fail(x, a, o, now)
	}
	return s.exhaustedReply(x, now)
}

// unjudged closes attempt a with an error answer that passed without a judge:
// the service was gone when it came. x.mu is held.
func (s *Server) unjudged(x *exchange, a *policy.Attempt, req *wire.Request, code int, now time.Time) {
	o := classify(policy.Answer{
		Status: code, Local: headerOf(req, names.Local), ContentType: headerOf(req, "content-type"),
		Header: func(name string) string { return headerOf(req, name) }, Platform: x.target(a).Platform, Original: x.original(a),
	}, now)
	if err := x.run.Concede(a.N, o, now); err != nil {
		s.log.Error("attempt failed", "id", x.id, "error", err)
	}
	x.servedBy, x.passable = a.N, a.N
	x.seenRequestID(a, req)
	if x.spec(a).Errors != platform.SchemaMessages {
		x.translated = untold(req, code).keptAs(a)
	}
}

// untold is an error answer whose body nobody read.
func untold(req *wire.Request, code int) *held {
	h := &held{answer: policy.Answer{Status: code}}
	for _, f := range req.Headers {
		h.headers = append(h.headers, field{Name: string(f.Name), Value: string(f.Value)})
	}
	return h
}

// fromProvider reads x-crossdoor-local (envoy.md, rule 10).
func fromProvider(local string) bool { return strings.HasPrefix(local, "-;via_upstream") }

// policyOrCurrent is the policy of the session; one that began before any was
// loaded has none.
func (p *planSession) policyOrCurrent() *config.Policy {
	if p.policy == nil {
		return p.s.policy.Load()
	}
	return p.policy
}
