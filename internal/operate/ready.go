package operate

import (
	"net/http"
)

// Ready is what `/readyz` tells. Whoever makes one gives it away: nothing in it
// changes afterwards.
type Ready struct {
	// Ready is true when a policy is loaded, gRPC listens and no drain is on.
	Ready bool `json:"ready"`
	// Reasons says, for people, why not, and what else is worth knowing: a
	// policy that was refused, a render that is out of date.
	Reasons []string `json:"reasons"`
	Policy  string   `json:"policy"` // the policy's hash
	// Render compares the config that Envoy runs with the policy: one of the
	// Render constants.
	Render   string        `json:"render"`
	Inflight int           `json:"inflight"` // exchanges that have not ended
	Targets  []TargetState `json:"targets"`
}

// What is known about Envoy's config.
const (
	RenderUnknown = "unknown" // no Envoy has connected yet
	RenderMatches = "matches"
	RenderDiffers = "differs" // a new render is needed
)

// The states of a breaker.
const (
	StateClosed   = "closed"
	StateHalfOpen = "half-open"
	StateOpen     = "open"
)

// TargetState is one target as a whole; Scopes are those of its keys and models
// that are not closed.
type TargetState struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	State    string `json:"state"` // of the target's own breaker
	// Until is when an open breaker lets a probe through, RFC 3339; "" when it
	// is not open.
	Until  string       `json:"until,omitempty"`
	Scopes []ScopeState `json:"scopes,omitempty"`
}

// ScopeState is a breaker below a target. Members that do not apply are "".
type ScopeState struct {
	Scope string `json:"scope"` // model, key or key_model, as in breaker_state
	Model string `json:"model,omitempty"`
	Key   string `json:"key,omitempty"` // its place, never its value
	State string `json:"state"`
	Until string `json:"until,omitempty"`
}

// nameless is what callers may learn that showed no token.
type nameless struct {
	Ready  bool   `json:"ready"`
	Policy string `json:"policy"`
	Render string `json:"render"`
}

func (r Ready) status() int {
	if r.Ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func (r Ready) write(w http.ResponseWriter) {
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	if r.Targets == nil {
		r.Targets = []TargetState{}
	}
	writeJSON(w, r.status(), r)
}

func (r Ready) writeNameless(w http.ResponseWriter) {
	writeJSON(w, r.status(), nameless{Ready: r.Ready, Policy: r.Policy, Render: r.Render})
}
