package fakeplatform

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// content is one user message with the blocks.
func content(blocks string) string {
	return `{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":[{"role":"user","content":[` + blocks + `]}]}`
}

func TestContentAtBedrock(t *testing.T) {
	v := func(name, blocks, contains string) variant {
		status := 400
		if contains == "" {
			status = 0
		}
		return variant{name: name, platform: Bedrock, body: content(blocks), status: status, contains: contains}
	}
	image := func(n int) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", n) + `"}}`
	}
	runVariants(t, []variant{
		v("text", `{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}`, ""),
		v("empty text", `{"type":"text","text":""}`, "messages: text content blocks must be non-empty"),
		v("image", image(5<<20), ""),
		v("image too large", image(5<<20+1), "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242881 bytes > 5242880 bytes"),
		v("too many images", strings.TrimSuffix(strings.Repeat(image(4)+",", 601), ","), "too many images: 601"),
		v("image by URL", `{"type":"image","source":{"type":"url","url":"https://x"}}`, "messages.0.content.0.image.source: Input tag 'url'"),
		v("document by URL", `{"type":"document","source":{"type":"url","url":"https://x"}}`, "messages.0.content.0.document.source: Input tag 'url'"),
		v("image of a file", `{"type":"image","source":{"type":"file","file_id":"file_1"}}`, "image.source: Input tag 'file'"),
		v("upload", `{"type":"container_upload","file_id":"file_1"}`, "Input tag 'container_upload'"),
		v("unknown source", `{"type":"image","source":{"type":"zz"}}`, "Input tag 'zz'"),
		v("document of text", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`, ""),
		v("in a document", `{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url"}}]}}`, "document.source.content.0.image.source: Input tag 'url'"),
		v("in a tool's result", `{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"url"}}]}`, "messages.0.content.0.tool_result.content.1.image.source: Input tag 'url'"),
		v("cache scope", `{"type":"text","text":"a","cache_control":{"type":"ephemeral","scope":"global"}}`, "messages.0.content.0.text.cache_control.ephemeral.scope: Extra inputs are not permitted"),
		v("thinking", `{"type":"thinking","thinking":"hm","signature":"EqQ="}`, ""),
		v("unsigned thinking", `{"type":"thinking","thinking":"hm","signature":""}`, "messages.0.content.0.thinking.signature: Field required"),
		v("web search before", `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, "Input tag 'server_tool_use'"),
		v("its result", `{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`, "Input tag 'web_search_tool_result'"),
		v("tool search before", `{"type":"server_tool_use","id":"s","name":"tool_search_tool_regex","input":{}}`, ""),
		v("its result", `{"type":"tool_search_tool_result","tool_use_id":"s","content":{}}`, ""),
		v("code execution before", `{"type":"bash_code_execution_tool_result","tool_use_id":"s"}`, "Input tag 'bash_code_execution_tool_result'"),
		v("MCP before", `{"type":"mcp_tool_use","id":"s","name":"x","input":{}}`, "Input tag 'mcp_tool_use'"),
		v("fallback before", `{"type":"fallback","from":"a","to":"b"}`, "Input tag 'fallback'"),
		v("unknown block", `{"type":"zz"}`, "Input tag 'zz'"),
	})
}

func TestMembersAtBedrock(t *testing.T) {
	v := func(name, members, contains string) variant {
		status := 400
		if contains == "" {
			status = 0
		}
		return variant{name: name, platform: Bedrock, members: members, status: status, contains: contains}
	}
	with := func(v variant, path string, rules Rules) variant { v.path, v.rules = path, rules; return v }
	format := `"output_config":{"effort":"medium","format":{"type":"json_schema"}}`
	runVariants(t, []variant{
		v("system blocks", `"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]`, ""),
		v("cache scope of system", `"system":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral","scope":"global"}}]`, "system.1.cache_control.ephemeral.scope: Extra"),
		v("empty system block", `"system":[{"type":"text","text":""}]`, "system: text content blocks"),
		v("custom tool", `"tools":[{"name":"t","description":"d","input_schema":{},"eager_input_streaming":true}]`, ""),
		v("member of a tool", `"tools":[{"name":"t","zz":1}]`, "tools.0.custom.zz: Extra inputs"),
		v("strict tool", `"tools":[{"name":"t","strict":true}]`, "tools.0.custom.strict: Extra inputs"),
		v("callers", `"tools":[{"name":"t"},{"name":"u","allowed_callers":["x"]}]`, "tools.1.custom.allowed_callers: Extra inputs"),
		v("cache scope of a tool", `"tools":[{"name":"t","cache_control":{"type":"ephemeral","scope":"x"}}]`, "tools.0.custom.cache_control.ephemeral.scope: Extra"),
		v("client tools", `"tools":[{"type":"bash_20250124","name":"bash"},{"type":"memory_20250818","name":"memory"},{"type":"text_editor_20250728","name":"e"},{"type":"tool_search_tool_regex_20251119","name":"s"}]`, ""),
		v("unknown tool", `"tools":[{"type":"zz_20270101"}]`, "tools.0: Input tag 'zz_20270101'"),
		v("computer without its beta", `"tools":[{"type":"computer_20251124","name":"computer"}]`, "tools.0: Input tag 'computer_20251124'"),
		v("computer", `"anthropic_beta":["computer-use-2025-11-24"],"tools":[{"type":"computer_20251124","name":"computer"}]`, ""),
		v("context editing without its beta", `"context_management":{"edits":[]}`, "context_management: Extra inputs are not permitted"),
		v("context editing", `"anthropic_beta":["context-management-2025-06-27"],"context_management":{"edits":[]}`, ""),
		v("block binding without its beta", `"thinking":{"type":"adaptive","block_binding":{}}`, "thinking.block_binding: Extra inputs"),
		v("unknown output config", `"output_config":{"zz":1}`, "output_config.zz: Extra inputs"),
		v("structured outputs", format, "output_config.format: Extra inputs"),
		with(v("structured outputs of 4.5", format, ""), "/model/us.anthropic.claude-haiku-4-5-20251001-v1:0/invoke", Rules{}),
		with(v("refused by rule", `"output_config":{"effort":"medium"}`, "output_config.effort: Extra inputs"), "", Rules{Refuse: []string{"output_config.effort"}}),
		with(v("no ttl by rule", `"tools":[{"name":"t","cache_control":{"type":"ephemeral","ttl":"1h"}}]`, "tools.0.custom.cache_control.ephemeral.ttl: Extra"), "", Rules{Refuse: []string{"cache_control.ttl"}}),
		with(v("variants allowed by rule", `"tools":[{"type":"bash_code_execution_20250825"}]`, ""), "", Rules{Allow: []string{"tool:code_execution"}}),
		with(v("allowed by rule", `"service_tier":"auto"`, ""), "", Rules{Allow: []string{"service_tier"}}),
	})
	for _, tool := range []string{"web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "advisor_20260301", "computer_toolset_20260801", "browser_toolset_20260801", "mcp_toolset"} {
		v(tool, fmt.Sprintf(`"tools":[{"type":%q,"name":"x"}]`, tool), "tools.0: Input tag '"+tool+"'").run(t)
	}
}

