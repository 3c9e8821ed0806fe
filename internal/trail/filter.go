package trail

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Filter chooses records; every member that is set must match. The zero Filter
// matches all.
type Filter struct { //nolint:recvcheck // it is set by pointer and asked by value
	Since   time.Time // records of this time and later
	Route   string
	Target  string // an attempt went to it
	Outcome string // one of Outcomes
	// ID is the exchange's ID, or the request ID that a platform gave to the
	// answer or to one of the attempts.
	ID string
	// FailedOver chooses exchanges whose answer came from a later place of the
	// chain: outcome failed_over, and those that moved on and then ended badly.
	FailedOver bool
	// Limit keeps only the newest ones; 0 is all.
	Limit int
}

// Match reports whether r is chosen; Limit is not looked at.
func (f Filter) Match(r *Record) bool {
	switch {
	// In milliseconds, as the file has it: the ring answers the same.
	case r.Time.Before(f.Since.Truncate(time.Millisecond)):
		return false
	case f.Route != "" && r.Route != f.Route:
		return false
	case f.Outcome != "" && r.Outcome != f.Outcome:
		return false
	case f.Target != "" && !slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Target == f.Target }):
		return false
	case f.ID != "" && !r.named(f.ID):
		return false
	}
	return !f.FailedOver || r.failedOver()
}

func (r *Record) named(id string) bool {
	return strings.EqualFold(r.ID, id) || r.RequestID == id ||
		slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.UpstreamRequestID == id })
}

func (r *Record) failedOver() bool {
	switch r.Outcome {
	case OutcomeFailedOver:
		return true
	case OutcomeStreamFailed, OutcomeClientGone, OutcomeStopped:
		return r.ServedBy != "" && slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Decision == DecisionFailover })
	}
	return false
}

// ParseSince reads the text of `--since` and `since=`: a duration before now
// (`90s`, `1h`) or an RFC 3339 time. "" is no limit.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("since %q: write a duration such as 90s or 1h, or a time such as 2026-11-30T08:00:00Z", text)
}

// CheckOutcome is nil for "" and the outcomes of exchanges.
func CheckOutcome(outcome string) error {
	if outcome == "" || slices.Contains(Outcomes(), outcome) {
		return nil
	}
	return fmt.Errorf("outcome %q: write one of %s", outcome, strings.Join(Outcomes(), ", "))
}

// Values is the filter as a query string that ParseValues reads.
func (f Filter) Values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	if !f.Since.IsZero() {
		v.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	set("route", f.Route)
	set("target", f.Target)
	set("outcome", f.Outcome)
	set("id", f.ID)
	if f.FailedOver {
		v.Set("failed_over", "true")
	}
	if f.Limit > 0 {
		v.Set("limit", strconv.Itoa(f.Limit))
	}
	return v
}

// ParseValues reads a query string. Names that it does not know are errors: a
// filter that is silently ignored shows records that nobody asked for.
func ParseValues(v url.Values, now time.Time) (Filter, error) {
	var f Filter
	for name, values := range v {
		if len(values) != 1 {
			return Filter{}, fmt.Errorf("%s: write it once", name)
		}
		if err := f.set(name, values[0], now); err != nil {
			return Filter{}, err
		}
	}
	return f, nil
}

func (f *Filter) set(name, value string, now time.Time) (err error) {
	switch name {
	case "since":
		f.Since, err = ParseSince(value, now)
	case "route":
		f.Route = value
	case "target":
		f.Target = value
	case "outcome":
		f.Outcome, err = value, CheckOutcome(value)
	case "id":
		f.ID = value
	case "failed_over":
		if value != "" { // a bare `failed_over` says yes
			f.FailedOver, err = strconv.ParseBool(value)
		} else {
			f.FailedOver = true
		}
		if err != nil {
			return fmt.Errorf("failed_over %q: write true or false", value)
		}
	case "limit":
		f.Limit, err = strconv.Atoi(value)
		if err != nil || f.Limit < 0 {
			return fmt.Errorf("limit %q: write a number of records, 0 for all", value)
		}
	default:
		return fmt.Errorf("%q is no filter: there are since, route, target, outcome, id, failed_over, limit", name)
	}
	return err
}
