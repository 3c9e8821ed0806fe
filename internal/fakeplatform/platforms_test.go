package fakeplatform

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	bedrockPath = "/model/us.anthropic.claude-opus-5-5/invoke"
	bedrockBody = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":[]}`
	vertexPath  = "/v1/projects/acme/locations/eu/publishers/anthropic/models/claude-opus-5-5:rawPredict"
	vertexBody  = `{"anthropic_version":"vertex-2023-10-16","max_tokens":5,"messages":[]}`
	mantleBody  = `{"model":"anthropic.claude-opus-5-5","max_tokens":5,"messages":[]}`
	googlePath  = "/v1/projects/acme/locations/global/workspaces/wrkspc_1/invoke/v1/messages"
)

// base is a good request of a platform.
type base struct {
	path, body string
	fields     []string
}

var bases = map[string]base{
	Anthropic:      {"/v1/messages", small, nil},
	ClaudeOnAWS:    {"/v1/messages", small, []string{"anthropic-workspace-id", "wrkspc_1"}},
	ClaudeOnGoogle: {googlePath, small, []string{"x-api-key", "", "authorization", "Bearer tok"}},
	Bedrock:        {bedrockPath, bedrockBody, []string{"x-api-key", "", "anthropic-version", "", "authorization", "Bearer k"}},
	Mantle:         {"/anthropic/v1/messages", mantleBody, []string{"x-api-key", "", "authorization", "Bearer k"}},
	Vertex:         {vertexPath, vertexBody, []string{"x-api-key", "", "anthropic-version", "", "authorization", "Bearer tok"}},
	Foundry:        {"/anthropic/v1/messages", small, nil},
}

// with is the base's body with more members.
func (b base) with(members string) string { return strings.Replace(b.body, "{", "{"+members+",", 1) }

// variant is a good request with one thing changed, and what becomes of it.
type variant struct {
	name, platform string
	path           string // "" is the base's
	members        string // added to the base's body
	body           string // replaces it
	fields         []string
	method         string
	rules          Rules
	status         int // 0 is 200
	contains       string
}

func (v variant) run(t *testing.T) {
	b := bases[v.platform]
	s := newServer(t, v.platform)
	s.SetRules(v.rules)
	if v.path == "" {
		v.path = b.path
	}
	body := b.body
	if v.members != "" {
		body = b.with(v.members)
	}
	if v.body != "" {
		body = v.body
	}
	req := request(t, s, v.path, body, append(append([]string{}, b.fields...), v.fields...)...)
	if v.method != "" {
		req.Method = v.method
		if v.method == http.MethodGet {
			req.Body, req.ContentLength = http.NoBody, 0
		}
	}
	status, got := do(t, req)
	want := v.status
	if want == 0 {
		want = 200
	}
	if status != want || !strings.Contains(got, v.contains) {
		t.Errorf("got %d %.300s, want %d with %q", status, got, want, v.contains)
	}
	if refused := s.Requests()[0].Refusal != ""; refused != (want >= 400) {
		t.Errorf("recorded as refused: %v (%s)", refused, s.Requests()[0].Refusal)
	}
}

func runVariants(t *testing.T, all []variant) {
	t.Helper()
	for _, v := range all {
		t.Run(v.platform+"/"+v.name, v.run)
	}
}

func TestGoodRequests(t *testing.T) {
	for _, platform := range Platforms() {
		variant{name: "good", platform: platform, contains: `hello from ` + platform}.run(t)
	}
}

func bedrockOf(model, operation string) string { return "/model/" + model + "/" + operation }

