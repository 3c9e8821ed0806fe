package config

import "time"

// Policy is a compiled policy file: checked, defaults filled in, references
// resolved. It is immutable once Load has returned it and safe for concurrent
// use; an exchange keeps the one it began with.
type Policy struct {
	// Hash is the first 12 hex digits of the file's SHA-256.
	Hash string
	// RenderHash changes when something changed that the rendered Envoy config
	// depends on; equal hashes mean that no new render is needed.
	RenderHash string

	Limits  Limits
	Targets []*Target // in the file's order
	Routes  []*Route  // in the file's order: the first that matches wins
	Breaker Breaker
	// ClientHeader names the header that says who the client is; "" is off.
	ClientHeader string
	// Direct is the target of `on_service_down: {direct: …}`; nil is reject.
	Direct *Target
	// OtherPaths is nil for `other_paths: reject`.
	OtherPaths *OtherPaths
	Guard      Guard
	Trail      Trail
	// ForwardedHeaders is every header that some target forwards, lower case,
	// sorted: each attempt sets or removes all of them.
	ForwardedHeaders []string
}

// Limits bound what the service takes; sizes in bytes.
type Limits struct {
	Body     int64
	Memory   int64
	Hold     int64
	BodyTime time.Duration
}

// Breaker is how failures eject; see "Health" in the policy reference.
type Breaker struct {
	Failures   int
	Window     time.Duration
	MaxWindow  time.Duration
	LongWindow time.Duration // doubles to MaxLongWindow
}

// MaxLongWindow is where a doubled long window ends (contract, `breaker`).
const MaxLongWindow = 10 * time.Minute

// Guard says when what is left of a request after its edits is checked.
type Guard string

// The guard values: while planning, or also over the final bytes.
const (
	GuardPlan Guard = "plan"
	GuardScan Guard = "scan"
)

// OtherPaths is where requests on paths that nothing plans may go.
type OtherPaths struct {
	Target *Target
	Allow  []PathRule // in the file's order
}

// PathRule is one method and path.
type PathRule struct {
	Method string
	Path   string // with Prefix, how the path begins
	Prefix bool
}

// Portability says how far a request may be changed to fit a target.
type Portability string

// The portability values. Strict leaves a target out rather than strip what
// changes behaviour.
const (
	PortabilityStrip  Portability = "strip"
	PortabilityStrict Portability = "strict"
)

// Trail says where records go. Recent is how many stay in memory.
type Trail struct {
	Recent int
	File   string // "" is off
}

// Route says which requests use which chain under which rules.
type Route struct {
	Name    string
	Models  []string // globs over the whole model name
	Headers []HeaderMatch
	Chain   []*Entry
	// Actions holds only what the file says; use Action.
	Actions           map[Kind]Action
	Authenticated     bool
	SameTargetRetries int
	MaxAttempts       int
	Timeouts          Timeouts
	Backoff           Backoff
	RetryAfter        RetryAfter
	Portability       Portability
	ClientHeaders     ClientHeaders
}

// Action is what this route does about a failure at a target.
func (r *Route) Action(k Kind, t *Target) Action {
	if a, ok := r.Actions[k]; ok {
		return a
	}
	return DefaultAction(k, t != nil && t.Passthrough())
}

// Entry is one place of a chain. Zero durations mean the route's.
type Entry struct {
	Target     *Target
	Model      string // "" is the client's model
	Attempt    time.Duration
	FirstToken time.Duration
}

// HeaderMatch is one header rule of a route; Name is lower case.
type HeaderMatch struct {
	Name    string
	Exact   string
	Prefix  string
	Present bool
}

// Timeouts of a route. Attempt and FirstToken are 0 for `auto`.
type Timeouts struct {
	Attempt    time.Duration
	FirstToken time.Duration
	Hold       time.Duration
	// HoldWritten is false for the default: then the hold is never longer than
	// the first-token timeout that applies.
	HoldWritten bool
	Idle        time.Duration
	Total       time.Duration
	// TotalWritten is true when the file says it: auto timeouts are then at most
	// half of it.
	TotalWritten bool
}

// Backoff is the range of same-target waits, full jitter.
type Backoff struct{ Base, Max time.Duration }

// RetryAfter is the cool-down of a key that answered 429.
type RetryAfter struct{ Default, Max time.Duration }

// ClientHeaders says how much the client is told.
type ClientHeaders string

// The client_headers values.
const (
	ClientHeadersFull  ClientHeaders = "full"
	ClientHeadersBasic ClientHeaders = "basic"
	ClientHeadersNone  ClientHeaders = "none"
)

// Route returns the first route that matches, or nil. header returns a request
// header's value by its lower-case name.
func (p *Policy) Route(model string, header func(name string) (string, bool)) *Route {
	for _, r := range p.Routes {
		if r.matches(model, header) {
			return r
		}
	}
	return nil
}

func (r *Route) matches(model string, header func(string) (string, bool)) bool {
	matched := false
	for _, g := range r.Models {
		if Glob(g, model) {
			matched = true
			break
		}
	}
	if !matched {
		return false
	}
	for _, h := range r.Headers {
		v, ok := header(h.Name)
		if !ok || !h.match(v) {
			return false
		}
	}
	return true
}

func (h HeaderMatch) match(v string) bool {
	switch {
	case h.Present:
		return true
	case h.Prefix != "":
		return len(v) >= len(h.Prefix) && v[:len(h.Prefix)] == h.Prefix
	}
	return v == h.Exact
}

// Target returns the named target, or nil.
func (p *Policy) Target(name string) *Target {
	for _, t := range p.Targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Glob reports whether pattern matches the whole of s. `*` is any run of
// characters, also none; `?` is one; everything else is itself.
func Glob(pattern, s string) bool {
	star, mark, p, i := -1, 0, 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// RouteNamed returns the named route, or nil.
func (p *Policy) RouteNamed(name string) *Route {
	for _, r := range p.Routes {
		if r.Name == name {
			return r
		}
	}
	return nil
}
