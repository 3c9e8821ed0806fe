package rewrite

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every feature has a row, and every row an action for every host.
func TestTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range Rows() {
		if row.Feature == "" || seen[row.Feature] || len(row.Hosts) != len(Hosts()) {
			t.Errorf("row %q", row.Feature)
		}
		seen[row.Feature] = true
		if f, ok := FeatureNamed(row.Feature); !ok || f.String() != row.Feature {
			t.Errorf("%q is not found by its name", row.Feature)
		}
		if row.Hosts[colAnthropic] != Keep {
			t.Errorf("%q: the first-party API takes everything", row.Feature)
		}
	}
	for f := range strippable.all {
		for c, a := range table[f].hosts {
			if (a == Strip || a == StripLossless) && !f.Strippable() {
				t.Errorf("%s at %s is to be stripped and cannot be", f, columnNames[c])
			}
		}
	}
}

// What must never be stripped without a word of the policy (platform reference,
// section 12).
func TestNeverStrippedByTheTable(t *testing.T) {
	for _, f := range []Feature{
		WebSearch, WebSearchLater, WebFetch, CodeExecution, ToolSearch, MCPServers, Container, FileID, OutputFormat, StrictTools,
		InferenceGeo, Thread, FallbackCredit, SystemMessages,
	} {
		for c, a := range table[f].hosts {
			if a == Strip || a == StripLossless {
				t.Errorf("%s is stripped for %s", f, columnNames[c])
			}
		}
	}
}

func TestFit(t *testing.T) {
	const manage = `"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`
	for _, c := range []struct {
		name, members, betas                    string
		host                                    Host
		refused, stripped, lossless, kept, lost string
	}{
		{"the first party takes all", `"speed":"fast","thread":"t"`, "x,y", Host{Platform: "anthropic"}, "", "", "", "x,y", ""},
		{"no loss", `"service_tier":"auto","cache_control":{}`, "prompt-caching-2024-07-31", Host{Platform: "bedrock"}, "", "", "automatic_caching,service_tier", "", ""},
		{"refused", `"inference_geo":"us","mcp_servers":[]`, "", Host{Platform: "vertex"}, "mcp_servers,inference_geo", "", "", "", ""},
		{"betas by the list, in order, once", "", "context-1m-2025-08-07 , fast-mode-2026-02-01,interleaved-thinking-2025-05-14, context-1m-2025-08-07", Host{Platform: "bedrock"}, "", "", "", "context-1m-2025-08-07", "interleaved-thinking-2025-05-14"},
		{"unknown ones go, without a name", "", "zz-secret-2027", Host{Platform: "vertex"}, "", "", "", "", "anthropic-beta"},
		{"unknown ones pass", "", "zz-secret-2027", Host{Platform: "foundry"}, "", "", "", "zz-secret-2027", ""},
		{"renamed", `"tools":[{"type":"tool_search_tool_regex_20251119"}]`, "advanced-tool-use-2025-11-20", Host{Platform: "bedrock"}, "", "", "", "tool-search-tool-2025-10-19", ""},
		{"a beta and its member stay together", manage, "context-management-2025-06-27", Host{Platform: "vertex"}, "", "", "", "context-management-2025-06-27", ""},
		{"a beta goes with its member", manage, "context-management-2025-06-27", Host{Platform: "vertex", Overrides: map[Feature]Action{ContextManagement: Strip}}, "", "context_management", "", "", ""},
		{"a member goes with its beta", `"context_management":{"edits":[{"type":"compact_20260112"}]}`, "compact-2026-01-12", Host{Platform: "foundry"}, "", "context_management,context_management.compact", "", "", ""},
		{"whatever the order of the tokens", `"context_management":{"edits":[{"type":"compact_20260112"}]}`, "context-management-2025-06-27,compact-2026-01-12", Host{Platform: "foundry"}, "", "context_management,context_management.compact", "", "", ""},
		{"what no edit takes out is not stripped", `"messages":[{"role":"assistant","content":[{"type":"compaction"}]}],"max_tokens":1`, "", Host{Platform: "bedrock", Overrides: map[Feature]Action{Compaction: Strip, Prefill: Keep}}, "compaction", "", "", "", ""},
		{"a member that is null goes", `"thread":null,"service_tier":null,"temperature":null`, "", Host{Platform: "bedrock"}, "", "", "thread,service_tier", "", ""},
		{"one that is null stays where it is taken", `"inference_geo":null`, "", Host{Platform: "claude-on-aws"}, "", "", "", "", ""},
		{"renamed once", `"tools":[{"defer_loading":true}]`, "advanced-tool-use-2025-11-20,tool-search-tool-2025-10-19", Host{Platform: "vertex"}, "", "", "", "tool-search-tool-2025-10-19", ""},
		{"an override keeps", `"diagnostics":{}`, "", Host{Platform: "bedrock", Overrides: map[Feature]Action{Diagnostics: Keep}}, "", "", "", "", ""},
		{"an override refuses", `"output_config":{"effort":"low"}`, "", Host{Platform: "anthropic", Overrides: map[Feature]Action{OutputEffort: Refuse}}, "output_config.effort", "", "", "", ""},
		{"the model's own limits are the client's business", `"temperature":1,"thinking":{"type":"enabled"}`, "", Host{Platform: "anthropic", Model: "claude-opus-5-5"}, "", "", "", "", ""},
		{"another model's are not", `"temperature":1,"thinking":{"type":"enabled"}`, "", Host{Platform: "anthropic", Model: "claude-opus-5-5", Crossing: true}, "thinking.enabled", "temperature", "", "", ""},
		{"structured outputs at InvokeModel", `"output_config":{"format":{}}`, "", Host{Platform: "bedrock", Model: "claude-opus-5-5"}, "output_config.format", "", "", "", ""},
		{"of the models that have them there", `"output_config":{"format":{}}`, "", Host{Platform: "bedrock", Model: "claude-sonnet-4-5-20250929"}, "", "", "", "", ""},
		{"hosted on Azure", `"tools":[{"type":"web_fetch_20250910"}]`, "", Host{Platform: "foundry", Hosting: "azure"}, "web_fetch", "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts, err := Inspect([]byte(strings.Replace(`{"model":"m",`+c.members+`}`, ",}", "}", 1)))
			if err != nil {
				t.Fatal(err)
			}
			fit := facts.Fit(&c.host, []string{c.betas})
			for _, pair := range [][2]string{
				{strings.Join(fit.Refused.Names(), ","), c.refused}, {strings.Join(fit.Stripped.Names(), ","), c.stripped},
				{strings.Join(fit.Lossless.Names(), ","), c.lossless}, {strings.Join(fit.Betas, ","), c.kept}, {strings.Join(fit.StrippedBetas, ","), c.lost},
			} {
				if pair[0] != pair[1] {
					t.Errorf("got %q, want %q in %+v", pair[0], pair[1], fit)
				}
			}
		})
	}
}

