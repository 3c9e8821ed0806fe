package extproc

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
)

// planSession is one plan stream: a request from its headers to the end of its
// answer. It stays open for as long as Envoy keeps it, since its end is the
// end of the exchange.
type planSession struct {
	s           *Server
	stream      counted
	policy      *config.Policy
	client      clientRequest
	started     time.Time
	req         wire.Request
	expected    int64     // bytes of the body that were announced and have not come
	expectsBody bool      // the headers were let pass
	x           *exchange // nil until there is something to record

	send     sync.Mutex // one answer at a time; guards out and answered
	out      wire.Response
	answered bool // the final answer is out: nothing may be sent any more
	deadline *time.Timer
}

// plan serves the plan role.
func (s *Server) plan(stream counted) error {
	if s.draining.Load() {
		return status.Error(codes.Unavailable, "draining: no new request is planned")
	}
	s.sessions.Add(1)
	defer s.sessions.Add(-1)
	p := &planSession{s: s, stream: stream, policy: s.policy.Load(), started: time.Now()}
	defer p.over()
	for {
		if err := stream.Recv(&p.req); err != nil {
			return nil // EOF and Canceled are how Envoy ends a stream
		}
		if err := p.handle(); err != nil {
			return err
		}
	}
}

func (p *planSession) handle() error {
	switch p.req.Kind {
	case wire.KindRequestHeaders:
		return p.onHeaders()
	case wire.KindRequestBody:
		return p.onBody()
	case wire.KindResponseHeaders:
		return p.onResponse()
	}
	return p.pass()
}

// outOfTurn lets a message pass that does not fit what came before.
func (p *planSession) outOfTurn() error {
	p.s.log.Error("message out of turn", "role", names.RolePlan, "message", p.req.Kind.String())
	return p.pass()
}

// pass answers a message with nothing to change.
func (p *planSession) pass() error {
	p.send.Lock()
	defer p.send.Unlock()
	p.out.Reset()
	p.out.Kind = p.req.Kind
	return p.stream.Send(&p.out)
}

// finish sends a final answer of Crossdoor's own, unless one is out already.
func (p *planSession) finish(r *reply, extra []field) error {
	p.send.Lock()
	defer p.send.Unlock()
	if p.answered {
		return nil
	}
	p.answered = true
	r.immediate(&p.out, extra)
	return p.stream.Send(&p.out)
}

func (p *planSession) onHeaders() error {
	if p.x != nil || p.client.headers != nil {
		return p.outOfTurn()
	}
	p.client = readClient(&p.req)
	if o := p.policy.OtherPaths; o != nil && o.Allows(p.client.method, p.client.path) {
		return p.onOther(o.Target)
	}
	if r := p.refuse(); r != nil {
		return p.reject(r)
	}
	if p.req.EndOfStream {
		if p.client.barePath() == pathModels {
			return p.finish(p.s.modelList(p.policy), nil)
		}
		return p.reject(rejected(http.StatusBadRequest, typeInvalid, "The request has no body."))
	}
	p.announce(max(p.client.contentLength, 0))
	p.expectsBody = true
	return p.pass()
}

// announce says how much of the request's body is still to come.
func (p *planSession) announce(n int64) {
	if n != p.expected {
		p.s.table.expect(n - p.expected)
		p.expected = n
	}
}

// reject answers a request that never gets a plan and records it.
func (p *planSession) reject(r *reply) error {
	p.ensureExchange()
	p.x.mu.Lock()
	p.x.end.answered, p.x.status = r, r.status
	extra := clientHeaders(p.x)
	p.x.mu.Unlock()
	return p.finish(r, extra)
}

func (p *planSession) ensureExchange() {
	if p.x == nil {
		p.x = &exchange{
			id: newID(), node: p.s.node, policy: p.policyOrCurrent(), client: p.client, started: p.started,
			clientName: p.client.name(p.policyOrCurrent()),
			connection: connectionOf(p.stream.Context()),
		}
		p.s.table.add(p.x)
	}
}

// onBody plans the request and begins attempt 1.
func (p *planSession) onBody() error {
	if p.x != nil || p.client.headers == nil {
		return p.outOfTurn()
	}
	buf := p.req.TakeBody()
	x, r := p.prepare(buf)
	p.announce(0)
	if r != nil {
		return p.reject(r)
	}
	x.mu.Lock()
	now := time.Now()
	a, ok := x.run.Next(now)
	if !ok {
		r := p.s.nothingUsable(x, now)
		x.mu.Unlock()
		return p.reject(r)
	}
	p.deadline = time.AfterFunc(time.Until(x.run.Plan.Deadline), p.expire)
	var body []byte
	if x.unchanged(a) {
		body = x.body.buf.Bytes()
	}
	edits := p.s.attemptEdits(x, a, body)
	if body != nil {
		edits.put(names.Prepared, names.PreparedYes)
		x.issue(a, "1")
	}
	edits.put(names.ID, x.id)
	edits.put(names.Node, p.s.node)
	edits.put(names.EnvoyMaxRetries, strconv.Itoa(x.run.Plan.Route.MaxAttempts+passedTurns))
	edits.first(&p.client, p.client.unwanted(p.policy.ForwardedHeaders))
	meta := x.meta(a)
	x.mu.Unlock()

	p.send.Lock()
	defer p.send.Unlock()
	if p.answered { // the total timeout is over already
		return nil
	}
	p.out.Reset()
	p.out.Kind, p.out.Set, p.out.Remove, p.out.Meta = wire.KindRequestBody, edits.set, edits.remove, meta
	return p.stream.Send(&p.out)
}

