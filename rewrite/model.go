package rewrite

import (
	"strconv"
	"strings"
)

// generation is a model's family and number, times ten: 46 is 4.6. 0 is a model
// of no known form, of which nothing is assumed.
func generation(model string) (family string, number int) {
	parts := strings.Split(model, "-")
	if len(parts) < 3 || parts[0] != "claude" {
		return "", 0
	}
	major, err := strconv.Atoi(parts[2])
	if err != nil || major > 99 { // claude-3-opus-…: of the past
		return "", 0
	}
	number = 10 * major
	if len(parts) > 3 {
		if minor, err := strconv.Atoi(parts[3]); err == nil && minor < 10 {
			number += minor
		}
	}
	return parts[1], number
}

// modelAction is what the model at the host does with f, beside what its host
// does (platform reference, section 12.1 and the notes of 12).
func (h *Host) modelAction(f Feature) Action {
	family, n := generation(h.Model)
	if n == 0 {
		return Keep
	}
	switch {
	case (f == OutputFormat || f == StrictTools) && h.Platform == "bedrock" && n != 45 && n != 46:
		return Refuse
	case f == Speed && h.Platform == "claude-on-google" && (family != "opus" || n != 55):
		return Refuse
	case !h.Crossing:
		return Keep
	}
	alwaysThinks := ((family == "fable" || family == "mythos") && n >= 50) || (family == "opus" && n >= 55)
	switch f {
	case ThinkingAdaptive:
		return when(n <= 45, Refuse)
	case ThinkingManual:
		return when(n >= 47, Refuse)
	case ThinkingDisabled, ForcedTool:
		return when(alwaysThinks, Refuse)
	case Temperature, TopP, TopK:
		return when(n >= 47, Strip)
	case OutputEffort:
		return when(n < 45 || (n == 45 && family != "opus"), Strip)
	case Prefill:
		return when(n >= 46, Refuse)
	case SystemMessages:
		return when(n < 48 || (family == "sonnet" && n == 50), Refuse)
	}
	return Keep
}

func when(holds bool, a Action) Action {
	if holds {
		return a
	}
	return Keep
}