func TestGeneration(t *testing.T) {
	for model, want := range map[string]int{
		"claude-opus-5-5": 55, "claude-opus-5": 50, "claude-haiku-4-5-20251001": 45, "claude-sonnet-4-20250514": 40, "claude-3-opus-20240229": 0,
		"claude-fable-5-2": 52, "gpt": 0, "": 0, "claude-mythos-preview": 0,
	} {
		if _, n := generation(model); n != want {
			t.Errorf("%s: %d, want %d", model, n, want)
		}
	}
}

// Tokens in several lines are one list.
func TestBetaLines(t *testing.T) {
	facts, err := Inspect([]byte(`{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	host := Host{Platform: "mantle"}
	one := facts.Fit(&host, []string{"claude-code-20250219, oauth-2025-04-20,interleaved-thinking-2025-05-14 ,fast-mode-2026-02-01"})
	four := facts.Fit(&host, []string{"claude-code-20250219", " oauth-2025-04-20", "interleaved-thinking-2025-05-14 ", "fast-mode-2026-02-01"})
	want := []string{"claude-code-20250219", "interleaved-thinking-2025-05-14"}
	if !slices.Equal(one.Betas, want) || !slices.Equal(four.Betas, want) {
		t.Errorf("%v and %v, want %v", one.Betas, four.Betas, want)
	}
}

// Sixty kilobytes of tokens are as cheap as few, each.
func TestManyTokens(t *testing.T) {
	var line strings.Builder
	for i := range 10000 {
		line.WriteString("t" + strconv.Itoa(i) + ",")
	}
	var facts Facts
	for platform, want := range map[string]int{"anthropic": 10000, "foundry": 10000, "bedrock": 0} {
		if fit := facts.Fit(&Host{Platform: platform}, []string{line.String(), line.String()}); len(fit.Betas) != want {
			t.Errorf("%s: %d tokens, want %d", platform, len(fit.Betas), want)
		}
	}
}
