package extproc

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
)

func itoa(n int) string { return strconv.Itoa(n) }

// joinGrace is how long after its per-try timeout an attempt of another
// replica's exchange is still waited for.
const joinGrace = 5 * time.Second

// find returns the exchange that an attempt is asked for. One that this replica
// has not seen is rebuilt from the state that Envoy carries; askBody says that
// its body must come again. nil: the state is of no use.
func (s *Server) find(id string, req *wire.Request) (x *exchange, askBody bool) {
	x, ended := s.table.get(id)
	if x == nil && !ended {
		s.metrics.joinMiss.Inc()
		x = s.join(id, readClient(req), req.Meta(names.MetaNode), req.Meta(names.MetaState))
	}
	if x == nil {
		return nil, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.unseen() {
		x.client.sawAttempt(readClient(req).headers, x.client.own)
	}
	s.catchUp(x, req)
	return x, x.body == nil
}

// unseen: a judge joined it, so the client's headers are not known yet.
func (x *exchange) unseen() bool { return x.joined && x.client.headers == nil }

// catchUp takes over what other replicas did for x since this one last heard of
// it. x.mu is held.
func (s *Server) catchUp(x *exchange, req *wire.Request) {
	s.mergeState(x, req.Meta(names.MetaState))
	if x.joined {
		s.watchJoined(x)
	}
}

// findForJudge is find for a judge, which needs no body.
func (s *Server) findForJudge(req *wire.Request) *exchange {
	id := req.Meta(names.MetaID)
	x, ended := s.table.get(id)
	if x == nil && !ended && id != "" {
		s.metrics.joinMiss.Inc()
		x = s.join(id, clientRequest{}, req.Meta(names.MetaNode), req.Meta(names.MetaState))
	}
	if x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		s.catchUp(x, req)
	}
	return x
}

// join rebuilds an exchange from what another replica wrote.
func (s *Server) join(id string, client clientRequest, node, state string) *exchange {
	p, c := s.policy.Load(), readState(state)
	if c == nil {
		return nil
	}
	route := p.RouteNamed(c.Route)
	if route == nil {
		return nil
	}
	client.path = c.Path
	client.sawAttempt(client.headers, c.Headers)
	x := &exchange{
		id: id, node: node, policy: p, client: client, started: time.UnixMilli(c.Began), clientName: c.Client, joined: true, facts: c.facts(),
		foreignCredential: !passthroughOnly(route),
	}
	now := time.Now()
	plan := policy.NewPlan(route, policy.Request{
		Model: c.Model, Stream: c.Stream, MaxTokens: c.MaxTokens, BodyBytes: c.Size, LargestImage: c.Image,
		Credential: client.hasCredential(),
	}, s.rendered, now)
	plan.Start, plan.Deadline = time.UnixMilli(c.Start), time.UnixMilli(c.Deadline)
	usable := func(t *config.Target, key int) bool { return s.keyUsable(x, t, key) }
	x.run = policy.Resume(plan, s.health, usable, c.attempts(plan))
	x.takeOver(c)
	x = s.table.addIfNew(x)
	x.mu.Lock()
	defer x.mu.Unlock()
	s.watchJoined(x)
	return x
}

// passthroughOnly: every target of the route sends the client's own credential,
// so what stands in a later attempt's headers is that.
func passthroughOnly(r *config.Route) bool {
	for _, e := range r.Chain {
		if !e.Target.Passthrough() || len(e.Target.Keys) != 1 {
			return false
		}
	}
	return true
}

// watchJoined lets a joined exchange go when nothing was heard of it for as long
// as the attempt that runs may take: the replica that planned it learns its end,
// this one may not. x.mu is held.
func (s *Server) watchJoined(x *exchange) {
	if x.end.done {
		return
	}
	wait := joinGrace + max(0, time.Until(x.waitUntil))
	if x.run != nil {
		if a := x.run.Last(); a != nil {
			wait += x.run.Plan.Timeout(a.Place)
		}
	}
	if x.end.timer != nil {
		x.end.timer.Reset(wait)
		return
	}
	x.end.timer = time.AfterFunc(wait, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		s.dropJoined(x)
	})
}

// dropJoined forgets a joined exchange; whoever planned it writes the record. It
// leaves no tombstone: a message that comes after all joins it again. x.mu is
// held.
func (s *Server) dropJoined(x *exchange) {
	if x.end.done {
		return
	}
	x.end.done = true
	if x.end.timer != nil {
		x.end.timer.Stop()
	}
	x.letGo()
	if x.run != nil {
		x.run.End(policy.OutcomeOf(config.KindClientGone, "joined"), time.Now())
	}
	s.table.forget(x.id)
}

// joinWithBody asks Envoy for the request's body and reads it into x, or plans
// afresh when x is nil. The message in req is then the body.
func (s *Server) joinWithBody(stream counted, req *wire.Request, out *wire.Response, x *exchange) (*exchange, error) {
	id, client := headerOf(req, names.ID), readClient(req)
	out.Kind, out.AskBody = wire.KindRequestHeaders, true
	if err := stream.Send(out); err != nil {
		return nil, err
	}
	if err := stream.Recv(req); err != nil {
		return nil, nil //nolint:nilnil // the client left
	}
	buf := req.TakeBody()
	if buf == nil {
		return nil, status.Error(codes.InvalidArgument, "no body came where one was asked for")
	}
	p := s.policy.Load()
	if x == nil {
		x = s.table.addIfNew(&exchange{
			id: id, policy: p, client: client, started: time.Now(), joined: true, foreignCredential: true,
		})
	}
	err := s.adoptBody(stream.Context(), x, buf)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.end.done: // while the body was on its way
		x.letGo()
	case x.joined:
		s.watchJoined(x)
	}
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return x, nil
}

// adoptBody reads a body that came again into x, which then owns buf.
func (s *Server) adoptBody(ctx context.Context, x *exchange, buf *wire.Buffer) error {
	body, err := s.decode(buf, x.client.value("content-encoding"), x.policy.Limits.Body)
	if err != nil {
		return err
	}
	facts, err := rewrite.Inspect(body.buf.Bytes())
	if err != nil {
		body.free()
		return err
	}
	route := x.policy.Route(facts.Model, x.client.get)
	if x.run != nil {
		route = x.run.Plan.Route
	}
	if route == nil {
		body.free()
		return errNoRoute
	}
	files := s.filesOf(ctx, route, &facts)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.body != nil { // two attempts cannot run at once; a late one keeps the first
		body.free()
		return nil
	}
	x.facts, x.body, x.encoded, x.files = facts, body, true, files // it is always sent on: Envoy asked for one
	if x.run != nil {                                              // planned elsewhere: what the targets make of it is known only now
		x.run.Plan.Places = s.newPlan(x, route, time.Now()).Places
		return nil
	}
	x.run = s.newRun(x, route, time.Now())
	return nil
}
