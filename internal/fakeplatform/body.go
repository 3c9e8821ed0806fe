package fakeplatform

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

// known are the members, tools and blocks that a strict platform knows; its
// traits say which of them it refuses.
var known = []string{
	"model", "max_tokens", "messages", "system", "tools", "tool_choice", "temperature", "top_p", "top_k", "stop_sequences", "stream", "metadata", "thinking", "output_config",
	"output_format", "context_management", "cache_control", "compaction", "user_profile_id", "role.system", "source.url", "source.file",
	"output_config.format", "output_config.effort", "output_config.task_budget", "thinking.type", "thinking.budget_tokens", "thinking.display", "thinking.block_binding",
	"cache_control.ttl", "cache_control.scope", "tools.strict", "tools.allowed_callers", "tools.defer_loading", "tools.eager_input_streaming", "tools.input_examples",
	"tool:bash", "tool:text_editor", "tool:memory", "tool:computer", "tool:tool_search_tool", "tool:web_search", "block:tool_reference", "block:compaction",
}

// knownToVendor are what the vendor's own platforms know besides.
var knownToVendor = strings.Fields(`service_tier diagnostics inference_geo speed container billing_policy fallback_credit_token tools.defer_loading
	tool:web_fetch tool:code_execution tool:computer_toolset tool:browser_toolset tool:tool_search_tool
	block:mcp_tool_use block:mcp_tool_result block:fallback output_config.task_budget`)

// gates are features that a beta opens: one of the beginnings must be in the
// request's list. A body that has the member without the beta has lost it on the
// way.
var gates = map[string][]string{
	"context_management": {"context-management-", "compact-2026-01-12"}, "mcp_servers": {"mcp-client-"}, "tool:mcp_toolset": {"mcp-client-"},
	"thread": {"message-threads-"}, "fallbacks": {"server-side-fallback-"}, "compaction": {"compact-2026-09-04"}, "tool:computer": {"computer-use-"},
	"tool:advisor": {"advisor-tool-"}, "cache_control.scope": {"prompt-caching-scope-"}, "thinking.block_binding": {"thinking-binding-controls-"},
	"output_config.task_budget": {"task-budgets-"}, "block:tool_addition": {"mid-conversation-tool-changes-"}, "block:tool_removal": {"mid-conversation-tool-changes-"},
}

// asked is a body with what its platform says about it.
type asked struct {
	platform string
	traits   traits
	rules    Rules
	r        *Request
	root     *value
	strict   bool
	betas    []string
}

func checkBody(platform string, rules Rules, r *Request) (string, Answer) {
	if r.call.op != opMessages && r.call.op != opCount {
		return "", Answer{}
	}
	doc, why := r.doc, r.notJSON
	if why == "" && platform == Bedrock && r.call.op == opCount {
		doc, why = countBody(doc)
	}
	if why != "" {
		return inner(platform, 400, "The request body is not valid JSON: "+why)
	}
	t := traitsOf[platform]
	a := asked{platform: platform, traits: t, rules: rules, r: r, root: &doc.root, strict: t.strict || rules.Strict}
	if a.strict && doc.lone != "" {
		return inner(platform, 400, "The request body is not valid JSON: "+doc.lone)
	}
	if why := a.checkShape(); why != "" {
		return inner(platform, 400, why)
	}
	if why, answer := checkModel(platform, rules, r); why != "" {
		return why, answer
	}
	if why := a.checkBetas(); why != "" {
		return inner(platform, 400, why)
	}
	if why := a.checkFeatures(); why != "" {
		return inner(platform, 400, why)
	}
	return "", Answer{}
}

// readBody takes the call and the body apart; what it returns has these alone.
func readBody(platform string, r *Request, body []byte) Request {
	out := Request{call: parseCall(platform, r.Target)}
	if out.call.op != opMessages && out.call.op != opCount {
		return out
	}
	doc, err := parse(body)
	if err != nil {
		out.notJSON = err.Error()
		return out
	}
	out.doc, out.Model, out.Stream = doc, out.call.model, out.call.stream
	if platform == Bedrock {
		if inside, _ := countBody(doc); inside != nil && out.call.op == opCount {
			out.Tokens = tokens(&inside.root)
		}
		return out
	}
	out.Tokens = tokens(&doc.root)
	if out.Model == "" {
		out.Model, out.Stream = doc.root.get("model").text(), doc.root.get("stream").isTrue()
	}
	return out
}

// countBody unwraps {"input":{"invokeModel":{"body":BASE64}}}.
func countBody(doc *document) (*document, string) {
	in := doc.root.get("input").get("invokeModel").get("body")
	if in == nil || len(doc.root.names) != 1 || len(doc.root.get("input").names) != 1 {
		return nil, "not input.invokeModel.body alone"
	}
	b, err := base64.StdEncoding.Strict().DecodeString(in.text())
	if err != nil {
		return nil, "input.invokeModel.body is not base64"
	}
	inside, err := parse(b)
	if err != nil {
		return nil, err.Error()
	}
	return inside, ""
}

