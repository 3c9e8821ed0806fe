package extproc

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// passedTurns is how many retries Envoy may make beyond the attempts: a turn
// that is passed uses one up (envoy.md, rule 12). The service counts attempts.
const passedTurns = 8

// headerEdits are the headers to set and to remove, as an answer carries them.
type headerEdits struct {
	set    []field
	remove []string
}

func (e *headerEdits) put(name, value string) {
	if value == "" {
		e.remove = append(e.remove, name)
		return
	}
	e.set = append(e.set, field{Name: name, Value: value})
}

// first makes the edits those of a request's first attempt: the client's
// headers that no platform may see go, and what would change nothing about the
// others is left out, since each edit costs Envoy.
func (e *headerEdits) first(c *clientRequest, unwanted []string) {
	e.set = slices.DeleteFunc(e.set, func(f field) bool {
		return c.count(f.Name) == 1 && c.value(f.Name) == f.Value && !slices.Contains(unwanted, f.Name)
	})
	e.remove = slices.DeleteFunc(e.remove, func(name string) bool {
		return c.count(name) == 0 || slices.Contains(unwanted, name)
	})
	e.remove = append(e.remove, unwanted...)
}

// attemptEdits is what makes the shared request headers those of attempt a:
// every header that any target uses is set or removed (envoy.md, rule 3). body is
// what this attempt sends, nil when that is not made yet: then the attempt filter
// asks again. x.mu is held.
func (s *Server) attemptEdits(x *exchange, a *policy.Attempt, body []byte) headerEdits {
	entry := x.run.Plan.Places[a.Place].Entry
	t, p := entry.Target, x.placement(a)
	call := x.call(t, a.Model, p)
	call.Authority = t.Endpoint.Authority()
	s.authenticate(&call, t, t.Keys[a.Key], &x.client)
	headers := p.spec.Headers(call)
	if body != nil {
		s.sign(http.MethodPost, headers, p.spec, t, t.Keys[a.Key], body)
	}
	edits := headerEdits{set: make([]field, 0, 24), remove: make([]string, 0, 16)}
	for _, h := range headers {
		edits.put(h.Name, h.Value)
	}
	edits.forward(x, t)
	edits.put(names.Target, names.TargetCluster(t.Name))
	edits.put(names.Length, strconv.Itoa(p.length(x.body.buf.Bytes())))
	edits.put(names.TimeoutMS, strconv.FormatInt(max(1, x.run.Plan.Timeout(a.Place).Milliseconds()), 10))
	edits.put(names.Idle, config.IdleHeader(x.run.Plan.Route.Idle(entry, x.run.Plan.Request.Stream)))
	edits.put(names.Look, x.lookFor(a))
	return edits
}

// call is what target t is sent, without its host and its credential. x.mu is
// held.
func (x *exchange) call(t *config.Target, id string, p *placement) platform.Call {
	return platform.Call{
		Operation: x.operation(), Path: p.path, Model: id, Stream: x.streams(),
		Workspace: t.Workspace, Version: x.client.value("anthropic-version"), Betas: p.fit.Betas,
		UserProfile: x.client.value("anthropic-user-profile-id"), ContentType: x.client.value("content-type"),
		Accept: x.client.list("accept"),
	}
}

// forward adds what some target of the policy forwards: each attempt sets or
// removes all of it. What the platforms have values of their own for is theirs.
func (e *headerEdits) forward(x *exchange, t *config.Target) {
	for _, name := range x.policy.ForwardedHeaders {
		if !slices.Contains(changedByAttempts, name) {
			e.put(name, forwardedValue(x, t, name))
		}
	}
}

func forwardedValue(x *exchange, t *config.Target, name string) string {
	if slices.Contains(t.ForwardHeaders, name) {
		return x.client.value(name)
	}
	return ""
}

// clientHeaders is what the client is told about its exchange. x.mu is held.
func clientHeaders(x *exchange) []field {
	if x.other != nil {
		return x.other.clientHeaders(x)
	}
	level := config.ClientHeadersFull
	var out []field
	if x.run != nil {
		level = x.run.Plan.Route.ClientHeaders
	}
	servedBy, model := x.server()
	if list := x.degraded(); len(list) > 0 {
		out = append(out, field{Name: names.ClientDegraded, Value: strings.Join(list, ",")})
	}
	if level == config.ClientHeadersNone {
		return out
	}
	out = append(out, field{Name: names.ClientRequestID, Value: x.id})
	if servedBy != nil {
		out = append(out, field{Name: names.ClientServedBy, Value: servedBy.Name})
	}
	out = append(out, field{Name: names.ClientAttempts, Value: strconv.Itoa(x.attempts())})
	if level == config.ClientHeadersBasic || x.run == nil {
		return out
	}
	if servedBy != nil {
		out = append(out, field{Name: names.ClientModel, Value: model})
	}
	return append(out, field{Name: names.ClientTrail, Value: trailHeader(x)})
}

// server is the target whose answer the client gets, and the model's ID there;
// nil when Crossdoor answers itself. x.mu is held.
func (x *exchange) server() (*config.Target, string) {
	if x.run == nil || x.servedBy == 0 {
		return nil, ""
	}
	a := x.run.Attempts[x.servedBy-1]
	return x.target(a), a.Model
}

// degraded is in what the answer that the client gets is less than it asked for:
// `model`, and the members that were stripped; nil when nothing is. x.mu is held.
func (x *exchange) degraded() []string {
	if x.run == nil || x.servedBy == 0 {
		return nil
	}
	place := x.run.Plan.Places[x.run.Attempts[x.servedBy-1].Place]
	if place.Entry.Target.Degraded {
		return append([]string{"model"}, place.Stripped...)
	}
	return place.Stripped
}

// attempts counts those that were sent to a platform. x.mu is held.
func (x *exchange) attempts() int { return x.issued }

// trailHeader is the exchange in one line: each place of the chain with what it
// came to, or why it was left out. x.mu is held.
func trailHeader(x *exchange) string {
	var out []byte
	sep := func() {
		if len(out) > 0 {
			out = append(out, ", "...)
		}
	}
	for i, place := range x.run.Plan.Places {
		tried := false
		for _, a := range x.run.Attempts[:x.issued] {
			if a.Place != i {
				continue
			}
			tried = true
			sep()
			out = append(out, place.Entry.Target.Name...)
			out = append(out, ' ')
			out = append(out, a.OutcomeSoFar()...)
			out = append(out, ' ')
			out = strconv.AppendInt(out, a.Elapsed(time.Now()).Milliseconds(), 10)
			out = append(out, "ms"...)
		}
		if !tried && place.Skip != "" {
			sep()
			out = append(out, place.Entry.Target.Name...)
			out = append(out, " skipped:"...)
			out = append(out, place.Skip...)
		}
	}
	return string(out)
}
