package rewrite

import "fmt"

// Feature is something in a request that not every platform takes, or that not
// every model does. Its name is what the policy's `features` and the header
// x-crossdoor-degraded call it: the member, or what a member or a block of
// content stands for.
type Feature uint8

// The features, in the order of the documentation.
const (
	noFeature Feature = iota

	CacheControl
	CacheTTL
	CacheScope
	AutomaticCaching // cache_control of the request itself

	ContextManagement
	ContextCompact // an edit of context_management that compacts
	Compaction

	OutputEffort
	OutputFormat // also the older output_format
	OutputTaskBudget
	StrictTools

	ThinkingAdaptive
	ThinkingManual
	ThinkingDisabled
	ThinkingBinding

	Temperature
	TopP
	TopK
	Prefill
	ForcedTool

	URLSource
	FileID

	WebSearch // version 20250305
	WebSearchLater
	WebFetch
	CodeExecution
	ToolSearch
	AllowedCallers
	Advisor
	ComputerToolset
	InputExamples
	EagerInput
	ToolChanges

	MCPServers
	Container
	Thread
	Fallbacks
	FallbackCredit
	BillingPolicy
	InferenceGeo
	Speed
	SystemMessages

	ServiceTier
	Diagnostics

	featureCount
)

// FeatureSet is a set of features.
type FeatureSet uint64

// Thinking are the ways in which a request can ask for thinking.
const Thinking = FeatureSet(1)<<ThinkingAdaptive | FeatureSet(1)<<ThinkingManual

// Both must fit.
var _ [64 - featureCount]struct{}

func setOf(list ...Feature) (s FeatureSet) {
	for _, f := range list {
		s |= f.bit()
	}
	return s
}

func (f Feature) bit() FeatureSet { return 1 << f }

// String is the feature's name.
func (f Feature) String() string {
	if f == noFeature || f >= featureCount {
		return fmt.Sprintf("feature %d", uint8(f))
	}
	return table[f].name
}

// Strippable reports whether a request can be sent without the feature by taking
// a member out of it.
func (f Feature) Strippable() bool { return strippable.Has(f) }

// Has reports whether the set has f.
func (s FeatureSet) Has(f Feature) bool { return s&f.bit() != 0 }

// Names are the names of the set's features, in the order of the documentation.
func (s FeatureSet) Names() []string {
	var out []string
	for f := range s.all {
		out = append(out, f.String())
	}
	return out
}

// all goes through the set in order.
func (s FeatureSet) all(yield func(Feature) bool) {
	for f := noFeature + 1; f < featureCount; f++ {
		if s.Has(f) && !yield(f) {
			return
		}
	}
}

// FeatureNamed is the feature of that name.
func FeatureNamed(name string) (Feature, bool) {
	for f := noFeature + 1; f < featureCount; f++ {
		if table[f].name == name {
			return f, true
		}
	}
	return noFeature, false
}

// Features lists every feature's name in the order of the documentation.
func Features() []string { return (^FeatureSet(0)).Names() }

// Action is what is done about a feature at a host.
type Action uint8

// The actions. Strip and StripLossless take the member out: of the first the
// client is told, the second changes nothing that it could notice. Refuse leaves
// the target out of the plan.
const (
	Keep Action = iota
	Strip
	StripLossless
	Refuse
)

// ParseAction reads the policy's word for an action.
func ParseAction(word string) (Action, bool) {
	switch word {
	case "keep":
		return Keep, true
	case "strip":
		return Strip, true
	case "refuse":
		return Refuse, true
	}
	return Keep, false
}

// String is the action as the documentation writes it.
func (a Action) String() string {
	return [...]string{Keep: "keep", Strip: "strip", StripLossless: "strip, without loss", Refuse: "refuse"}[a]
}
