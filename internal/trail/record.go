package trail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Record is one exchange, from the client's request to the end of its answer.
// The member names and which of them may be missing are the contract's section
// "Trail record". All *MS fields are whole milliseconds. A Record that was given
// to a Sink or a Ring is shared between goroutines and is not changed any more.
type Record struct {
	// Time is when the request's headers came in; written in UTC with
	// milliseconds.
	Time time.Time `json:"time"`
	// ID is the exchange's ULID, which the client knows as x-crossdoor-request-id.
	ID string `json:"id"`
	// RequestID is the `request-id` of the answer that was returned; "" when
	// the answer had none.
	RequestID string `json:"request_id"`
	Route     string `json:"route"`
	Model     string `json:"model"` // as the client wrote it
	Stream    bool   `json:"stream"`
	Client    string `json:"client"` // CutClient of the client header, or ""
	Policy    string `json:"policy"` // first 12 hex digits of the policy's SHA-256

	Plan     []Planned `json:"plan"`
	Attempts []Attempt `json:"attempts"`

	// ServedBy names the target whose answer was returned; "" when Crossdoor
	// answered itself.
	ServedBy string `json:"served_by,omitempty"`
	Status   int    `json:"status"`
	// Outcome is one of the Outcome constants.
	Outcome string `json:"outcome"`
	// Degraded lists `model` and the stripped members that change behaviour.
	Degraded []string `json:"degraded,omitempty"`
	Tier     string   `json:"tier"` // TierPortable or TierSingleTarget

	// CommittedMS is when the client had the answer's headers; nil when nothing
	// was ever committed.
	CommittedMS *int64 `json:"committed_ms,omitempty"`
	MS          int64  `json:"ms"` // the whole exchange
	// AddedMS is the time before the serving attempt started.
	AddedMS    int64  `json:"added_ms"`
	Usage      *Usage `json:"usage,omitempty"`
	StopReason string `json:"stop_reason,omitempty"`
}

// Planned is one place of the plan as it was at the end of the exchange.
type Planned struct {
	Target string `json:"target"`
	Model  string `json:"model"`
	Key    string `json:"key,omitempty"` // its place, never its value
	// Skipped is why the target was left out, "" when it was not: ejected,
	// disabled, require, feature:MEMBER, too_large, credential, busy, when,
	// not_for, budget, no_model or not_rendered.
	Skipped  string   `json:"skipped,omitempty"`
	Stripped []string `json:"stripped,omitempty"`
}

// Attempt is one try at one target. StartMS counts from Record.Time.
type Attempt struct {
	N            int    `json:"n"` // from 1
	Target       string `json:"target"`
	Model        string `json:"model"`
	Key          string `json:"key"`
	Host         string `json:"host"`
	StartMS      int64  `json:"start_ms"`
	MS           int64  `json:"ms"`
	Status       int    `json:"status,omitempty"` // 0 when no answer came
	Outcome      string `json:"outcome"`          // "ok" or a failure kind
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	// WaitedMS is what was waited before the next attempt began.
	WaitedMS          int64  `json:"waited_ms,omitempty"`
	UpstreamRequestID string `json:"upstream_request_id,omitempty"`
	Decision          string `json:"decision"` // one of the Decision constants
	Error             string `json:"error,omitempty"`
	Drill             string `json:"drill,omitempty"`
}

// Usage is what the platform counted, in tokens.
type Usage struct {
	InputTokens              int64 `json:"input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
}

// What an exchange came to.
const (
	OutcomeServed       = "served"
	OutcomeFailedOver   = "failed_over"   // served, not by the first planned target
	OutcomeStreamFailed = "stream_failed" // committed, ended badly
	OutcomeStopped      = "stopped"
	OutcomeExhausted    = "exhausted"
	OutcomeRejected     = "rejected"
	OutcomeClientGone   = "client_gone"
	OutcomeServiceDown  = "service_down"
)

// What was decided about an attempt.
const (
	DecisionServe    = "serve"
	DecisionRetry    = "retry"
	DecisionFailover = "failover"
	DecisionStop     = "stop"
)

// How many targets of the chain could serve the request.
const (
	TierPortable     = "portable"
	TierSingleTarget = "single_target"
)

// Outcomes lists the outcomes of exchanges in the contract's order.
func Outcomes() []string {
	return []string{
		OutcomeServed, OutcomeFailedOver, OutcomeStreamFailed, OutcomeStopped,
		OutcomeExhausted, OutcomeRejected, OutcomeClientGone, OutcomeServiceDown,
	}
}

// stampLayout is RFC 3339 with milliseconds, for times that are in UTC.
const stampLayout = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// Encode is the record as one line of JSON without its line end. Members come
// in the order of the fields above, always. Line ends and control characters
// inside values are escaped, so a line is always one record.
func Encode(r *Record) ([]byte, error) {
	type fields Record
	line := struct {
		Time   string `json:"time"` // hides the embedded one
		fields        //nolint:embeddedstructfieldcheck // the order of the members is the line's
	}{stamp(r.Time), fields(*r)}
	// A reader may count on lists being lists.
	if line.Plan == nil {
		line.Plan = []Planned{}
	}
	if line.Attempts == nil {
		line.Attempts = []Attempt{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(line); err != nil {
		return nil, fmt.Errorf("encoding trail record %s: %w", r.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode reads one line that Encode wrote. Members it does not know are passed
// over: a newer version may have written the file. A line without an id or a
// time is no trail record and an error.
func Decode(line []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("no trail record: %w", err)
	}
	if r.ID == "" || r.Time.IsZero() {
		return nil, errNoRecord
	}
	return &r, nil
}
