package extproc

import (
	"net/http"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// otherCall is a request on a path that nothing plans, sent to the target of
// `other_paths` as it is: its body goes by unseen, nothing is tried again, and
// nothing that comes of it counts for the target's health, since another
// endpoint's limits say nothing about its models. The exchange's mu guards it.
type otherCall struct {
	target *config.Target
	key    int
	start  time.Time
	// headers is when the answer's came, status what it was; zero until then.
	headers time.Time
	status  int
	outcome policy.Outcome
	detail  detail
}

// onOther sends a request on. It answers the request's headers: there is no
// other message until the answer's.
func (p *planSession) onOther(t *config.Target) error {
	spec, _ := platform.Get(t.Platform)
	path, err := spec.Path(site(t), p.client.path, "", false)
	if err != nil {
		return p.reject(noSuchPath())
	}
	p.ensureExchange()
	x := p.x
	x.mu.Lock()
	key, ok := p.s.firstKey(x, t)
	if !ok {
		x.mu.Unlock()
		return p.reject(errorReply(529, typeOverloaded, "The target for this path has no credential for now.", outcomeExhausted))
	}
	x.other = &otherCall{target: t, key: key, start: time.Now()}
	edits := p.s.otherEdits(x, spec, path)
	x.mu.Unlock()
	p.send.Lock()
	defer p.send.Unlock()
	p.out.Reset()
	p.out.Kind, p.out.Set, p.out.Remove = wire.KindRequestHeaders, edits.set, edits.remove
	p.out.Meta = []field{{Name: names.MetaID, Value: x.id}, {Name: names.MetaNode, Value: x.node}} // for the access log
	return p.stream.Send(&p.out)
}

// firstKey is the first key of t that has a value. x.mu is held.
func (s *Server) firstKey(x *exchange, t *config.Target) (int, bool) {
	for i := range t.Keys {
		if s.keyUsable(x, t, i) {
			return i, true
		}
	}
	return 0, false
}

// otherEdits makes the client's headers those for the target. x.mu is held.
func (s *Server) otherEdits(x *exchange, spec *platform.Spec, path string) headerEdits {
	t := x.other.target
	call := platform.Call{
		Path: path, Authority: t.Endpoint.Authority(), Workspace: t.Workspace, Version: x.client.value("anthropic-version"),
		Betas: x.client.all("anthropic-beta"), UserProfile: x.client.value("anthropic-user-profile-id"),
		ContentType: x.client.value("content-type"), Accept: x.client.list("accept"),
	}
	s.authenticate(&call, t, t.Keys[x.other.key], &x.client)
	var edits headerEdits
	for _, h := range spec.Headers(call) {
		edits.put(h.Name, h.Value)
	}
	edits.forward(x, t)
	edits.put(names.Target, names.TargetCluster(t.Name))
	edits.put(names.Prepared, names.PreparedYes)
	edits.put(names.ID, x.id)
	edits.put(names.Node, s.node)
	edits.first(&x.client, x.client.unwanted(x.policy.ForwardedHeaders))
	return edits
}

// settleOther decides what the answer's headers mean: nil when they go to the
// client. x.mu is held.
func (s *Server) settleOther(x *exchange, req *wire.Request, code int, now time.Time) *reply {
	o := x.other
	local := headerOf(req, names.Local)
	answer := policy.Answer{
		Status: code, Local: local, ContentType: headerOf(req, "content-type"), Platform: o.target.Platform, Original: true,
		Header: func(name string) string { return headerOf(req, name) },
	}
	if fromProvider(local) {
		o.headers, o.status, o.detail.requestID = now, code, requestIDOf(req)
		o.outcome = policy.OutcomeOf(config.KindOK, "")
		if code >= http.StatusBadRequest {
			o.outcome = classify(answer, now)
		}
		return nil
	}
	o.outcome = classify(answer, now)
	o.detail.message = o.outcome.Reason
	if local == "" {
		return serviceFailed()
	}
	if o.outcome.Kind == config.KindTimeout {
		return errorReply(http.StatusGatewayTimeout, typeTimeout, "The target for this path did not answer in time.", outcomeExhausted)
	}
	return errorReply(529, typeOverloaded, "The target for this path could not be reached.", outcomeExhausted)
}

// clientHeaders is what the client is told. x.mu is held.
func (o *otherCall) clientHeaders(x *exchange) []field {
	out := []field{{Name: names.ClientRequestID, Value: x.id}}
	if o.status != 0 {
		out = append(out, field{Name: names.ClientServedBy, Value: o.target.Name})
	}
	return append(out, field{Name: names.ClientAttempts, Value: "1"})
}

// ended is how the exchange ended, by what the access log says of it. x.mu is
// held.
func (o *otherCall) ended(x *exchange) string {
	e := x.end.exchange
	switch {
	case x.end.answered != nil:
		return x.end.answered.outcome
	case o.status == 0, e == nil, e.flags.downstreamGone:
		return trail.OutcomeClientGone
	case e.flags.upstreamBroke, e.flags.idle:
		o.outcome = policy.OutcomeOf(config.KindTruncated, "cut")
		return trail.OutcomeStreamFailed
	case o.status >= http.StatusBadRequest:
		return trail.OutcomeStopped
	}
	return trail.OutcomeServed
}

// record adds the call to the record of its exchange. x.mu is held.
func (o *otherCall) record(x *exchange, r *trail.Record, over time.Time) {
	key := keyPlace(o.target, o.key)
	r.Plan = []trail.Planned{{Target: o.target.Name, Key: key}}
	at := trail.Attempt{
		N: 1, Target: o.target.Name, Key: key, Host: o.target.Endpoint.Authority(), StartMS: o.start.Sub(x.started).Milliseconds(),
		MS: over.Sub(o.start).Milliseconds(), Status: o.status, Outcome: string(o.outcome.Kind), UpstreamRequestID: o.detail.requestID,
		Decision: string(policy.VerbStop), Error: o.detail.message,
	}
	if at.Outcome == "" {
		at.Outcome = string(config.KindClientGone)
	}
	if o.status != 0 {
		r.ServedBy, r.RequestID = o.target.Name, o.detail.requestID
		ms := o.headers.Sub(x.started).Milliseconds()
		r.CommittedMS, at.Decision = &ms, string(policy.VerbServe)
	}
	r.Attempts, r.Tier = []trail.Attempt{at}, trail.TierSingleTarget
}

// noSuchPath is the answer on a path that nothing serves; it leaves no record.
func noSuchPath() *reply {
	r := rejected(http.StatusNotFound, typeNotFound, "This path is not served here.")
	r.outcome = ""
	return r
}