// prepare reads the body and makes the exchange, which then owns buf, or says
// why there is none.
func (p *planSession) prepare(buf *wire.Buffer) (*exchange, *reply) {
	if buf == nil {
		buf = wire.NewBuffer(0)
	}
	limit := p.policy.Limits.Body
	if int64(len(buf.Bytes())) > limit {
		buf.Free()
		return nil, tooLarge(limit)
	}
	encoding := p.client.value("content-encoding")
	body, err := p.s.decode(buf, encoding, limit)
	switch {
	case errors.Is(err, errMemory):
		return nil, memoryFull()
	case err != nil:
		return nil, requestReply(err)
	}
	facts, err := rewrite.Inspect(body.buf.Bytes())
	if err != nil {
		body.free()
		return nil, requestReply(err)
	}
	route := p.policy.Route(facts.Model, p.client.get)
	var files *fileSet
	if route != nil {
		files = p.s.filesOf(p.stream.Context(), route, &facts)
	}
	p.ensureExchange()
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	p.x.facts, p.x.body, p.x.encoded, p.x.files = facts, body, body.decoded, files
	if route == nil {
		return nil, noRoute(p.policy)
	}
	p.x.run = p.s.newRun(p.x, route, time.Now())
	return p.x, nil
}

// newRun plans the request of x over a route. x.mu is held.
func (s *Server) newRun(x *exchange, route *config.Route, now time.Time) *policy.Exchange {
	plan := s.newPlan(x, route, now)
	return policy.NewExchange(plan, s.health, func(t *config.Target, key int) bool { return s.keyUsable(x, t, key) })
}

// newPlan makes the placements of x and the plan that follows from them. x.mu is
// held and the body is here.
func (s *Server) newPlan(x *exchange, route *config.Route, now time.Time) *policy.Plan {
	x.placements = make([]placement, len(route.Chain))
	return policy.NewPlan(route, policy.Request{
		Model:        x.facts.Model,
		Stream:       x.streams(),
		MaxTokens:    x.facts.MaxTokens,
		BodyBytes:    x.body.size,
		LargestImage: x.facts.LargestImage,
		Credential:   x.client.hasCredential(),
		Timeout:      x.client.timeout(),
		Fit: func(e *config.Entry, model, id string) policy.Fit {
			return s.fits(x, route.Chain, e, model, id)
		},
	}, s.rendered, now)
}

// keyUsable reports whether a key has a value for this request.
func (s *Server) keyUsable(x *exchange, t *config.Target, key int) bool {
	if t.Keys[key].Source == config.KeyPassthrough {
		return (x.client.hasCredential() || x.unseen()) && !x.foreignCredential
	}
	return s.has(t.Keys[key])
}

// requestReply turns a refusal of rewrite into the answer.
func requestReply(err error) *reply {
	if re := rewrite.AsRequestError(err); re != nil {
		return rejected(re.Status, re.Type, re.Message)
	}
	return rejected(http.StatusBadRequest, typeInvalid, "The request body could not be read.")
}

// expire ends the request when timeouts.total is over (envoy.md, rule 15).
func (p *planSession) expire() {
	x := p.x
	x.mu.Lock()
	if p.done() {
		x.mu.Unlock()
		return
	}
	now := time.Now()
	x.run.Abandon(config.KindTimeout, now)
	r := outOfTime()
	x.end.answered, x.status, x.servedBy = r, r.status, 0
	extra := clientHeaders(x)
	x.letGo()
	x.mu.Unlock()
	_ = p.finish(r, extra)
}

// done reports whether the final answer is on its way.
func (p *planSession) done() bool {
	p.send.Lock()
	defer p.send.Unlock()
	return p.answered
}

// over is the end of the plan stream.
func (p *planSession) over() {
	p.req.Release()
	p.announce(0)
	if p.x == nil && p.expectsBody {
		p.ensureExchange() // the client left before its body was here
	}
	if p.deadline != nil {
		p.deadline.Stop()
	}
	p.send.Lock()
	p.answered = true
	p.send.Unlock()
	if p.x != nil {
		p.s.planOver(p.x)
	}
}
