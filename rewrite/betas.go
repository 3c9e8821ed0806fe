package rewrite

import (
	"slices"
	"strings"
)

// beta is a known token of anthropic-beta.
type beta struct {
	name string
	// opens are the features that need the token. Where the request uses none of
	// them, its loss changes nothing.
	opens FeatureSet
	// noOp: it is the default by now, or only says who asks.
	noOp bool
	// at says what foundry, bedrock, mantle and vertex do with it: `y` takes it,
	// `n` refuses it, `-` is not listed, `r` takes it by another name.
	at string
}

// searchBeta is what advanced-tool-use is called on clouds.
const searchBeta = "tool-search-tool-2025-10-19"

// betas are the tokens of the platform reference, sections 8.1 to 8.3. The other
// platforms take every token. What is not listed goes to those that Anthropic
// operates and to no other.
var betas = []beta{
	{"advanced-tool-use-2025-11-20", setOf(ToolSearch, AllowedCallers, InputExamples), false, "yrrr"},
	{searchBeta, setOf(ToolSearch), false, "-yyy"},
	{"tool-examples-2025-10-29", setOf(InputExamples), false, "--y-"},
	{"compact-2026-01-12", setOf(ContextCompact), false, "nyyy"},
	{"compact-2026-09-04", setOf(Compaction), false, "---y"},
	{"computer-use-2025-01-24", 0, false, "yyyy"},
	{"computer-use-2025-11-24", 0, false, "yyyy"},
	{"context-1m-2025-08-07", 0, false, "yyyy"},
	{"context-management-2025-06-27", setOf(ContextManagement, ContextCompact), false, "yyyy"},
	{"effort-2025-11-24", 0, true, "yyyn"},
	{"fine-grained-tool-streaming-2025-05-14", 0, false, "nyyn"},
	{"interleaved-thinking-2025-05-14", 0, false, "ynyy"},
	{"structured-outputs-2025-11-13", 0, true, "ynyn"},
	{"output-128k-2025-02-19", 0, true, "nnyn"},
	{"token-efficient-tools-2025-02-19", 0, true, "nnyn"},
	{"files-api-2025-04-14", setOf(FileID), false, "ynnn"},
	{"skills-2025-10-02", setOf(Container), false, "ynnn"},
	{"code-execution-2025-08-25", 0, true, "ynnn"},
	{"mcp-client-2025-04-04", setOf(MCPServers), false, "ynnn"},
	{"mcp-client-2025-11-20", setOf(MCPServers), false, "ynnn"},
	{"mcp-client-2026-09-15", setOf(MCPServers), false, "ynnn"},
	{"web-search-2025-03-05", 0, true, "ynyy"},
	{"web-fetch-2025-09-10", 0, true, "ynnn"},
	{"fast-mode-2026-02-01", setOf(Speed), false, "nnnn"},
	{"advisor-tool-2026-03-01", setOf(Advisor), false, "nnnn"},
	{"prompt-caching-scope-2026-01-05", setOf(CacheScope), false, "ynnn"},
	{"thinking-binding-controls-2026-08-01", setOf(ThinkingBinding), false, "nyyy"},
	{"thinking-display-updates-2026-08-18", 0, false, "yyyy"},
	{"mid-conversation-output-config-2026-07-01", 0, false, "-y--"},
	{"mid-conversation-tool-changes-2026-07-01", setOf(ToolChanges), false, "-y--"},
	{"per-turn-control-2026-07-01", 0, false, "ynyy"},
	{"dangerous-tool-use-2026-09-03", 0, false, "yyyy"},
	{"claude-code-20250219", 0, true, "--y-"},
	{"oauth-2025-04-20", 0, true, "----"},
	{"prompt-caching-2024-07-31", 0, true, "----"},
	{"pdfs-2024-09-25", 0, true, "----"},
	{"token-counting-2024-11-01", 0, true, "----"},
	{"message-batches-2024-09-24", 0, true, "----"},
	{"extended-cache-ttl-2025-04-11", 0, true, "----"},
	{"cache-diagnosis-2026-04-07", setOf(Diagnostics), true, "----"},
	{"server-side-fallback-2026-06-01", setOf(Fallbacks), false, "----"},
	{"server-side-fallback-2026-07-01", setOf(Fallbacks), false, "----"},
	{"fallback-credit-2026-06-01", setOf(FallbackCredit), false, "----"},
	{"fallback-credit-2026-07-01", setOf(FallbackCredit), false, "----"},
	{"task-budgets-2026-03-13", setOf(OutputTaskBudget), false, "----"},
	{"message-threads-2026-08-12", setOf(Thread), false, "----"},
	{"model-context-window-exceeded-2025-08-26", 0, false, "----"},
	{"thinking-token-count-2026-05-13", 0, false, "----"},
}