func TestBedrockPathsAndModels(t *testing.T) {
	const old = "us.anthropic.claude-haiku-4-5-20251001-v1"
	v := func(name, path string, status int, contains string) variant {
		return variant{name: name, platform: Bedrock, path: path, status: status, contains: contains}
	}
	listed := Rules{Models: []string{"eu.anthropic.claude-wren-1-v1:0", "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"}}
	with := func(v variant, rules Rules) variant { v.rules = rules; return v }
	runVariants(t, []variant{
		v("raw colon", bedrockOf(old+":0", "invoke"), 0, `"model":"claude-haiku-4-5-20251001"`),
		v("encoded colon", bedrockOf(old+"%3A0", "invoke"), 0, "msg_bdrk_"),
		v("encoded slash of an ARN", bedrockOf("arn:aws:bedrock:us-east-1:1:inference-profile%2Fus.anthropic.claude-opus-5-5", "invoke"), 0, `"model":"claude-opus-5-5"`),
		v("raw slash", bedrockOf("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5", "invoke"), 404, "Not found"),
		v("character that must be encoded", bedrockOf("us.anthropic.claude-opus-5-5;x", "invoke"), 400, "not encoded"),
		v("no model", "/model//invoke", 400, "no model"),
		v("dots", bedrockOf("%2E%2E", "invoke"), 400, "no model"),
		v("wrong escape", bedrockOf("a%25zz", "invoke"), 400, "identifier is invalid"),
		v("unknown operation", bedrockOf("us.anthropic.claude-opus-5-5", "converse"), 404, "Not found"),
		v("query", bedrockPath+"?beta=true", 400, "query"),
		v("first-party path", "/v1/messages", 404, "Not found"),
		v("needs a profile", bedrockOf("anthropic.claude-opus-5-5", "invoke"), 400, "with on-demand throughput isn't supported"),
		v("needs none", bedrockOf("anthropic.claude-mythos-preview", "invoke"), 0, "msg_bdrk_"),
		v("end of life", bedrockOf("anthropic.claude-opus-4-20250514-v1:0", "invoke"), 404, "end of its life"),
		v("unknown", bedrockOf("us.anthropic.claude-wren-1", "invoke"), 400, "identifier is invalid"),
		v("first-party ID", bedrockOf("claude-opus-5-5", "invoke"), 400, "identifier is invalid"),
		v("prefix it has not", bedrockOf("jp.anthropic.claude-opus-4-1-20250805-v1:0", "invoke"), 400, "identifier is invalid"),
		with(v("profile of another geography", bedrockPath, 400, "identifier is invalid"), Rules{Region: "eu-central-1"}),
		with(v("profile of this geography", bedrockPath, 0, "msg_bdrk_"), Rules{Region: "us-west-2"}),
		with(v("global everywhere", bedrockOf("global.anthropic.claude-opus-5-5", "invoke"), 0, "msg_bdrk_"), Rules{Region: "eu-central-1"}),
		with(v("not global in GovCloud", bedrockOf("global.anthropic.claude-opus-5-5", "invoke"), 400, "identifier is invalid"), Rules{Region: "us-gov-west-1"}),
		with(v("listed", bedrockOf("eu.anthropic.claude-wren-1-v1%3A0", "invoke"), 0, `"claude-wren-1"`), listed),
		with(v("listed ARN", bedrockOf("arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fabc", "invoke"), 0, "msg_bdrk_"), listed),
		with(v("listed needs a profile", bedrockOf("anthropic.claude-wren-1-v1:0", "invoke"), 400, "on-demand throughput"), listed),
		with(v("not listed", bedrockPath, 400, "identifier is invalid"), listed),
		{name: "GET", platform: Bedrock, method: http.MethodGet, status: 405, contains: "Method"},
	})
}

