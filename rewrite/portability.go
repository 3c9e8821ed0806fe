package rewrite

// column is a host of the portability table.
type column uint8

const (
	colAnthropic column = iota
	colAWS
	colGoogle
	colMantle
	colBedrock
	colVertex
	colFoundry
	colFoundryAzure
	columns
)

// columnNames are the platforms as the policy calls them; foundry's second
// column is `hosting: azure`.
var columnNames = [columns]string{
	"anthropic", "claude-on-aws", "claude-on-google", "mantle", "bedrock", "vertex", "foundry", "foundry (azure)",
}

func columnOf(platform, hosting string) column {
	if platform == "foundry" && hosting == "azure" {
		return colFoundryAzure
	}
	for c, name := range columnNames {
		if name == platform {
			return column(c)
		}
	}
	return colAnthropic
}

// feature is one row of the table: what each host does with it.
type feature struct {
	name  string
	hosts [columns]Action
	note  string
}

// The cells, short enough for a table to be read.
const (
	k = Keep
	s = Strip
	l = StripLossless
	r = Refuse
)

// table is the portability table (platform reference, sections 4.8, 5.4, 7 and
// 12, as of 2026-11). The first-party API takes everything. Where the reference
// does not know, a platform that Anthropic operates is taken to be as the first
// one, since it is the same API, but for what is bound to its host (thread,
// fallbacks, billing_policy) and for task budgets at foundry. At the others, and at
// what Azure hosts, what changes the meaning of a request keeps it away, and what
// does not is kept. A target's `features` has the last word.
var table = [featureCount]feature{
	//                                               1P AWS GCP Man Bed Ver Fou F-Az
	CacheControl:      {"cache_control", [columns]Action{k, k, k, k, k, k, k, k}, "caches are never shared between hosts"},
	CacheTTL:          {"cache_control.ttl", [columns]Action{k, k, k, k, k, k, k, k}, "set it to strip for a model that refuses a one-hour cache"},
	CacheScope:        {"cache_control.scope", [columns]Action{k, k, k, s, s, s, k, k}, "needs the beta prompt-caching-scope"},
	AutomaticCaching:  {"automatic_caching", [columns]Action{k, k, k, k, l, k, k, k}, "cache_control of the request itself: InvokeModel answers 400"},
	ContextManagement: {"context_management", [columns]Action{k, k, k, k, k, k, k, k}, "goes with its beta"},
	ContextCompact:    {"context_management.compact", [columns]Action{k, k, k, k, k, k, s, s}, "an edit that compacts: the whole of context_management goes"},
	Compaction:        {"compaction", [columns]Action{k, k, k, r, r, k, k, r}, "the answer is a summary and nothing else"},
	OutputEffort:      {"output_config.effort", [columns]Action{k, k, k, k, k, k, k, k}, "stripped for models that do not know it"},
	OutputFormat:      {"output_config.format", [columns]Action{k, k, k, r, k, k, k, r}, "structured outputs; at InvokeModel only the 4.5 and 4.6 models have them"},
	OutputTaskBudget:  {"output_config.task_budget", [columns]Action{k, k, k, r, r, r, r, r}, ""},
	StrictTools:       {"strict", [columns]Action{k, k, k, r, k, k, k, r}, "tools whose input must match their schema; as output_config.format"},
	ThinkingAdaptive:  {"thinking.adaptive", [columns]Action{k, k, k, k, k, k, k, k}, "400 at models of 4.5 and earlier"},
	ThinkingManual:    {"thinking.enabled", [columns]Action{k, k, k, k, k, k, k, k}, "400 at models of 4.7 and later"},
	ThinkingDisabled:  {"thinking.disabled", [columns]Action{k, k, k, k, k, k, k, k}, "400 at models that always think"},
	ThinkingBinding:   {"thinking.block_binding", [columns]Action{k, k, k, k, k, k, s, s}, "goes with its beta"},
	Temperature:       {"temperature", [columns]Action{k, k, k, k, k, k, k, k}, "400 at models of 4.7 and later"},
	TopP:              {"top_p", [columns]Action{k, k, k, k, k, k, k, k}, "as temperature"},
	TopK:              {"top_k", [columns]Action{k, k, k, k, k, k, k, k}, "as temperature"},
	Prefill:           {"prefill", [columns]Action{k, k, k, k, k, k, k, k}, "a last message of the assistant: 400 at models of 4.6 and later"},
	ForcedTool:        {"tool_choice.forced", [columns]Action{k, k, k, k, k, k, k, k}, "400 at models that always think"},
	URLSource:         {"url_source", [columns]Action{k, k, k, r, r, r, k, r}, "images and documents by URL"},
	FileID:            {"file_id", [columns]Action{k, k, k, r, r, r, k, r}, "files belong to one workspace of one platform"},
	WebSearch:         {"web_search", [columns]Action{k, k, k, r, r, k, k, r}, "the tool of 2025-03-05, and its results in the history"},
	WebSearchLater:    {"web_search.later", [columns]Action{k, k, k, r, r, r, k, r}, "later versions of it"},
	WebFetch:          {"web_fetch", [columns]Action{k, k, k, r, r, r, k, r}, ""},
	CodeExecution:     {"code_execution", [columns]Action{k, k, k, r, r, r, k, r}, ""},
	ToolSearch:        {"tool_search", [columns]Action{k, k, k, r, k, k, k, r}, "also defer_loading"},
	AllowedCallers:    {"allowed_callers", [columns]Action{k, k, k, r, r, r, k, r}, "programmatic tool calling"},
	Advisor:           {"advisor", [columns]Action{k, k, k, r, r, r, r, r}, ""},
	ComputerToolset:   {"computer_toolset", [columns]Action{k, r, r, r, r, r, r, r}, "the toolsets of 2026-08-01, browser included"},
	InputExamples:     {"input_examples", [columns]Action{k, k, k, k, s, s, k, s}, "examples of a tool's input"},
	EagerInput:        {"eager_input_streaming", [columns]Action{k, k, k, k, k, k, k, k}, ""},
	ToolChanges:       {"tool_changes", [columns]Action{k, k, k, k, k, k, k, r}, "tool_addition and tool_removal in the history"},
	MCPServers:        {"mcp_servers", [columns]Action{k, k, k, r, r, r, k, r}, "the MCP connector, its toolsets and its results in the history"},
	Container:         {"container", [columns]Action{k, k, k, r, r, r, k, r}, "containers and skills"},
	Thread:            {"thread", [columns]Action{k, r, r, r, r, r, r, r}, "its state is at the host that began it"},
	Fallbacks:         {"fallbacks", [columns]Action{k, r, r, r, r, r, r, r}, "the first-party API's own"},
	FallbackCredit:    {"fallback_credit_token", [columns]Action{k, r, r, r, r, r, r, r}, "good at the platform that gave it"},
	BillingPolicy:     {"billing_policy", [columns]Action{k, r, r, r, r, r, r, r}, ""},
	InferenceGeo:      {"inference_geo", [columns]Action{k, k, r, r, r, r, r, r}, "a promise of residency"},
	Speed:             {"speed", [columns]Action{k, r, k, r, r, r, r, r}, "fast mode; at claude-on-google Opus 5.5 alone"},
	SystemMessages:    {"system_messages", [columns]Action{k, k, k, k, k, k, k, r}, "role system within messages: models from Opus 4.8 on, not Sonnet 5"},
	ServiceTier:       {"service_tier", [columns]Action{k, k, k, l, l, l, l, l}, "no tier is sold any more"},
	Diagnostics:       {"diagnostics", [columns]Action{k, l, l, l, l, l, l, l}, "of the prompt cache"},
}