func TestGatesAtTheVendor(t *testing.T) {
	for member, beta := range map[string]string{
		"context_management": "context-management-2025-06-27", "mcp_servers": "mcp-client-2025-11-20", "thread": "message-threads-2026-08-12", "fallbacks": "server-side-fallback-2026-07-01",
		"compaction": "compact-2026-09-04",
	} {
		members := fmt.Sprintf("%q:{}", member)
		variant{name: member, platform: Anthropic, members: members, status: 400, contains: member + ": Extra inputs"}.run(t)
		variant{name: member, platform: Anthropic, members: members, fields: []string{"anthropic-beta", beta}, contains: "msg_fake"}.run(t)
	}
}

func TestModelLimits(t *testing.T) {
	const haiku45, opus46, opus48, fable, sonnet = "us.anthropic.claude-haiku-4-5-20251001-v1:0", "us.anthropic.claude-opus-4-6-v1", "us.anthropic.claude-opus-4-8", "us.anthropic.claude-fable-5", "us.anthropic.claude-sonnet-5"
	turns := func(role string) string {
		return fmt.Sprintf(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":[{"role":"user","content":"a"},{"role":%q,"content":"b"}]}`, role)
	}
	for _, c := range []struct{ name, model, members, body, contains string }{
		{"adaptive on 4.5", haiku45, `"thinking":{"type":"adaptive"}`, "", "thinking.type: 'adaptive'"},
		{"manual on 4.5", haiku45, `"thinking":{"type":"enabled","budget_tokens":1024}`, "", ""},
		{"adaptive on 4.6", opus46, `"thinking":{"type":"adaptive"}`, "", ""},
		{"manual on 4.8", opus48, `"thinking":{"type":"enabled","budget_tokens":1024}`, "", "thinking.type: 'enabled'"},
		{"disabled on Fable", fable, `"thinking":{"type":"disabled"}`, "", "thinking.type: 'disabled'"},
		{"disabled on Sonnet", sonnet, `"thinking":{"type":"disabled"}`, "", ""},
		{"temperature on 4.6", opus46, `"temperature":0.5`, "", ""},
		{"temperature on 4.8", opus48, `"temperature":0.5`, "", "`temperature` is deprecated"},
		{"default temperature on 4.8", opus48, `"temperature":1.0`, "", ""},
		{"top_k on 4.8", opus48, `"top_k":5`, "", "`top_k` is deprecated"},
		{"prefill on 4.5", haiku45, "", turns("assistant"), ""},
		{"prefill on 4.6", opus46, "", turns("assistant"), "prefill"},
		{"system turn on Opus 4.8", opus48, "", turns("system"), ""},
		{"system turn on Sonnet 5", sonnet, "", turns("system"), "'user' or 'assistant'"},
	} {
		v := variant{name: c.name, platform: Bedrock, path: bedrockOf(c.model, "invoke"), members: c.members, body: c.body, contains: c.contains}
		if c.contains != "" {
			v.status = 400
		}
		t.Run(c.name, v.run)
	}
	variant{name: "a model that does not say", platform: Bedrock, path: bedrockOf("claude-wren-1", "invoke"), rules: Rules{Models: []string{"claude-wren-1"}}, members: `"thinking":{"type":"adaptive"}`}.run(t)
	for name, want := range map[string]int{"claude-opus-4-20250514": 40, "claude-opus-4-6": 46, "claude-haiku-4-5@20251001": 45, "claude-sonnet-5": 50, "claude-wren-1": 0, "claude-3-7-sonnet-20250219": 0} {
		if _, got := generation(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestMessagesOfOddShape(t *testing.T) {
	body := func(messages string) string {
		return `{"model":"claude-opus-5-5","max_tokens":5,"messages":` + messages + `}`
	}
	runVariants(t, []variant{
		{name: "no content", platform: Anthropic, body: body(`[{"role":"user"}]`), contains: "msg_fake"},
		{name: "no list", platform: Anthropic, body: body(`{}`), contains: "msg_fake"},
		{name: "no objects", platform: Anthropic, body: body(`[1,[2],"x"]`), contains: "msg_fake"},
		{name: "system turn by rule", platform: Anthropic, rules: Rules{Refuse: []string{"role.system"}}, body: body(`[{"role":"system","content":"x"}]`), status: 400, contains: "messages.0.role"},
	})
}

func TestTooManyMessages(t *testing.T) {
	one := `{"role":"user","content":"a"},`
	body := func(n int) string {
		return `{"model":"claude-opus-5-5","max_tokens":5,"messages":[` + strings.TrimSuffix(strings.Repeat(one, n), ",") + `]}`
	}
	variant{name: "at the limit", platform: Anthropic, body: body(100_000), contains: "msg_fake"}.run(t)
	variant{name: "above", platform: Anthropic, body: body(100_001), status: 400, contains: "at most 100000 items"}.run(t)
}

// TestRefusedByPlatform holds the tables of traits against the reference's
// matrix, one marker a row.
func TestRefusedByPlatform(t *testing.T) {
	markers := map[string]string{
		"service_tier": `"service_tier":"auto"`, "diagnostics": `"diagnostics":{}`, "inference_geo": `"inference_geo":"us"`, "speed": `"speed":"fast"`, "container": `"container":{}`,
		"cache_control": `"cache_control":{"type":"ephemeral"}`, "format": `"output_config":{"format":{}}`, "output_format": `"output_format":{}`, "user_profile_id": `"user_profile_id":"p"`,
		"strict": `"tools":[{"name":"t","strict":true}]`, "callers": `"tools":[{"name":"t","allowed_callers":[]}]`, "fetch": `"tools":[{"type":"web_fetch_20250910"}]`,
		"code": `"tools":[{"type":"code_execution_20250825"}]`, "search": `"tools":[{"type":"web_search_20250305"}]`, "toolset": `"tools":[{"type":"browser_toolset_20260801"}]`,
		"tool search": `"tools":[{"type":"tool_search_tool_bm25_20251119"}]`, "effort": `"output_config":{"effort":"low"}`, "unknown": `"zz":1`,
	}
	for platform, refused := range map[string]string{
		Anthropic:      "",
		ClaudeOnAWS:    "diagnostics speed toolset",
		ClaudeOnGoogle: "diagnostics",
		Foundry:        "diagnostics inference_geo speed toolset",
		Mantle:         "service_tier diagnostics inference_geo speed container format output_format strict callers fetch code search toolset unknown",
		Vertex:         "service_tier diagnostics inference_geo speed container callers fetch code toolset user_profile_id unknown",
		Bedrock:        "service_tier diagnostics inference_geo speed container cache_control format output_format strict callers fetch code search toolset unknown",
	} {
		for name, members := range markers {
			v := variant{name: name, platform: platform, members: members}
			if slices.Contains(strings.Fields(refused), name) {
				v.status = 400
			}
			t.Run(platform+"/"+name, v.run)
		}
	}
}

func TestImagesByPlatform(t *testing.T) {
	limits := map[string]int{Anthropic: 10, ClaudeOnAWS: 10, ClaudeOnGoogle: 10, Foundry: 10, Bedrock: 5, Mantle: 5, Vertex: 5}
	for _, platform := range Platforms() {
		limit := limits[platform] << 20
		for n, status := range map[int]int{limit: 0, limit + 1: 400} {
			message := `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", n) + `"}}]}]`
			variant{name: "image", platform: platform, body: strings.Replace(bases[platform].body, "[]", message, 1), status: status}.run(t)
		}
		byURL := strings.Replace(bases[platform].body, "[]", `[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]`, 1)
		v := variant{name: "by URL", platform: platform, body: byURL}
		if limits[platform] == 5 {
			v.status, v.contains = 400, "image.source: Input tag 'url'"
		}
		v.run(t)
	}
}