func TestBedrockHeadersAndBody(t *testing.T) {
	v := func(name, members, contains string) variant {
		return variant{name: name, platform: Bedrock, members: members, status: 400, contains: contains}
	}
	ok := func(name, members string) variant {
		return variant{name: name, platform: Bedrock, members: members, contains: "msg_bdrk_"}
	}
	field := func(name, field, value string, status int, contains string) variant {
		return variant{name: name, platform: Bedrock, fields: []string{field, value}, status: status, contains: contains}
	}
	runVariants(t, []variant{
		field("version as a header", "anthropic-version", "2023-06-01", 400, "member of the body"),
		field("beta as a header", "anthropic-beta", "context-1m-2025-08-07", 400, "member of the body"),
		field("user profile as a header", "anthropic-user-profile-id", "p", 400, "member of the body"),
		field("no credential", "authorization", "", 403, "Missing Authentication Token"),
		field("basic", "authorization", "Basic k", 403, "bearer"),
		{name: "x-api-key", platform: Bedrock, fields: []string{"authorization", "", "x-api-key", "k"}, status: 403, contains: "x-api-key"},
		{name: "both", platform: Bedrock, fields: []string{"x-api-key", "k"}, status: 403, contains: "more than one"},
		{name: "wrong key", platform: Bedrock, rules: Rules{Keys: []string{"other"}}, status: 403, contains: "security token"},
		{name: "left of a signature", platform: Bedrock, fields: []string{"x-amz-security-token", "t"}, status: 403, contains: "headers of a signature"},
		{name: "no version", platform: Bedrock, body: `{"max_tokens":5,"messages":[]}`, status: 400, contains: "anthropic_version: Field required"},
		{name: "another version", platform: Bedrock, body: strings.Replace(bedrockBody, "bedrock-2023-05-31", "2026-10-21", 1), status: 400, contains: "anthropic_version: Input should be"},
		{name: "version by rule", platform: Bedrock, body: strings.Replace(bedrockBody, "bedrock-2023-05-31", "2026-10-21", 1), rules: Rules{Version: "2026-10-21"}, contains: "msg_bdrk_"},
		{name: "no messages", platform: Bedrock, body: strings.Replace(bedrockBody, `,"messages":[]`, "", 1), status: 400, contains: "messages: Field required"},
		{name: "no max_tokens", platform: Bedrock, body: strings.Replace(bedrockBody, `"max_tokens":5,`, "", 1), status: 400, contains: "max_tokens: Field required"},
		v("model", `"model":"m"`, "model: Extra inputs are not permitted"),
		v("stream", `"stream":false`, "stream: Extra inputs are not permitted"),
		v("unknown member", `"zz_future":1`, `{"message":"zz_future: Extra inputs are not permitted"}`),
		v("unknown beta", `"anthropic_beta":["context-1m-2025-08-07","oauth-2025-04-20"]`, "invalid beta flag"),
		v("unsplit betas", `"anthropic_beta":["context-1m-2025-08-07,effort-2025-11-24"]`, "invalid beta flag"),
		v("betas as a string", `"anthropic_beta":"context-1m-2025-08-07"`, "valid list"),
		v("no betas in the list", `"anthropic_beta":[]`, "valid list"),
		v("beta twice", `"anthropic_beta":["context-1m-2025-08-07","context-1m-2025-08-07"]`, "twice"),
		ok("known betas", `"anthropic_beta":["context-1m-2025-08-07","effort-2025-11-24"]`),
		v("lone surrogate", `"system":"\ud83d"`, "no low surrogate"),
		{name: "too large", platform: Bedrock, body: bedrockBody[:len(bedrockBody)-1] + strings.Repeat(" ", 20<<20) + "}", status: 413, contains: "maximum size"},
		{name: "at the limit", platform: Bedrock, body: bedrockBody[:len(bedrockBody)-1] + strings.Repeat(" ", 20<<20-len(bedrockBody)) + "}", contains: "msg_bdrk_"},
	})
	for _, member := range []string{"cache_control", "service_tier", "diagnostics", "inference_geo", "speed", "mcp_servers", "container", "fallbacks", "thread"} {
		v(member, fmt.Sprintf("%q:{}", member), member+": Extra inputs are not permitted").run(t)
	}
}