// strippable are the features that are a member which can go. What is not among
// them is content, or means something by its absence.
var strippable = setOf(
	CacheControl, CacheTTL, CacheScope, AutomaticCaching, ContextManagement, ContextCompact, OutputEffort, ThinkingBinding,
	Temperature, TopP, TopK, InputExamples, EagerInput, ServiceTier, Diagnostics, Speed, Fallbacks, FallbackCredit,
	BillingPolicy, InferenceGeo, OutputTaskBudget, Thread, Container, Compaction,
)

// Host is where a request would go, as far as it matters to what fits there.
type Host struct {
	Platform string // as the policy calls it
	Hosting  string // of foundry
	// Model is the first-party ID of the model there; "" is not known, and nothing
	// is assumed about it.
	Model string
	// Crossing: it is another model than the client's. What a model takes is only
	// looked at then: the client knows its own.
	Crossing bool
	// Overrides are the policy's, over the table.
	Overrides map[Feature]Action
}

// action is what host h does with f.
func (h *Host) action(f Feature) Action {
	if a, ok := h.Overrides[f]; ok {
		return a
	}
	if a := h.modelAction(f); a != Keep {
		return a
	}
	return table[f].hosts[columnOf(h.Platform, h.Hosting)]
}

// Takes reports whether h takes a feature as it is.
func (h *Host) Takes(f Feature) bool { return h.action(f) == Keep }

