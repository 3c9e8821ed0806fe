package fakeplatform

import "slices"

// The platforms that can be imitated.
const (
	Anthropic      = "anthropic"
	ClaudeOnAWS    = "claude-on-aws"
	ClaudeOnGoogle = "claude-on-google"
	Bedrock        = "bedrock"
	Mantle         = "mantle"
	Vertex         = "vertex"
	Foundry        = "foundry"
)

// Platforms lists them all.
func Platforms() []string {
	return []string{Anthropic, ClaudeOnAWS, ClaudeOnGoogle, Bedrock, Mantle, Vertex, Foundry}
}

// traits are what sets a platform apart, as far as it is data.
type traits struct {
	service string   // of SigV4; "" takes none
	ways    []string // of authorization besides: key, bearer-key, token
	version string   // of the body; "" has the header
	ids     string   // before the number of a message
	body    int64    // limit in bytes
	image   int      // limit of one image in bytes of its base64
	// strict refuses what it does not know: members, betas, versions. The others
	// take what is new, unless Rules say Strict.
	strict  bool
	refuses []string // features, see finder
}

const (
	wayKey       = "key"        // x-api-key
	wayBearerKey = "bearer-key" // a key as a bearer token
	wayToken     = "token"      // a token of OAuth
)

// traitsOf follow the reference: limits in sections 2 to 7, features in 12.
var traitsOf = map[string]traits{
	Anthropic: {ways: []string{wayKey}, ids: "msg_fake_anthropic_", body: 32<<20 + 1024, image: 10 << 20},
	ClaudeOnAWS: {
		service: "aws-external-anthropic", ways: []string{wayKey}, ids: "msg_fake_claude-on-aws_", body: 32<<20 + 1024, image: 10 << 20,
		refuses: slices.Concat(newToolsets, []string{"speed", "diagnostics"}),
	},
	ClaudeOnGoogle: {ways: []string{wayToken}, ids: "msg_fake_claude-on-google_", body: 32<<20 + 1024, image: 10 << 20, refuses: []string{"diagnostics"}},
	Bedrock: {
		service: "bedrock", ways: []string{wayBearerKey}, version: "bedrock-2023-05-31", ids: "msg_bdrk_fake_", body: 20 << 20, image: 5 << 20, strict: true,
		refuses: slices.Concat(hostSide, elsewhere, serverTools, newToolsets, structured, []string{"cache_control", "service_tier", "compaction"}),
	},
	Mantle: {
		service: "bedrock-mantle", ways: []string{wayBearerKey}, ids: "msg_bdrk_fake_", body: 20 << 20, image: 5 << 20, strict: true,
		refuses: slices.Concat(hostSide, elsewhere, serverTools, newToolsets, structured, []string{"service_tier", "compaction"}),
	},
	Vertex: {
		ways: []string{wayToken}, version: "vertex-2023-10-16", ids: "msg_vrtx_fake_", body: 30 << 20, image: 5 << 20, strict: true,
		refuses: slices.Concat(hostSide, elsewhere, serverTools, newToolsets, []string{"service_tier", "user_profile_id"}),
	},
	Foundry: {
		ways: []string{wayKey, wayToken}, ids: "msg_fake_foundry_", body: 32<<20 + 1024, image: 10 << 20,
		refuses: slices.Concat(newToolsets, []string{"tool:advisor", "fallbacks", "inference_geo", "speed", "diagnostics"}),
	},
}

// onAzure are the features that Foundry refuses besides for hosting azure.
var onAzure = slices.Concat(serverTools, structured, []string{"tool:tool_search_tool", "tools.defer_loading", "mcp_servers", "block:mcp_tool_use", "block:mcp_tool_result", "container", "source.file"})

// Features that go together; traitsOf says who refuses them.
var (
	hostSide    = []string{"inference_geo", "speed", "mcp_servers", "container", "fallbacks", "thread", "diagnostics"}
	elsewhere   = []string{"source.url", "source.file"}
	serverTools = []string{"tool:web_search", "tool:web_fetch", "tool:code_execution", "tool:advisor", "tool:mcp_toolset", "tools.allowed_callers"}
	newToolsets = []string{"tool:computer_toolset", "tool:browser_toolset"}
	structured  = []string{"output_config.format", "output_format", "tools.strict"}
)