// cells are the columns that beta.at has.
var cells = map[column]int{colFoundry: 0, colFoundryAzure: 0, colBedrock: 1, colMantle: 2, colVertex: 3}

// unlisted is how a token that is not in the table is called where the client's
// own text must not be repeated.
const unlisted = "anthropic-beta"

func betaNamed(token string) (beta, bool) {
	i := slices.IndexFunc(betas, func(b beta) bool { return b.name == token })
	if i < 0 {
		return beta{name: unlisted, at: "----"}, false
	}
	return betas[i], true
}

// betas sorts the client's tokens into those that remain and those that do not.
// A token and what it opens go together: where the token may not go, what it
// opens is stripped too, and where that is stripped, the token goes with it.
func (f *Fit) betas(h *Host, facts *Facts, lines []string) {
	list := Tokens(lines)
	for _, token := range list {
		if b, _ := betaNamed(token); h.names(b) == "" {
			f.drop(h, b, facts)
		}
	}
	// The member context_management goes as a whole.
	if whole := setOf(ContextManagement, ContextCompact); f.gone()&whole != 0 {
		f.Stripped |= whole & facts.Uses
	}
	for _, token := range list {
		b, known := betaNamed(token)
		name := h.names(b)
		if opened := b.opens & facts.Uses; name == "" || (opened != 0 && opened&^f.gone() == 0) {
			continue
		}
		if !known {
			name = token
		}
		// Another token may have become this one.
		if name != searchBeta || !slices.Contains(f.Betas, name) {
			f.Betas = append(f.Betas, name)
		}
	}
}

// names is what the host calls a beta; "" is one that it is not sent.
func (h *Host) names(b beta) string {
	at, listed := cells[columnOf(h.Platform, h.Hosting)]
	if !listed {
		return b.name
	}
	switch verdict := b.at[at]; {
	case verdict == 'y', verdict == '-' && at == 0: // foundry is operated by Anthropic
		return b.name
	case verdict == 'r':
		return searchBeta
	}
	return ""
}

// drop leaves a token out, and with it what it opens, unless the policy says to
// keep that.
func (f *Fit) drop(h *Host, b beta, facts *Facts) {
	lost := b.opens & facts.Uses &^ (f.gone() | f.Refused)
	for one := range lost.all {
		switch {
		case h.kept(one):
		case facts.removable(one):
			f.Stripped |= one.bit()
		default:
			f.Refused |= one.bit()
		}
	}
	if b.opens == 0 && !b.noOp && !slices.Contains(f.StrippedBetas, b.name) {
		f.StrippedBetas = append(f.StrippedBetas, b.name)
	}
}

// kept reports whether the policy keeps f by name, or the host takes it with or
// without a beta.
func (h *Host) kept(f Feature) bool {
	return h.Kept(f) || f == ToolChanges || f == InputExamples
}

// BetaRow is a known token of anthropic-beta, for people.
type BetaRow struct {
	Token string
	// Opens are the features that need it.
	Opens []string
	// NoOp: its loss changes nothing.
	NoOp bool
	// Hosts say by what name each host gets it, in the order of Hosts; "" is not
	// at all.
	Hosts []string
}

// Betas are the known tokens.
func Betas() []BetaRow {
	rows := make([]BetaRow, 0, len(betas))
	for _, b := range betas {
		row := BetaRow{Token: b.name, Opens: b.opens.Names(), NoOp: b.noOp}
		for c := range columns {
			host := Host{Platform: columnNames[c]}
			if c == colFoundryAzure {
				host = Host{Platform: "foundry", Hosting: "azure"}
			}
			var fit Fit
			fit.betas(&host, &Facts{}, []string{b.name})
			row.Hosts = append(row.Hosts, strings.Join(fit.Betas, ""))
		}
		rows = append(rows, row)
	}
	return rows
}

// Tokens are those of all lines of anthropic-beta, in order, each once (RFC 9110,
// section 5.3: several lines are one list). The work grows with their number.
func Tokens(lines []string) (all []string) {
	seen := map[string]struct{}{}
	for _, line := range lines {
		for token := range strings.SplitSeq(line, ",") {
			token = strings.Trim(token, " \t")
			if _, twice := seen[token]; twice || token == "" {
				continue
			}
			seen[token] = struct{}{}
			all = append(all, token)
		}
	}
	return all
}