// Kept reports whether the policy says that h takes a feature.
func (h *Host) Kept(f Feature) bool {
	a, ok := h.Overrides[f]
	return ok && a == Keep
}

// Fit is what becomes of a request at a host.
type Fit struct {
	// Refused keep the request away from there.
	Refused FeatureSet
	// Stripped go, and the client is told; Lossless go without loss.
	Stripped, Lossless FeatureSet
	// Betas are the tokens of anthropic-beta that remain, in order.
	Betas []string
	// StrippedBetas are tokens that do not and that change behaviour; those that
	// are not known are `anthropic-beta` here, since they are the client's text.
	StrippedBetas []string

	replaced FeatureSet
}

// Refuse adds a feature that keeps the request away, for a reason that the table
// does not know.
func (f *Fit) Refuse(one Feature) { f.Refused |= one.bit() }

// Replace says that an edit of the caller's own puts something in the place of
// every use of a feature.
func (f *Fit) Replace(one Feature) {
	f.Refused &^= one.bit()
	f.replaced |= one.bit()
}

// gone is what the edits take out.
func (f *Fit) gone() FeatureSet { return f.Stripped | f.Lossless }

// Fit says what becomes of the request at a host; betas are the client's
// anthropic-beta lines.
func (f *Facts) Fit(h *Host, betas []string) Fit {
	var fit Fit
	for one := range f.Uses.all {
		switch a := h.action(one); {
		case a == Keep:
		case a == Refuse, !f.removable(one):
			fit.Refused |= one.bit()
		case a == Strip:
			fit.Stripped |= one.bit()
		case a == StripLossless:
			fit.Lossless |= one.bit()
		}
	}
	for one := range (f.nulls &^ f.Uses).all {
		if h.action(one) != Keep { // it says nothing, and a strict host refuses its name
			fit.Lossless |= one.bit()
		}
	}
	fit.betas(h, f, betas)
	return fit
}

// removable reports whether edits take out every use of a feature.
func (f *Facts) removable(one Feature) bool { return one.Strippable() && !f.fixed.Has(one) }

// Leftover is what the guard finds while planning: features that are still in
// the request once the edits of fit are made, and that h does not take. It is
// empty unless Fit and Edits do not agree.
func (f *Facts) Leftover(h *Host, fit *Fit) (left FeatureSet) {
	for one := range (f.Uses &^ (fit.gone()&strippable&^f.fixed | fit.replaced)).all {
		if !fit.Refused.Has(one) && h.action(one) != Keep {
			left |= one.bit()
		}
	}
	return left
}

// Scan is the guard over the final bytes of a request: the features in them that
// h does not take. The error is that of a body which is not JSON any more.
func Scan(body []byte, h *Host) (left FeatureSet, err error) {
	facts, err := inspect(body, false)
	if err != nil {
		return 0, err
	}
	for one := range facts.Uses.all {
		if h.action(one) != Keep {
			left |= one.bit()
		}
	}
	return left, nil
}

// Row is one row of the portability table, for people.
type Row struct {
	Feature string
	Hosts   []Action // in the order of Hosts
	Note    string
}

// Hosts are the table's columns.
func Hosts() []string { return columnNames[:] }

// Rows is the portability table.
func Rows() []Row {
	rows := make([]Row, 0, featureCount)
	for f := noFeature + 1; f < featureCount; f++ {
		rows = append(rows, Row{Feature: table[f].name, Hosts: table[f].hosts[:], Note: table[f].note})
	}
	return rows
}
