package fakeplatform

import (
	"slices"
	"strings"
)

// Betas by platform, reference section 8. Those that a host rejects on the list
// of 8.3 are not on its line here; what the list does not name a strict platform
// does not take.
var (
	bedrockBetas = strings.Fields(`tool-search-tool-2025-10-19 compact-2026-01-12 computer-use-2025-01-24 computer-use-2025-11-24 context-1m-2025-08-07
		context-management-2025-06-27 effort-2025-11-24 fine-grained-tool-streaming-2025-05-14 thinking-binding-controls-2026-08-01 thinking-display-updates-2026-08-18
		mid-conversation-output-config-2026-07-01 mid-conversation-tool-changes-2026-07-01 dangerous-tool-use-2026-09-03`)
	mantleBetas = strings.Fields(`tool-search-tool-2025-10-19 tool-examples-2025-10-29 compact-2026-01-12 computer-use-2025-01-24 computer-use-2025-11-24 context-1m-2025-08-07
		context-management-2025-06-27 effort-2025-11-24 fine-grained-tool-streaming-2025-05-14 interleaved-thinking-2025-05-14 structured-outputs-2025-11-13 output-128k-2025-02-19
		token-efficient-tools-2025-02-19 web-search-2025-03-05 thinking-binding-controls-2026-08-01 thinking-display-updates-2026-08-18 per-turn-control-2026-07-01
		dangerous-tool-use-2026-09-03 claude-code-20250219`)
	vertexBetas = strings.Fields(`tool-search-tool-2025-10-19 compact-2026-01-12 compact-2026-09-04 computer-use-2025-01-24 computer-use-2025-11-24 context-1m-2025-08-07
		context-management-2025-06-27 interleaved-thinking-2025-05-14 web-search-2025-03-05 thinking-binding-controls-2026-08-01 thinking-display-updates-2026-08-18
		per-turn-control-2026-07-01 dangerous-tool-use-2026-09-03`)
	// notFoundry are refused there; everything else is taken.
	notFoundry = strings.Fields(`compact-2026-01-12 fine-grained-tool-streaming-2025-05-14 output-128k-2025-02-19 token-efficient-tools-2025-02-19 fast-mode-2026-02-01
		advisor-tool-2026-03-01 thinking-binding-controls-2026-08-01`)
	// firstPartyBetas are what the vendor's own platforms know, when they are to
	// be strict.
	firstPartyBetas = slices.Concat(bedrockBetas, mantleBetas, vertexBetas, notFoundry, strings.Fields(`advanced-tool-use-2025-11-20 files-api-2025-04-14 skills-2025-10-02
		code-execution-2025-08-25 mcp-client-2025-04-04 mcp-client-2025-11-20 mcp-client-2026-09-15 web-fetch-2025-09-10 prompt-caching-scope-2026-01-05
		prompt-caching-2024-07-31 pdfs-2024-09-25 token-counting-2024-11-01 message-batches-2024-09-24 extended-cache-ttl-2025-04-11 cache-diagnosis-2026-04-07
		inline-tools-2026-09-15 model-context-window-exceeded-2025-08-26 output-300k-2026-03-24 server-side-fallback-2026-06-01 server-side-fallback-2026-07-01
		fallback-credit-2026-06-01 fallback-credit-2026-07-01 mid-conversation-system-clear-at-2026-08-21 thinking-token-count-2026-05-13 task-budgets-2026-03-13
		message-threads-2026-08-12 user-profiles-billing-2026-10-01 dev-full-thinking-2025-05-14 oauth-2025-04-20`))
)

func acceptsBeta(platform string, rules Rules, strict bool, name string) bool {
	if rules.Betas != nil {
		return slices.Contains(rules.Betas, name)
	}
	switch platform {
	case Bedrock:
		return slices.Contains(bedrockBetas, name)
	case Mantle:
		return slices.Contains(mantleBetas, name)
	case Vertex:
		return slices.Contains(vertexBetas, name)
	case Foundry:
		if slices.Contains(notFoundry, name) {
			return false
		}
	}
	return !strict || slices.Contains(firstPartyBetas, name)
}
