package extproc

import (
	"slices"
	"strings"

	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// placement is what one entry of the chain makes of the request: made once, when
// the body is known, and then only read.
type placement struct {
	spec  *platform.Spec
	path  string // the platform's
	host  rewrite.Host
	fit   rewrite.Fit
	edits []rewrite.Edit
	wraps bool // the edited body goes inside another one
	// refused is what no edit can mend, besides fit.
	refused string
	// tooLarge: something in the body is larger than the target takes.
	tooLarge bool
}

// placed is what entry e makes of the request whose model there is id. x.mu is
// held and the body is here.
func (s *Server) placed(x *exchange, e *config.Entry, model, id string) placement {
	t := e.Target
	spec, _ := platform.Get(t.Platform)
	p := placement{spec: spec, wraps: spec.Wraps(x.operation())}
	var err error
	if p.path, err = spec.Path(site(t), x.client.path, id, x.streams()); err != nil {
		p.refused = "model"
		return p
	}
	p.path = signable(t, p.path)
	p.host = rewrite.Host{
		Platform: t.Platform, Hosting: string(t.Hosting), Model: platform.Canonical(model),
		Crossing: model != x.facts.Model, Overrides: overrides(t, model),
	}
	p.fit = x.facts.Fit(&p.host, x.client.all("anthropic-beta"))
	change := spec.Change(&x.facts, x.call(t, id, &p))
	p.tooLarge = x.files.fit(x, t, &p, &change)
	change.Strip = p.fit.Stripped | p.fit.Lossless
	p.edits = x.facts.Edits(&change)
	if left := x.facts.Leftover(&p.host, &p.fit); left != 0 {
		s.leftOver(x, t, left)
		p.fit.Refused |= left
	}
	return p
}

// signable is a path whose signature cannot fail: of the query only the marker of
// beta requests stays, since a platform may read any other in another way than it
// was signed, and would blame the key.
func signable(t *config.Target, path string) string {
	bare, query, _ := strings.Cut(path, "?")
	switch {
	case t.Auth != config.AuthSigV4:
		return path
	case query == "beta=true":
		return path
	}
	return bare
}

// fits tells the plan what entry e makes of the request, and keeps it. x.mu is
// held.
func (s *Server) fits(x *exchange, chain []*config.Entry, e *config.Entry, model, id string) policy.Fit {
	p := &x.placements[slices.Index(chain, e)]
	*p = s.placed(x, e, model, id)
	fit := policy.Fit{Refused: p.fit.Refused.Names(), Stripped: p.fit.Stripped.Names(), BodyBytes: int64(p.length(x.body.buf.Bytes())), TooLarge: p.tooLarge}
	fit.Stripped = append(fit.Stripped, p.fit.StrippedBetas...)
	if p.refused != "" {
		fit.Refused = append(fit.Refused, p.refused)
	}
	return fit
}

// leftOver says that the guard found members for a target which should have been
// stripped or have kept it out of the plan. x.mu is held.
func (s *Server) leftOver(x *exchange, t *config.Target, left rewrite.FeatureSet) {
	names := left.Names()
	for _, member := range names {
		s.metrics.leftover.WithLabelValues(t.Name, member).Inc()
	}
	s.log.Error("guard: the request still has members that the target does not take", "id", x.id, "target", t.Name, "members", strings.Join(names, ","))
}

// scan is the guard over the final bytes: what in them the host does not take. A
// body inside another one is not looked at.
func (p *placement) scan(body []byte) rewrite.FeatureSet {
	if p.unchanged() || p.wraps {
		return 0
	}
	left, err := rewrite.Scan(body, &p.host)
	if err != nil { // cannot be: edits keep JSON what it is
		return 0
	}
	return left
}

// unchanged reports whether the placement sends the client's very bytes.
func (p *placement) unchanged() bool { return len(p.edits) == 0 && !p.wraps }

// length is that of the body as it goes out.
func (p *placement) length(body []byte) int {
	n := rewrite.Length(body, p.edits)
	if p.wraps {
		n = platform.WrappedCount(n)
	}
	return n
}

// body is the body as it goes out; the caller owns the reference.
func (p *placement) body(original *wire.Buffer) *wire.Buffer {
	if p.unchanged() {
		original.Ref()
		return original
	}
	if p.wraps {
		inner := rewrite.Splice(nil, original.Bytes(), p.edits)
		out := wire.NewBuffer(platform.WrappedCount(len(inner)))
		platform.WrapCount(out.Bytes()[:0], inner)
		return out
	}
	out := wire.NewBuffer(rewrite.Length(original.Bytes(), p.edits))
	rewrite.Splice(out.Bytes()[:0], original.Bytes(), p.edits)
	return out
}

// overrides are the policy's changes to the portability table for a model at a
// target.
func overrides(t *config.Target, model string) map[rewrite.Feature]rewrite.Action {
	own := t.FeaturesFor(model)
	if len(own) == 0 {
		return nil
	}
	out := make(map[rewrite.Feature]rewrite.Action, len(own))
	for name, action := range own {
		if f, ok := rewrite.FeatureNamed(name); ok { // checked when the policy was loaded
			out[f], _ = rewrite.ParseAction(string(action))
		}
	}
	return out
}

// site is where a target is at its platform.
func site(t *config.Target) platform.Site {
	return platform.Site{
		Region: t.Region, Project: t.Project, Location: t.Location, Workspace: t.Workspace, Resource: t.Resource,
		Profile: string(t.Profile), Hosting: string(t.Hosting),
	}
}

// placement is what attempt a's place makes of the request. x.mu is held.
func (x *exchange) placement(a *policy.Attempt) *placement {
	return &x.placements[a.Place]
}

// unchanged reports whether attempt a sends the very bytes that Envoy holds.
// x.mu is held.
func (x *exchange) unchanged(a *policy.Attempt) bool { return !x.encoded && x.placement(a).unchanged() }

// original is unchanged for the judge, which may not have seen the body. x.mu is
// held.
func (x *exchange) original(a *policy.Attempt) bool {
	if x.placements == nil {
		return a.Model == x.facts.Model
	}
	return x.unchanged(a)
}

// streams reports whether the client asks for a stream. x.mu is held.
func (x *exchange) streams() bool { return x.facts.Stream && x.operation() == platform.Messages }
