package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Request is what planning needs to know about a request. Sizes in bytes.
type Request struct {
	Model        string // the client's, as written
	Stream       bool
	MaxTokens    int64 // 0 when absent
	BodyBytes    int64 // as it would be sent on: after content-encoding
	LargestImage int64 // as base64 text; 0 when there is none
	// Credential says that the client brought one of its own, which a
	// passthrough target needs.
	Credential bool
	// Timeout is what the client itself will wait, from x-stainless-timeout; 0
	// when it does not say.
	Timeout time.Duration
	// Fit says what a place makes of the request; nil is that every target takes
	// it as it is. NewPlan asks once for each place whose target knows the model:
	// model is the client's or the entry's own, id the platform's.
	Fit func(e *config.Entry, model, id string) Fit
}

// Fit is what a target makes of a request, or what keeps it from taking it.
// Members are named as the trail names them.
type Fit struct {
	// Refused are the members that would have to go before the target could
	// take the request.
	Refused []string
	// Stripped are the members that go and whose loss changes behaviour. What is
	// stripped without loss is not named.
	Stripped []string
	// BodyBytes is the size of the body as it is sent there; 0 is
	// Request.BodyBytes.
	BodyBytes int64
	// TooLarge says that something in the body is larger than the target takes,
	// besides what Request says.
	TooLarge bool
}

// Place is one entry of a chain as planned: the model's ID there, or why it was
// left out.
type Place struct {
	Entry *config.Entry
	Model string
	Skip  Skip
	// Stripped is Fit's, for a place that may serve the request.
	Stripped []string
	// Refused is Fit's, and with `portability: strict` also what would have been
	// stripped.
	Refused []string
}

// Plan is the ordered list of targets for one request. Places keep the chain's
// order and length, so an index means the same on every replica that has the
// same policy.
type Plan struct {
	Route    *config.Route
	Request  Request
	Places   []Place
	Start    time.Time // the end of the request's body
	Deadline time.Time // Start + timeouts.total, or what the client waits if that is less
}

// clientMargin is what a client's own timeout is shortened by, so that it gets
// an answer before it gives up.
const clientMargin = 500 * time.Millisecond

// NewPlan plans a request over a route. It looks at what cannot change while
// the request runs; health and credentials are asked when an attempt is due.
// rendered says whether Envoy has a target's cluster.
func NewPlan(r *config.Route, req Request, rendered func(*config.Target) bool, now time.Time) *Plan {
	total := r.Timeouts.Total
	if t := req.Timeout - clientMargin; req.Timeout > 0 && t < total {
		total = max(t, 0)
	}
	p := &Plan{Route: r, Request: req, Start: now, Deadline: now.Add(total), Places: make([]Place, len(r.Chain))}
	for i, e := range r.Chain {
		p.Places[i] = planPlace(r, e, req, rendered)
	}
	return p
}

func planPlace(r *config.Route, e *config.Entry, req Request, rendered func(*config.Target) bool) Place {
	place := Place{Entry: e}
	model := req.Model
	if e.Model != "" {
		model = e.Model
	}
	id, ok := e.Target.ModelID(model)
	if !ok {
		place.Skip = SkipNoModel
		return place
	}
	place.Model = id
	fit := Fit{}
	if req.Fit != nil {
		fit = req.Fit(e, model, id)
	}
	if r.Portability == config.PortabilityStrict {
		fit.Refused, fit.Stripped = slices.Concat(fit.Refused, fit.Stripped), nil
	}
	place.Refused = fit.Refused
	switch {
	case len(fit.Refused) > 0:
		place.Skip = SkipFeature(fit.Refused[0])
	case fit.TooLarge, tooLarge(e.Target.Limits, cmp.Or(fit.BodyBytes, req.BodyBytes), req.LargestImage):
		place.Skip = SkipTooLarge
	case rendered != nil && !rendered(e.Target):
		place.Skip = SkipNotRendered
	default:
		place.Stripped = fit.Stripped
	}
	return place
}

func tooLarge(l config.TargetLimits, body, image int64) bool {
	return l.Body > 0 && body > l.Body || l.Image > 0 && image > l.Image
}

// Refusal is a member of the request and the targets that would have needed it
// gone.
type Refusal struct {
	Member  string
	Targets []string // by name, in the chain's order, each once
}

// Refusals are what keeps targets from taking the request, in the order in
// which the chain comes upon them. A plan without a place to go to answers with
// them (contract, section 7).
func (p *Plan) Refusals() []Refusal {
	var list []Refusal
	for _, place := range p.Places {
		name := place.Entry.Target.Name
		for _, member := range place.Refused {
			i := slices.IndexFunc(list, func(r Refusal) bool { return r.Member == member })
			if i < 0 {
				i = len(list)
				list = append(list, Refusal{Member: member})
			}
			if !slices.Contains(list[i].Targets, name) {
				list[i].Targets = append(list[i].Targets, name)
			}
		}
	}
	return list
}

// AttemptTimeout is how long an attempt at this place may take until the
// response headers of a non-streaming answer.
func (p *Plan) AttemptTimeout(place int) time.Duration {
	const ceiling = 8 * time.Minute
	e, t := p.Places[place].Entry, p.Route.Timeouts
	d := e.Attempt
	if d == 0 {
		d = t.Attempt
	}
	if d == 0 {
		tokens := min(p.Request.MaxTokens, 40*int64(ceiling/time.Second))
		d = min(60*time.Second+time.Duration(tokens)*time.Second/40, ceiling)
		d = p.halfOfTotal(d)
	}
	return d
}

// FirstToken is how long a stream may take from the attempt's start to its
// first content event.
func (p *Plan) FirstToken(place int) time.Duration {
	e, t := p.Places[place].Entry, p.Route.Timeouts
	d := e.FirstToken
	if d == 0 {
		d = t.FirstToken
	}
	if d == 0 {
		d = 60*time.Second + time.Duration(p.Request.BodyBytes*15/(1<<20))*time.Second
		// Envoy's idle timer runs while the platform thinks.
		d = min(p.halfOfTotal(d), t.Idle)
	}
	return d
}

// Hold is how long a stream's headers are held while it shows life.
func (p *Plan) Hold(place int) time.Duration {
	return min(p.Route.Timeouts.Hold, p.FirstToken(place))
}

func (p *Plan) halfOfTotal(d time.Duration) time.Duration {
	if p.Route.Timeouts.TotalWritten {
		return min(d, p.Route.Timeouts.Total/2)
	}
	return d
}

// Timeout is the per-try timeout of an attempt at this place: until the
// response headers, whatever the answer is.
func (p *Plan) Timeout(place int) time.Duration {
	if p.Request.Stream {
		return p.FirstToken(place)
	}
	return p.AttemptTimeout(place)
}