// checkShape looks at the members that differ by platform and path.
func (a *asked) checkShape() string {
	model := a.root.get("model")
	inPath := a.r.call.model != ""
	switch {
	case inPath && model != nil:
		return "model: Extra inputs are not permitted"
	case !inPath && a.r.Model == "":
		return "model: Field required"
	}
	stream := a.root.get("stream")
	switch {
	case a.platform == Bedrock && stream != nil:
		return "stream: Extra inputs are not permitted"
	case a.platform == Vertex && a.r.call.op == opMessages && stream.isTrue() != a.r.call.stream:
		return "stream: Input does not match the specifier of the path"
	case stream != nil && stream.kind != 't' && stream.kind != 'f':
		return "stream: Input should be a valid boolean"
	}
	if a.strict {
		for _, name := range []string{"messages", "max_tokens"} {
			if a.root.get(name) == nil && (name != "max_tokens" || a.r.call.op == opMessages) {
				return name + ": Field required"
			}
		}
	}
	return a.checkVersion()
}

func (a *asked) checkVersion() string {
	v := a.root.get("anthropic_version")
	want := cmp.Or(a.rules.Version, a.traits.version)
	switch {
	case a.traits.version == "" && v != nil:
		return "anthropic_version: Extra inputs are not permitted"
	case a.traits.version != "" && v == nil:
		return "anthropic_version: Field required"
	case a.traits.version != "" && v.text() != want:
		return "anthropic_version: Input should be '" + want + "'"
	}
	if a.r.Get("anthropic-version") != "2026-10-21" {
		return ""
	}
	for _, name := range []string{"temperature", "top_p", "top_k"} {
		if a.root.get(name) != nil {
			return name + ": Extra inputs are not permitted"
		}
	}
	return ""
}

// checkBetas reads the list where the platform has it: Bedrock's in the body,
// one name an element.
func (a *asked) checkBetas() string {
	member := a.root.get("anthropic_beta")
	switch {
	case a.platform != Bedrock && member != nil:
		return "anthropic_beta: Extra inputs are not permitted"
	case a.platform != Bedrock:
		for b := range strings.SplitSeq(a.r.Get("anthropic-beta"), ",") {
			if b = strings.TrimSpace(b); b != "" {
				a.betas = append(a.betas, b)
			}
		}
	case member != nil && (member.kind != '[' || len(member.kids) == 0):
		return "anthropic_beta: Input should be a valid list"
	case member != nil:
		for i := range member.kids {
			a.betas = append(a.betas, member.kids[i].text())
		}
	}
	for i, b := range a.betas {
		switch {
		case slices.Contains(a.betas[:i], b):
			return "anthropic-beta: " + b + " twice"
		case acceptsBeta(a.platform, a.rules, a.strict, b):
		case a.platform == Bedrock:
			return "invalid beta flag"
		default:
			return "Unexpected value(s) `" + b + "` for the `anthropic-beta` header. Please consult our documentation at docs.claude.com or try again without the header."
		}
	}
	return ""
}

func (a *asked) checkFeatures() string {
	f := finder{maxImage: a.traits.image}
	f.body(a.root)
	if a.strict {
		f.limits(shortName(a.platform, a.r.Model), a.root)
	}
	for _, x := range f.found {
		if a.refuses(x.feature) {
			return x.why
		}
	}
	return ""
}

func (a *asked) refuses(feature string) bool {
	switch {
	case feature == "" || slices.Contains(a.rules.Refuse, feature):
		return true
	case slices.Contains(a.rules.Allow, feature), feature == "anthropic_version", feature == "anthropic_beta": // checkVersion and checkBetas have seen them
		return false
	case slices.Contains(a.traits.refuses, feature) && !a.excepted(feature),
		a.rules.Hosting == "azure" && slices.Contains(onAzure, feature):
		return true
	}
	if opens, ok := gates[feature]; ok {
		return !slices.ContainsFunc(a.betas, func(b string) bool {
			return slices.ContainsFunc(opens, func(o string) bool { return strings.HasPrefix(b, o) })
		})
	}
	vendors := !a.traits.strict && slices.Contains(knownToVendor, feature)
	return a.strict && !vendors && !slices.Contains(known, feature)
}

// excepted is what a platform has of a feature that it mostly refuses.
func (a *asked) excepted(feature string) bool {
	switch a.platform {
	case Bedrock: // structured outputs came with the models from 4.5 to 4.6
		name := a.r.Model
		older := strings.Contains(name, "-4-5") || strings.Contains(name, "-4-6")
		return older && slices.Contains(structured, feature)
	case Vertex:
		if feature != "tool:web_search" {
			return false
		}
		tools := a.root.get("tools")
		if tools == nil {
			return true // its results in the history
		}
		return !slices.ContainsFunc(tools.kids, func(t value) bool {
			kind := t.get("type").text()
			return family(kind) == "web_search" && kind != "web_search_20250305"
		})
	}
	return false
}
