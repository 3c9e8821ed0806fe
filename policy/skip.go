package policy

import "time"

// Skip is why a target was left out of a plan, in the trail's words
// (plan[].skipped, contract section 9). "" is not left out.
type Skip string

// The reasons. A member that a target cannot take is SkipFeature.
const (
	SkipNone        Skip = ""
	SkipEjected     Skip = "ejected"
	SkipDisabled    Skip = "disabled"
	SkipRequire     Skip = "require"
	SkipTooLarge    Skip = "too_large"
	SkipCredential  Skip = "credential"
	SkipBusy        Skip = "busy"
	SkipWhen        Skip = "when"
	SkipNotFor      Skip = "not_for"
	SkipBudget      Skip = "budget"
	SkipNoModel     Skip = "no_model"
	SkipNotRendered Skip = "not_rendered"
)

// SkipFeature is the reason for a target that cannot take the named member of
// the request.
func SkipFeature(member string) Skip { return Skip("feature:" + member) }

// Verdict says whether health lets an attempt happen.
type Verdict struct {
	Skip Skip
	// Until is the soonest moment at which another try may go well. It is set for
	// SkipEjected and SkipBusy, and is now where nobody knows it (a probe is under
	// way, a slot may come free at any time); zero otherwise.
	Until time.Time
}
