package extproc

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/credential"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// Explanation is what a policy makes of one request, in good health.
type Explanation struct {
	Route  string
	Model  string // the client's
	Stream bool
	Uses   []string // features of the request that not every host takes
	Places []ExplainedPlace
}

// ExplainedPlace is what one entry of the chain makes of the request.
type ExplainedPlace struct {
	Target, Platform string
	Model            string // the platform's ID
	Skip             string // why it is left out of the plan; "" when it is not
	Refused          []string
	Stripped         []string // the client is told of these
	Lossless         []string
	// Leftover is what the guard finds in the final bytes: a fault of Crossdoor's
	// own table.
	Leftover []string

	// What goes out; nothing of a place that is left out.
	URL     string
	Headers []platform.Header // to set, or to remove where Value is empty; no secret is in it
	Edits   []rewrite.Edit    // of the client's body
	Body    []byte            // as it goes out
}

// RequestHeader is one header of a request to explain, its name in lower case.
type RequestHeader = field

// Explain plans a request to path, with its headers (lower case) and its body,
// without sending it anywhere and without a look at health or credentials. The
// error is a *rewrite.RequestError, or says that no route matches.
func Explain(p *config.Policy, path string, headers []RequestHeader, body []byte) (*Explanation, error) {
	facts, err := rewrite.Inspect(body)
	if err != nil {
		return nil, err
	}
	client := clientRequest{method: "POST", path: path, headers: headers, contentLength: int64(len(body))}
	route := p.Route(facts.Model, client.get)
	if route == nil {
		return nil, errNoRoute
	}
	s := NewServer(Options{
		Policy: p, Health: policy.NewHealth(p, nil, policy.Observer{}), Keys: credential.NewStatic(nil), Trail: trail.NewSink(0, nil),
		Metrics: NewMetrics(prometheus.NewRegistry(), nil), Log: slog.New(slog.DiscardHandler),
	})
	buf := wire.NewBuffer(len(body))
	copy(buf.Bytes(), body)
	x := &exchange{policy: p, client: client, facts: facts, body: &lease{buf: buf, size: int64(len(body))}}
	defer buf.Free()
	plan := s.newPlan(x, route, time.Now())
	out := &Explanation{Route: route.Name, Model: facts.Model, Stream: x.streams(), Uses: facts.Uses.Names()}
	for i := range plan.Places {
		out.Places = append(out.Places, x.explained(&plan.Places[i], &x.placements[i]))
	}
	return out, nil
}

// explained is one place, as an attempt there would be.
func (x *exchange) explained(place *policy.Place, p *placement) ExplainedPlace {
	t := place.Entry.Target
	out := ExplainedPlace{
		Target: t.Name, Platform: t.Platform, Model: place.Model, Skip: string(place.Skip),
		Refused: place.Refused, Stripped: place.Stripped, Lossless: p.fit.Lossless.Names(),
	}
	if out.Skip != "" || p.path == "" {
		return out
	}
	call := x.call(t, place.Model, p)
	call.Authority = t.Endpoint.Authority()
	call.Secret = "(value of " + t.Keys[0].Place() + ")"
	switch t.Keys[0].Source {
	case config.KeyPassthrough:
		call.Auth, call.Credential = platform.AuthPassthrough, platform.ClientCredential{APIKey: "(the client's own)"}
	case config.KeyAWS:
		call.Auth = platform.AuthSigned
	case config.KeyGoogle, config.KeyEntra:
		call.Auth = platform.AuthToken
	case config.KeyEnv, config.KeyFile:
		if t.Auth == config.AuthADC {
			call.Auth = platform.AuthToken
		}
	}
	out.Headers = p.spec.Headers(call)
	if call.Auth == platform.AuthSigned {
		platform.Set(out.Headers, "authorization", "AWS4-HMAC-SHA256 (signed with "+t.Keys[0].Place()+")")
	}
	out.URL = t.Endpoint.URL() + p.path
	out.Edits = p.edits
	body := p.body(x.body.buf)
	defer body.Free()
	out.Body = append(out.Body, body.Bytes()...)
	out.Leftover = p.scan(out.Body).Names()
	return out
}
