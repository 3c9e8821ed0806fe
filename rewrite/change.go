package rewrite

import (
	"encoding/json"
	"slices"
)

// Change is how a body differs from the client's.
type Change struct {
	// Model is the ID to write in the place of the client's; "" leaves it.
	Model string
	// DropModel and DropStream take these members out.
	DropModel, DropStream bool
	// Add are members that go right after the opening brace, in this order. One
	// that the client has sent, too, is replaced.
	Add []Addition
	// Strip are the features whose members go.
	Strip FeatureSet
	// Replace are further edits, of spans of Facts, in any order.
	Replace []Edit
}

// Addition is a member to add; Value is JSON.
type Addition struct {
	Name  string
	Value []byte
}

// topLevel are the features that are a member of the request itself.
var topLevel = map[string]Feature{
	"cache_control": AutomaticCaching, "context_management": ContextManagement, "compaction": Compaction,
	"output_format": OutputFormat, "service_tier": ServiceTier, "inference_geo": InferenceGeo, "speed": Speed,
	"mcp_servers": MCPServers, "container": Container, "thread": Thread, "fallbacks": Fallbacks,
	"fallback_credit_token": FallbackCredit, "billing_policy": BillingPolicy, "diagnostics": Diagnostics,
	"temperature": Temperature, "top_p": TopP, "top_k": TopK,
}

// inOutputConfig are the features that are a member of output_config: the last
// one that goes takes output_config with it.
var inOutputConfig = setOf(OutputEffort, OutputFormat, OutputTaskBudget)

// Edits are the edits that make the change: ascending, without overlap, ready
// for Splice. A removed member takes its following comma with it, the last one
// its preceding one; nothing else is touched. The same change of the same body
// gives the same edits every time. Edits is nil when nothing changes.
func (f *Facts) Edits(c *Change) []Edit {
	var edits []Edit
	if c.Model != "" && c.Model != f.Model && !c.DropModel {
		edits = append(edits, SetModel(*f, c.Model))
	}
	top := f.topSites(c)
	edits = appendRemovals(edits, top)
	if c.Strip != 0 {
		edits = appendRemovals(edits, f.nestedSites(c))
	}
	if len(c.Add) > 0 {
		edits = append(edits, f.insert(c.Add, len(top) < len(f.Members)))
	}
	edits = append(edits, c.Replace...)
	return disjoint(edits)
}

// topSites are the members of the request that go.
func (f *Facts) topSites(c *Change) (out []site) {
	before := -1
	emptied := f.emptiesOutput(c.Strip)
	for _, m := range f.Members {
		one := site{start: m.Key.Start, end: m.Value.End, before: before, after: m.comma}
		before = m.comma
		feature := topLevel[m.Name]
		switch {
		case m.Name == "model" && c.DropModel, m.Name == "stream" && c.DropStream,
			feature != noFeature && c.Strip.Has(feature),
			m.Name == "context_management" && c.Strip.Has(ContextCompact),
			m.Name == "output_config" && emptied,
			slices.ContainsFunc(c.Add, func(a Addition) bool { return a.Name == m.Name }):
			out = append(out, one)
		}
	}
	return out
}

// emptiesOutput reports whether nothing would be left of output_config.
func (f *Facts) emptiesOutput(strip FeatureSet) bool {
	gone := 0
	for i := range f.sites {
		if one := f.sites[i].feature; inOutputConfig.Has(one) && strip.Has(one) {
			gone++
		}
	}
	return gone > 0 && gone == f.outputMembers
}

func (f *Facts) nestedSites(c *Change) (out []site) {
	for _, one := range f.sites {
		if c.Strip.Has(one.feature) {
			out = append(out, one)
		}
	}
	// Those of an inner object were found before their outer member.
	slices.SortStableFunc(out, func(a, b site) int { return a.start - b.start })
	return out
}

// appendRemovals takes sites out, in order of their start. Members that stand
// beside each other go as one.
func appendRemovals(edits []Edit, sites []site) []Edit {
	for i := 0; i < len(sites); {
		first := sites[i]
		last := first
		i++
		for i < len(sites) && sites[i].start < last.end { // within it
			i++
		}
		for i < len(sites) && last.after >= 0 && sites[i].before == last.after {
			last = sites[i]
			i++
			for i < len(sites) && sites[i].start < last.end {
				i++
			}
		}
		span := Span{Start: first.start, End: last.end}
		switch {
		case last.after >= 0:
			span.End = last.after + 1
		case first.before >= 0:
			span.Start = first.before
		}
		edits = append(edits, Edit{Span: span})
	}
	return edits
}

// insert adds members after the opening brace; more says that others follow.
func (f *Facts) insert(members []Addition, more bool) Edit {
	var text []byte
	for i, m := range members {
		name, err := json.Marshal(m.Name)
		if err != nil { // cannot be: every string has a JSON form
			continue
		}
		text = append(append(append(text, name...), ':'), m.Value...)
		if more || i < len(members)-1 {
			text = append(text, ',')
		}
	}
	return Edit{Span: Span{Start: f.Open, End: f.Open}, New: text}
}

// disjoint puts edits in order and leaves out those within another one: a member
// that goes takes what is in it along.
func disjoint(edits []Edit) []Edit {
	slices.SortStableFunc(edits, func(a, b Edit) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return a.Len() - b.Len() // what is added comes before what begins there
	})
	end := 0
	return slices.DeleteFunc(edits, func(e Edit) bool {
		if e.Start < end {
			return true
		}
		end = e.End
		return false
	})
}