func TestVertex(t *testing.T) {
	v := func(name, path string, status int, contains string) variant {
		return variant{name: name, platform: Vertex, path: path, status: status, contains: contains}
	}
	at := func(location, model, specifier string) string {
		return "/v1/projects/acme/locations/" + location + "/publishers/anthropic/models/" + model + ":" + specifier
	}
	streamed := strings.Replace(vertexBody, "{", `{"stream":true,`, 1)
	runVariants(t, []variant{
		v("dated", at("us-east5", "claude-haiku-4-5@20251001", "rawPredict"), 0, `"model":"claude-haiku-4-5-20251001"`),
		v("encoded at sign", at("global", "claude-haiku-4-5%4020251001", "rawPredict"), 0, "msg_vrtx_"),
		v("new model in a region", at("us-east5", "claude-opus-5-5", "rawPredict"), 404, `"status":"NOT_FOUND"`),
		v("unknown model", at("eu", "claude-wren-1", "rawPredict"), 404, "was not found"),
		v("first-party dated", at("eu", "claude-haiku-4-5-20251001", "rawPredict"), 404, "was not found"),
		v("encoded specifier", at("eu", "claude-opus-5-5%3ArawPredict", ""), 404, "Not found"),
		v("unknown specifier", at("eu", "claude-opus-5-5", "predict"), 404, `"status":"NOT_FOUND"`),
		v("another publisher", strings.Replace(vertexPath, "anthropic", "google", 1), 404, "Not found"),
		v("another version", strings.Replace(vertexPath, "v1", "v1beta1", 1), 404, "Not found"),
		{name: "listed", platform: Vertex, path: at("us-east5", "claude-wren-1@20260101", "rawPredict"), rules: Rules{Models: []string{"claude-wren-1@20260101"}}, contains: "claude-wren-1-20260101"},
		{name: "not listed", platform: Vertex, rules: Rules{Models: []string{"claude-wren-1@20260101"}}, status: 404, contains: "NOT_FOUND"},
		v("semicolon", at("eu", "claude-opus-5-5;x", "rawPredict"), 400, "not encoded"),
		v("query", vertexPath+"?beta=true", 400, "query"),
		{name: "another project", platform: Vertex, rules: Rules{Project: "other"}, status: 403, contains: "PERMISSION_DENIED"},
		{name: "another location", platform: Vertex, rules: Rules{Location: "us"}, status: 404, contains: "NOT_FOUND"},
		{name: "model in the body", platform: Vertex, members: `"model":"claude-opus-5-5"`, status: 400, contains: "model: Extra inputs are not permitted"},
		{name: "stream to rawPredict", platform: Vertex, body: streamed, status: 400, contains: "specifier"},
		{name: "no stream to streamRawPredict", platform: Vertex, path: at("eu", "claude-opus-5-5", "streamRawPredict"), status: 400, contains: "specifier"},
		{name: "stream", platform: Vertex, path: at("eu", "claude-opus-5-5", "streamRawPredict"), body: streamed, contains: "event: message_stop"},
		{name: "no version", platform: Vertex, body: `{"max_tokens":5,"messages":[]}`, status: 400, contains: "anthropic_version: Field required"},
		{name: "Bedrock's version", platform: Vertex, body: bedrockBody, status: 400, contains: "anthropic_version: Input should be"},
		{name: "version as a header", platform: Vertex, fields: []string{"anthropic-version", "2023-06-01"}, status: 400, contains: "member of the body"},
		{name: "betas in the body", platform: Vertex, members: `"anthropic_beta":["context-1m-2025-08-07"]`, status: 400, contains: "anthropic_beta: Extra inputs"},
		{name: "unknown beta", platform: Vertex, fields: []string{"anthropic-beta", "effort-2025-11-24"}, status: 400, contains: "Unexpected value(s) `effort-2025-11-24` for the `anthropic-beta` header"},
		{name: "known beta", platform: Vertex, fields: []string{"anthropic-beta", "context-1m-2025-08-07, compact-2026-01-12"}, contains: "msg_vrtx_"},
		{name: "key", platform: Vertex, fields: []string{"authorization", "", "x-api-key", "k"}, status: 401, contains: "UNAUTHENTICATED"},
		{name: "Google's key", platform: Vertex, fields: []string{"authorization", "", "x-goog-api-key", "k"}, status: 401, contains: "UNAUTHENTICATED"},
		{name: "no token", platform: Vertex, fields: []string{"authorization", ""}, status: 401, contains: "UNAUTHENTICATED"},
		{name: "wrong token", platform: Vertex, rules: Rules{Tokens: []string{"other"}}, status: 401, contains: "OAuth 2 access token"},
		{name: "workspace", platform: Vertex, fields: []string{"anthropic-workspace-id", "w"}, status: 400, contains: "means nothing here"},
		{name: "too large", platform: Vertex, body: vertexBody[:len(vertexBody)-1] + strings.Repeat(" ", 30<<20) + "}", status: 413, contains: "payload size exceeds"},
		{name: "top-level cache_control", platform: Vertex, members: `"cache_control":{"type":"ephemeral"}`, contains: "msg_vrtx_"},
		{name: "service tier", platform: Vertex, members: `"service_tier":"auto"`, status: 400, contains: "service_tier: Extra inputs"},
		{name: "basic web search", platform: Vertex, members: `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, contains: "msg_vrtx_"},
		{name: "web search before", platform: Vertex, body: strings.Replace(vertexBody, "[]", `[{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]},{"role":"user","content":"go on"}]`, 1), contains: "msg_vrtx_"},
		{name: "newer web search", platform: Vertex, members: `"tools":[{"type":"web_search_20260209","name":"web_search"}]`, status: 400, contains: "tools.0: Input tag 'web_search_20260209'"},
	})
}

func TestVertexRefusesChunked(t *testing.T) {
	b := bases[Vertex]
	s := newServer(t, Vertex)
	req := request(t, s, b.path, b.body, b.fields...)
	req.ContentLength = -1
	if status, body := do(t, req); status != 400 || !strings.Contains(body, `"status":"INVALID_ARGUMENT"`) {
		t.Errorf("got %d %s", status, body)
	}
}

func TestCounts(t *testing.T) {
	prompt := `"system":"s","tools":[],"messages":[{"role":"user","content":"hi"}]`
	want := len(`"s"`) + len(`[]`) + len(`[{"role":"user","content":"hi"}]`)
	wrapped := func(body string) string {
		return `{"input":{"invokeModel":{"body":"` + base64.StdEncoding.EncodeToString([]byte(body)) + `"}}}`
	}
	inBedrock := wrapped(`{"anthropic_version":"bedrock-2023-05-31",` + prompt + `}`)
	countable := "/model/anthropic.claude-mythos-preview/count-tokens"
	input := fmt.Sprintf(`"input_tokens":%d`, want)
	runVariants(t, []variant{
		{name: "count", platform: Anthropic, path: "/v1/messages/count_tokens", body: `{"model":"m",` + prompt + `}`, contains: input},
		{name: "count", platform: ClaudeOnAWS, path: "/v1/messages/count_tokens", body: `{"model":"m",` + prompt + `}`, contains: input},
		{name: "count", platform: ClaudeOnGoogle, path: googlePath + "/count_tokens", body: `{"model":"m",` + prompt + `}`, contains: input},
		{name: "count", platform: Foundry, path: "/anthropic/v1/messages/count_tokens", body: `{"model":"m",` + prompt + `}`, contains: input},
		{name: "count", platform: Mantle, path: "/anthropic/v1/messages/count_tokens", body: `{"model":"anthropic.claude-opus-5-5",` + prompt + `}`, contains: input},
		{name: "count", platform: Vertex, path: "/v1/projects/p/locations/global/publishers/anthropic/models/count-tokens:rawPredict", body: `{"anthropic_version":"vertex-2023-10-16","model":"claude-opus-5-5",` + prompt + `}`, contains: input},
		{name: "count without a model", platform: Vertex, path: "/v1/projects/p/locations/global/publishers/anthropic/models/count-tokens:rawPredict", body: `{"anthropic_version":"vertex-2023-10-16",` + prompt + `}`, status: 400, contains: "model: Field required"},
		{name: "count", platform: Bedrock, path: countable, body: inBedrock, contains: fmt.Sprintf(`"inputTokens":%d`, want)},
		{name: "count of a bare body", platform: Bedrock, path: countable, body: bedrockBody, status: 400, contains: "input.invokeModel.body"},
		{name: "count of no base64", platform: Bedrock, path: countable, body: `{"input":{"invokeModel":{"body":"{}"}}}`, status: 400, contains: "not base64"},
		{name: "count of no JSON", platform: Bedrock, path: countable, body: wrapped("{"), status: 400, contains: "not valid JSON"},
		{name: "the body inside is checked", platform: Bedrock, path: countable, body: wrapped(`{"anthropic_version":"bedrock-2023-05-31","model":"m",` + prompt + `}`), status: 400, contains: "model: Extra inputs"},
		{name: "count by a profile", platform: Bedrock, path: bedrockOf("us.anthropic.claude-opus-5-5", "count-tokens"), body: inBedrock, status: 400, contains: "doesn't support counting"},
		{name: "count where a profile is needed", platform: Bedrock, path: bedrockOf("anthropic.claude-opus-5-5", "count-tokens"), body: inBedrock, status: 400, contains: "doesn't support counting"},
		{name: "count by rule", platform: Bedrock, path: bedrockOf("anthropic.claude-opus-5-5", "count-tokens"), body: inBedrock, rules: Rules{CountModels: []string{"anthropic.claude-opus-5-5"}}, contains: "inputTokens"},
	})
	if Tokens([]byte(`{`+prompt+`}`)) != want {
		t.Error("Tokens differs from what the platform says")
	}
}

func TestSegments(t *testing.T) {
	for in, bad := range map[string]string{"a:b%2Fc": "", "a%3A0": "", "a%3a0": "", "a%zz": "not well encoded", "a%2": "not well encoded", "a@b": "not encoded", ".": "no model", "%2E": "no model", "": "no model"} {
		if _, got := segment(in, ":"); (got == "") != (bad == "") || !strings.Contains(got, bad) {
			t.Errorf("%q: %q", in, got)
		}
	}
}
