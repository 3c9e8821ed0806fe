package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// rendered is what the rendered Envoy config depends on: contract, the last
// point of section 11, and the waits that Envoy's own timeouts must outlast.
type rendered struct {
	Targets []renderedTarget // by name: their order says nothing
	Idle    []time.Duration  // each once, ascending
	Body    int64
	Direct  string
	// Where in the target's paths those that Envoy writes itself begin.
	DirectPrefix string         `json:",omitempty"`
	OtherPaths   *renderedOther `json:",omitempty"`
	// What Envoy's timeouts around the service are derived from.
	Total, Backoff, RetryAfter time.Duration
}

type renderedTarget struct {
	Name     string
	Endpoint Endpoint
	Connect  time.Duration
	CAFile   string
}

type renderedOther struct {
	Target, Prefix string
	Allow          []PathRule
}

func renderHash(p *Policy) string {
	r := rendered{Body: p.Limits.Body, Idle: p.IdleValues()}
	for _, t := range p.Targets {
		r.Targets = append(r.Targets, renderedTarget{t.Name, t.Endpoint, t.ConnectTimeout, t.CAFile})
	}
	slices.SortFunc(r.Targets, func(a, b renderedTarget) int { return cmp.Compare(a.Name, b.Name) })
	for _, route := range p.Routes {
		r.Total = max(r.Total, route.Timeouts.Total)
		r.Backoff, r.RetryAfter = max(r.Backoff, route.Backoff.Max), max(r.RetryAfter, route.RetryAfter.Max)
	}
	if p.Direct != nil {
		r.Direct, r.DirectPrefix = p.Direct.Name, p.Direct.PathPrefix
	}
	if o := p.OtherPaths; o != nil {
		r.OtherPaths = &renderedOther{o.Target.Name, o.Target.PathPrefix, o.Allow}
	}
	text, _ := json.Marshal(r) //nolint:errchkjson,musttag // strings and numbers cannot fail, and only a hash is made of it
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:12]
}
