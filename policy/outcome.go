package policy

import (
	"strconv"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Envelope says in whose words an error body was written.
type Envelope uint8

// The envelopes. None is a body that is in no platform's error shape: a page of
// a CDN, plain text, nothing.
const (
	EnvelopeNone      Envelope = iota
	EnvelopeAnthropic          // {"type":"error","error":{"type","message","details"?}}
	EnvelopeAWS                // {"message"} with x-amzn-errortype, "code" or "__type"
	EnvelopeGoogle             // {"error":{"code","message","status"}}
	EnvelopeAzure              // {"error":{"code","message"}} or {"statusCode","message"}
)

// Answer is what is known of one attempt's answer when it is judged. It borrows
// its strings and is not kept.
type Answer struct {
	// Status as seen, also of an answer that Envoy made itself. 0: none came.
	Status int
	// Local is the x-crossdoor-local header: Envoy's response flags, ";", details.
	// Details "via_upstream" mean that the provider answered; so does "", for a
	// caller that has the provider's status by another way.
	Local       string
	ContentType string

	// The error object, and nothing else of the body. ErrorType is error.type
	// (Google: status), ErrorCode error.details.error_code (AWS, Azure: code).
	Envelope  Envelope
	ErrorType string
	ErrorCode string
	Message   string
	// RetryDelay is the wait that the error object asks for (Google's RetryInfo);
	// 0: none. Headers come before it.
	RetryDelay time.Duration

	// Header returns a response header by its lower-case name, "" when absent.
	// nil is a response without headers.
	Header func(name string) string

	Platform string
	// Original: the target got the client's bytes unchanged.
	Original bool
	// Stream: the error object is an error event of a 200 stream before its
	// content; Status is that 200.
	Stream bool
}

// header is Header that may be nil.
func (a *Answer) header(name string) string {
	if a.Header == nil {
		return ""
	}
	return a.Header(name)
}

// Blame is the scope that a failure counts for (contract, section 4).
type Blame uint8

// The blames.
const (
	BlameNothing Blame = iota
	BlameTarget
	BlameTargetModel
	BlameKey
	BlameKeyModel
)

// String is the blame as logs say it.
func (b Blame) String() string {
	switch b {
	case BlameNothing:
		return "nothing"
	case BlameTarget:
		return "target"
	case BlameTargetModel:
		return "target+model"
	case BlameKey:
		return "key"
	case BlameKeyModel:
		return "key+model"
	}
	return "blame(" + strconv.Itoa(int(b)) + ")"
}

// Outcome is what an attempt came to. The zero value is not an outcome: use
// Classify or OutcomeOf.
type Outcome struct {
	Kind config.Kind
	// RetryAfter is what the answer asks to wait; HasRetryAfter tells a stated 0
	// from none.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Long: one such failure ejects at once, with the long window.
	Long  bool
	Blame Blame
	// Cooldown is how long a rate_limit ejects its key for the model. The caller
	// sets it from its route with Cooldown; 0 is the contract's default for a
	// route that says nothing. Other kinds ignore it.
	Cooldown time.Duration
	// At is when the attempt ended, where that is told late; zero is now. A success
	// does not undo failures that came after it.
	At time.Time
	// Status as seen, 0 when none came.
	Status int
	// Reason is a short fixed text for trail and log, e.g. "refused",
	// "per_try_timeout", "status_529"; never text of an answer.
	Reason string
}

// BlameOf is the contract's "blames" column: whom a kind counts for, and whether
// it is one of the long kinds. Classify may blame less than this.
func BlameOf(k config.Kind) (blame Blame, long bool) {
	switch k {
	case config.KindConnection:
		return BlameTarget, false
	case config.KindTimeout, config.KindOverloaded, config.KindServerError,
		config.KindStreamError, config.KindTruncated, config.KindIdle:
		return BlameTargetModel, false
	case config.KindRateLimit:
		return BlameKeyModel, false
	case config.KindBillingQuota, config.KindCredential:
		return BlameKey, true
	case config.KindPermission, config.KindModelUnavailable:
		return BlameTargetModel, true
	}
	return BlameNothing, false
}

// OutcomeOf is the outcome of a kind that no answer tells: a first token that
// did not come, a held stream that broke, a stream that ended well or badly.
func OutcomeOf(k config.Kind, reason string) Outcome {
	blame, long := BlameOf(k)
	return Outcome{Kind: k, Blame: blame, Long: long, Reason: reason}
}

// The contract's defaults of a route's retry_after.
const (
	defaultCooldown = 5 * time.Second
	maxCooldown     = 5 * time.Minute
)

// Cooldown is how long a key that answered o stays ejected under a route's
// retry_after: the stated time up to r.Max, else r.Default. Zero members of r
// are the contract's defaults.
func Cooldown(o Outcome, r config.RetryAfter) time.Duration {
	if r.Default <= 0 {
		r.Default = defaultCooldown
	}
	if r.Max <= 0 {
		r.Max = maxCooldown
	}
	if o.HasRetryAfter {
		return min(o.RetryAfter, r.Max)
	}
	return min(r.Default, r.Max)
}
