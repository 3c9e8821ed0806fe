package config

import (
	"slices"
	"strconv"
	"time"
)

// MaxAutoAttempt is the longest that `attempt: auto` comes to (contract,
// `timeouts.attempt`).
const MaxAutoAttempt = 8 * time.Minute

// Idle is the longest silence that an attempt at e on this route may have, for
// the header that chooses the inner route. Envoy's timer also runs while the
// platform thinks, so an answer that is not streamed, whose headers may take
// the whole attempt timeout, gets the larger of the two.
func (r *Route) Idle(e *Entry, stream bool) time.Duration {
	if stream {
		return r.Timeouts.Idle
	}
	return max(r.Timeouts.Idle, r.longestAttempt(e))
}

// longestAttempt bounds the attempt timeout without knowing the request: the
// entry's, the route's, else what auto can come to.
func (r *Route) longestAttempt(e *Entry) time.Duration {
	switch {
	case e != nil && e.Attempt > 0:
		return e.Attempt
	case r.Timeouts.Attempt > 0:
		return r.Timeouts.Attempt
	case r.Timeouts.TotalWritten:
		return min(MaxAutoAttempt, r.Timeouts.Total/2)
	}
	return MaxAutoAttempt
}

// IdleValues are the idle times that attempts under this policy can have,
// ascending and each once: the rendered config has one inner route for each.
func (p *Policy) IdleValues() []time.Duration {
	var all []time.Duration
	for _, r := range p.Routes {
		for _, e := range r.Chain {
			all = append(all, r.Idle(e, true), r.Idle(e, false))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// IdleHeader writes d as the idle header and Envoy's durations do: decimal
// seconds, as in "300s" or "1.5s".
func IdleHeader(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}
