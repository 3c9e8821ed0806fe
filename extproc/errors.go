package extproc

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/messages"
)

// reply is a final answer of Crossdoor's own, in the client's schema.
type reply struct {
	status  int
	headers []field
	body    []byte
	// outcome is what the trail says of an exchange that ends so.
	outcome string
}

// The error types of the Messages API (platforms.md, section 2).
const (
	typeInvalid    = "invalid_request_error"
	typeNotFound   = "not_found_error"
	typeTooLarge   = "request_too_large"
	typeOverloaded = "overloaded_error"
	typeTimeout    = "timeout_error"
)

// errorReply builds an answer that tells SDKs not to try again: Crossdoor has
// done that already.
func errorReply(status int, typ, message, outcome string) *reply {
	return &reply{
		status:  status,
		outcome: outcome,
		body:    messages.EncodeError(typ, message, ""),
		headers: []field{{Name: "content-type", Value: "application/json"}, {Name: "x-should-retry", Value: "false"}},
	}
}

func rejected(status int, typ, message string) *reply {
	return errorReply(status, typ, message, outcomeRejected)
}

// retryIn adds a retry-after of whole seconds, rounded up.
func (r *reply) retryIn(d time.Duration) *reply {
	if d > 0 {
		seconds := int64(math.Ceil(d.Seconds()))
		r.headers = append(r.headers, field{Name: "retry-after", Value: strconv.FormatInt(seconds, 10)})
	}
	return r
}

// reply is the answer as one of Crossdoor's own.
func (k *keptAnswer) reply() *reply {
	return &reply{status: k.status, headers: k.headers, body: k.body}
}

// immediate is the reply as Envoy takes it, with the client's headers.
func (r *reply) immediate(out *wire.Response, extra []field) {
	out.Reset()
	out.Immediate = &wire.Immediate{Status: r.status, Headers: append(slices.Clip(r.headers), extra...), Body: r.body, Details: "crossdoor"}
	out.Kind = wire.KindImmediate
}

func tooLarge(limit int64) *reply { return requestReply(rewrite.TooLarge(limit)) }

func memoryFull() *reply {
	r := errorReply(529, typeOverloaded, "The failover service holds as many request bodies as it may. Try again.", outcomeExhausted)
	return r.retryIn(time.Second)
}

func noRoute(p *config.Policy) *reply {
	var globs []string
	for _, r := range p.Routes {
		globs = append(globs, r.Models...)
	}
	return rejected(http.StatusNotFound, typeNotFound,
		"No route of the policy takes this model. Configured models: "+strings.Join(globs, ", ")+".")
}

func outOfTime() *reply {
	return errorReply(http.StatusGatewayTimeout, typeTimeout, "No target answered within the total timeout of the route.", outcomeExhausted)
}

func serviceFailed() *reply {
	return errorReply(http.StatusServiceUnavailable, typeOverloaded, "The failover service is not available.", outcomeServiceDown)
}

// nothingUsable is the answer when no attempt can be made at all: 529 while a
// target is only out for a while, else 400 (413) that says what stands in the
// way. x.mu is held.
func (s *Server) nothingUsable(x *exchange, now time.Time) *reply {
	var waiting, large int
	var why []string
	for _, p := range x.run.Plan.Places {
		switch p.Skip {
		case policy.SkipEjected, policy.SkipBusy, policy.SkipCredential, policy.SkipNotRendered:
			waiting++
		case policy.SkipTooLarge:
			large++
		}
		why = append(why, p.Entry.Target.Name+" ("+string(p.Skip)+")")
	}
	if waiting > 0 {
		return errorReply(529, typeOverloaded, "Every target of the route is left out for now.", outcomeExhausted).retryIn(s.soonest(x, now))
	}
	if list := x.run.Plan.Refusals(); len(list) > 0 {
		return refused(list)
	}
	text := "No target of the route can serve this request: " + strings.Join(why, ", ") + "."
	if large == len(x.run.Plan.Places) {
		return rejected(http.StatusRequestEntityTooLarge, typeTooLarge, text)
	}
	return rejected(http.StatusBadRequest, typeInvalid, "model: "+text)
}

// refused is the answer to a request that no target takes as it is: which member
// would have to go, and for which targets (contract, section 7).
func refused(list []policy.Refusal) *reply {
	var text []string
	for _, r := range list {
		text = append(text, r.Member+" (not taken by "+strings.Join(r.Targets, ", ")+")")
	}
	return rejected(http.StatusBadRequest, typeInvalid,
		list[0].Member+": No target of the route can serve this request. It would have to do without: "+strings.Join(text, "; ")+".")
}

// soonest is how long it takes until the first place of the plan may be used
// again; 0 when none is ejected. x.mu is held.
func (s *Server) soonest(x *exchange, now time.Time) time.Duration {
	var first time.Duration
	for _, p := range x.run.Plan.Places {
		if p.Model == "" {
			continue
		}
		t := p.Entry.Target
		v := s.health.Look(t, p.Model, func(key int) bool { return s.keyUsable(x, t, key) })
		if v.Until.IsZero() { // only what is ejected or busy comes back by itself
			continue
		}
		if d := max(v.Until.Sub(now), time.Millisecond); first == 0 || d < first {
			first = d
		}
	}
	return first
}

// exhaustedReply is the answer after attempts of which the last one brought
// none: the most recent 429 or 529 of an earlier one, else 504 or 529 by what
// befell the last. x.mu is held.
func (s *Server) exhaustedReply(x *exchange, now time.Time) *reply {
	if k := x.kept; k != nil {
		x.servedBy = k.attempt
		r := k.reply()
		r.outcome = outcomeExhausted
		return r
	}
	x.servedBy = 0
	if a := x.run.Last(); a != nil && a.Outcome.Kind == config.KindTimeout {
		return errorReply(http.StatusGatewayTimeout, typeTimeout, "The last target that was tried did not answer in time.", outcomeExhausted).retryIn(s.soonest(x, now))
	}
	return errorReply(529, typeOverloaded, "No target of the route could be reached.", outcomeExhausted).retryIn(s.soonest(x, now))
}

// envoyReply is the answer in place of one that Envoy made by itself before an
// exchange was planned.
func envoyReply(status int, bodyLimit int64) *reply {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return tooLarge(bodyLimit)
	case http.StatusRequestTimeout:
		return rejected(http.StatusRequestTimeout, typeTimeout, "The request body did not arrive in time.")
	case http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return serviceFailed()
	}
	if status >= 400 && status < 500 {
		return rejected(status, typeInvalid, "The request could not be processed: "+http.StatusText(status)+".")
	}
	return serviceFailed()
}
