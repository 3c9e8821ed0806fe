package envoy

import (
	"slices"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy/config"
)

const (
	// messageSlack is added to what the service may wait for before it answers:
	// with two dozen bodies of 32 MB crossing, one message took 13 s, and more than
	// 30 s on a busy machine. A service that hangs is noticed sooner, by the health
	// check and the connection's pings.
	messageSlack = 60 * time.Second
	judgeSlack   = 10 * time.Second
	streamSlack  = 5 * time.Second
	// maxMessageTimeout is the most that Envoy takes for a message_timeout.
	maxMessageTimeout = time.Hour
)

// dispatchReplies covers what Envoy answers in a platform's place. The judge
// goes by x-crossdoor-local; these bodies reach a client only when nothing
// judged them.
func dispatchReplies() []reply {
	const own = "response.code_details != 'direct_response'"
	return []reply{
		{"response.code == 504 && " + own, errorBody("timeout_error", "The platform did not answer in time.")},
		{"response.code == 503 && " + own, errorBody("overloaded_error", textNotReached)},
		{own, errorBody("api_error", textNotReached)},
	}
}

// attemptTimeout is how long Envoy waits for the service's answer before an
// attempt: the wait that may be left of a same-target retry, and slack.
func attemptTimeout(p *config.Policy) time.Duration {
	var longest time.Duration
	for _, r := range p.Routes {
		longest = max(longest, min(longestWait(r), r.Timeouts.Total))
	}
	return min(longest+messageSlack, maxMessageTimeout)
}

// longestWait is the longest wait between two attempts at one target.
func longestWait(r *config.Route) time.Duration {
	if r.SameTargetRetries == 0 {
		return 0
	}
	if r.Actions[config.KindRateLimit] == config.ActionRetry {
		return max(r.Backoff.Max, r.RetryAfter.Max)
	}
	return r.Backoff.Max
}

// judgeTimeout is how long Envoy waits for the verdict on an answer: longer
// than any hold or wait, which timeouts.total bounds.
func judgeTimeout(p *config.Policy) time.Duration {
	var longest time.Duration
	for _, r := range p.Routes {
		longest = max(longest, r.Timeouts.Total)
	}
	return min(longest+judgeSlack, maxMessageTimeout)
}

// streamIdle is how long nothing at all may move on a client's stream: longer
// than what the service and the inner listener end by themselves.
func streamIdle(p *config.Policy) time.Duration {
	longest := p.Limits.BodyTime
	for _, r := range p.Routes {
		longest = max(longest, r.Timeouts.Total)
	}
	for _, d := range p.IdleValues() {
		longest = max(longest, d)
	}
	return longest + streamSlack
}

// directView is where requests go unplanned while the service is down.
type directView struct {
	Target, Cluster, Authority string
	Headers                    []string // sorted; x-stainless-* besides
	Paths                      []directPath
}

// directPath is one path that the contract handles, and what the platform
// calls it.
type directPath struct{ Method, Path, Rewrite string }

// directHeaders is the contract's allow-list, what carries the body, and the
// client's own credential, which is the only one there is without the service.
var directHeaders = []string{
	"accept", "anthropic-beta", "anthropic-dangerous-direct-browser-access", "anthropic-user-profile-id", "anthropic-version",
	"authorization", "content-length", "content-type", "transfer-encoding", "user-agent", "x-api-key",
}

func viewDirect(t *config.Target) *directView {
	if t == nil {
		return nil
	}
	headers := slices.Concat(directHeaders, t.ForwardHeaders)
	slices.Sort(headers)
	view := &directView{
		Target: t.Name, Cluster: names.TargetCluster(t.Name), Authority: t.Endpoint.Authority(),
		Headers: slices.Compact(headers),
	}
	for _, p := range []directPath{
		{"POST", "/v1/messages", ""}, {"POST", "/v1/messages/count_tokens", ""}, {"GET", "/v1/models", ""},
	} {
		p.Rewrite = t.PathPrefix + p.Path
		view.Paths = append(view.Paths, p)
	}
	return view
}
