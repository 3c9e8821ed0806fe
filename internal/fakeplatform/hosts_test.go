package fakeplatform

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestMantle(t *testing.T) {
	runVariants(t, []variant{
		{name: "beta query", platform: Mantle, path: "/anthropic/v1/messages?beta=true", contains: "msg_bdrk_"},
		{name: "stream", platform: Mantle, members: `"stream":true`, contains: "event: message_stop"},
		{name: "known beta", platform: Mantle, fields: []string{"anthropic-beta", "claude-code-20250219"}, contains: "msg_bdrk_"},
		{name: "no prefix", platform: Mantle, path: "/v1/messages", status: 404, contains: "Not found"},
		{name: "models", platform: Mantle, path: "/anthropic/v1/models", method: http.MethodGet, status: 404, contains: "Not found"},
		{name: "files", platform: Mantle, path: "/anthropic/v1/files/file_1", method: http.MethodGet, status: 404, contains: "Not found"},
		{name: "batches", platform: Mantle, path: "/anthropic/v1/messages/batches", status: 404, contains: "Not found"},
		{name: "first-party ID", platform: Mantle, body: small, status: 404, contains: "model: claude-opus-5-5"},
		{name: "profile", platform: Mantle, body: strings.Replace(mantleBody, "anthropic.", "us.anthropic.", 1), status: 404, contains: "model: us."},
		{name: "version suffix", platform: Mantle, body: strings.Replace(mantleBody, "opus-5-5", "haiku-4-5-20251001-v1:0", 1), status: 404, contains: "not_found_error"},
		{name: "not offered", platform: Mantle, body: strings.Replace(mantleBody, "opus-5-5", "opus-4-6", 1), status: 404, contains: "not_found_error"},
		{name: "listed", platform: Mantle, body: strings.Replace(mantleBody, "opus-5-5", "wren-1", 1), rules: Rules{Models: []string{"anthropic.claude-wren-1"}}, contains: "claude-wren-1"},
		{name: "user profile", platform: Mantle, fields: []string{"anthropic-user-profile-id", "p"}, status: 400, contains: "user profile"},
		{name: "user profile in the body", platform: Mantle, members: `"user_profile_id":"p"`, contains: "msg_bdrk_"},
		{name: "x-api-key", platform: Mantle, fields: []string{"authorization", "", "x-api-key", "k"}, status: 403, contains: "no credential here"},
		{name: "no version", platform: Mantle, fields: []string{"anthropic-version", ""}, status: 400, contains: "anthropic-version"},
		{name: "unknown version", platform: Mantle, fields: []string{"anthropic-version", "2020-01-01"}, status: 400, contains: "not a valid version"},
		{name: "sampling in the new version", platform: Mantle, fields: []string{"anthropic-version", "2026-10-21"}, members: `"temperature":1`, status: 400, contains: "temperature: Extra"},
		{name: "version in the body", platform: Mantle, members: `"anthropic_version":"2023-06-01"`, status: 400, contains: "anthropic_version: Extra"},
		{name: "unknown beta", platform: Mantle, fields: []string{"anthropic-beta", "files-api-2025-04-14"}, status: 400, contains: "Unexpected value(s)"},
		{name: "structured outputs", platform: Mantle, members: `"output_config":{"format":{}}`, status: 400, contains: "output_config.format: Extra inputs"},
		{name: "cache_control", platform: Mantle, members: `"cache_control":{"type":"ephemeral"}`, contains: "msg_bdrk_"},
		{name: "too large", platform: Mantle, body: mantleBody[:len(mantleBody)-1] + strings.Repeat(" ", 20<<20) + "}", status: 413, contains: "request_too_large"},
	})
}

func TestSigningServices(t *testing.T) {
	for platform, service := range map[string]string{Mantle: "bedrock-mantle", ClaudeOnAWS: "aws-external-anthropic"} {
		b := bases[platform]
		for _, wrong := range []bool{false, true} {
			s := newServer(t, platform)
			s.SetRules(Rules{AWS: []AWSKey{awsKey}})
			path := b.path + "?beta=true"
			req := request(t, s, path, b.body, append(append([]string{}, b.fields...), "x-api-key", "", "authorization", "")...)
			by := signing{region: "us-east-1", service: service}
			want := 200
			if wrong {
				by.service, want = "bedrock", map[string]int{Mantle: 403, ClaudeOnAWS: 401}[platform]
			}
			by.sign(req, b.body)
			status, body := do(t, req)
			if status != want {
				t.Errorf("%s signed for %s: %d %s", platform, by.service, status, body)
			}
			if wrong && platform == ClaudeOnAWS && (!strings.Contains(body, "authentication_error") || strings.Contains(body, "scoped")) {
				t.Errorf("it tells why: %s", body)
			}
		}
	}
}

func TestClaudeOnGoogle(t *testing.T) {
	runVariants(t, []variant{
		{name: "beta query", platform: ClaudeOnGoogle, path: googlePath + "?beta=true", contains: "msg_fake_claude-on-google_1"},
		{name: "first-party path", platform: ClaudeOnGoogle, path: "/v1/messages", status: 404, contains: `"status":"NOT_FOUND"`},
		{name: "organisation route", platform: ClaudeOnGoogle, path: "/v1/projects/p/locations/l/claudeOrganization/invoke/v1/organizations/me", status: 404, contains: "Not found"},
		{name: "no such path below", platform: ClaudeOnGoogle, path: googlePath + "s", status: 404, contains: "Not found"},
		{name: "another workspace", platform: ClaudeOnGoogle, rules: Rules{Workspace: "wrkspc_2"}, status: 404, contains: "workspace"},
		{name: "another project", platform: ClaudeOnGoogle, rules: Rules{Project: "x"}, status: 403, contains: "PERMISSION_DENIED"},
		{name: "workspace header", platform: ClaudeOnGoogle, fields: []string{"anthropic-workspace-id", "wrkspc_1"}, status: 400, contains: "means nothing"},
		{name: "key", platform: ClaudeOnGoogle, fields: []string{"authorization", "", "x-api-key", "k"}, status: 401, contains: "UNAUTHENTICATED"},
		{name: "wrong token", platform: ClaudeOnGoogle, rules: Rules{Tokens: []string{"x"}}, status: 401, contains: "UNAUTHENTICATED"},
		{name: "right token", platform: ClaudeOnGoogle, rules: Rules{Tokens: []string{"tok"}}, contains: "msg_fake"},
		{name: "no version", platform: ClaudeOnGoogle, fields: []string{"anthropic-version", ""}, status: 400, contains: "invalid_request_error"},
		{name: "unknown model", platform: ClaudeOnGoogle, rules: Rules{Models: []string{"m"}}, status: 404, contains: "not_found_error"},
		{name: "models", platform: ClaudeOnGoogle, path: strings.Replace(googlePath, "messages", "models", 1), method: http.MethodGet, contains: `"has_more":false`},
		{name: "batches", platform: ClaudeOnGoogle, path: googlePath + "/batches", contains: "message_batch"},
	})
}

func TestFoundry(t *testing.T) {
	azure := Rules{Hosting: "azure"}
	runVariants(t, []variant{
		{name: "token of Entra", platform: Foundry, rules: Rules{Tokens: []string{"tok"}}, fields: []string{"x-api-key", "", "authorization", "Bearer tok"}, contains: "msg_fake"},
		{name: "wrong token", platform: Foundry, rules: Rules{Tokens: []string{"tok"}}, fields: []string{"x-api-key", "", "authorization", "Bearer k"}, status: 401, contains: `"code":"401"`},
		{name: "key as a token", platform: Foundry, rules: Rules{Tokens: []string{"tok"}, Keys: []string{"k"}}, fields: []string{"x-api-key", "", "authorization", "Bearer k"}, status: 401, contains: `"code":"401"`},
		{name: "api-key", platform: Foundry, fields: []string{"x-api-key", "", "api-key", "k"}, status: 401, contains: "api-key is not what"},
		{name: "batches", platform: Foundry, path: "/anthropic/v1/messages/batches", status: 404, contains: `"code":"404"`},
		{name: "speed", platform: Foundry, members: `"speed":"fast"`, status: 400, contains: "speed: Extra inputs"},
		{name: "beta it has not", platform: Foundry, fields: []string{"anthropic-beta", "advisor-tool-2026-03-01"}, status: 400, contains: "Unexpected value(s)"},
		{name: "beta that is new", platform: Foundry, fields: []string{"anthropic-beta", "new-2027-01-01"}, contains: "msg_fake"},
		{name: "structured, at Anthropic", platform: Foundry, members: `"output_config":{"format":{}}`, contains: "msg_fake"},
		{name: "structured, at Azure", platform: Foundry, members: `"output_config":{"format":{}}`, rules: azure, status: 400, contains: "output_config.format"},
		{name: "strict tool, at Azure", platform: Foundry, members: `"tools":[{"name":"t","strict":true}]`, rules: azure, status: 400, contains: "tools.0.custom.strict"},
		{name: "loose tool, at Azure", platform: Foundry, members: `"tools":[{"name":"t","strict":false}]`, rules: azure, contains: "msg_fake"},
		{name: "web search, at Azure", platform: Foundry, members: `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, rules: azure, status: 400, contains: "web_search_20250305"},
		{name: "tool search, at Azure", platform: Foundry, members: `"tools":[{"type":"tool_search_tool_bm25_20251119","name":"s"}]`, rules: azure, status: 400, contains: "tool_search_tool"},
		{name: "container, at Azure", platform: Foundry, members: `"container":{"skills":[]}`, rules: azure, status: 400, contains: "container"},
		{name: "files, at Azure", platform: Foundry, path: "/anthropic/v1/files/file_1", method: http.MethodGet, rules: azure, status: 400, contains: "hosted on Azure"},
		{name: "workspace", platform: Foundry, fields: []string{"anthropic-workspace-id", "w"}, status: 400, contains: "means nothing"},
	})
}

func TestClaudeOnAWS(t *testing.T) {
	runVariants(t, []variant{
		{name: "bearer", platform: ClaudeOnAWS, fields: []string{"x-api-key", "", "authorization", "Bearer k"}, status: 401, contains: "must come as x-api-key"},
		{name: "fast mode", platform: ClaudeOnAWS, members: `"speed":"fast"`, status: 400, contains: "speed: Extra inputs"},
		{name: "new toolset", platform: ClaudeOnAWS, members: `"tools":[{"type":"computer_toolset_20260801"}]`, status: 400, contains: "computer_toolset_20260801"},
		{name: "member that is new", platform: ClaudeOnAWS, members: `"zz_future":1`, contains: "msg_fake"},
		{name: "member that is new, strict", platform: ClaudeOnAWS, members: `"zz_future":1`, rules: Rules{Strict: true}, status: 400, contains: "zz_future: Extra inputs"},
	})
}

func TestFirstParty(t *testing.T) {
	strict := Rules{Strict: true}
	runVariants(t, []variant{
		{name: "all that is new", platform: Anthropic, members: `"inference_geo":"eu","diagnostics":{},"speed":"fast","zz_future":{"a":[1,2,{"b":null}]},"tools":[{"name":"t","eager_input_streaming":true,"strict":true,"allowed_callers":[],"zz":1}]`, contains: "msg_fake"},
		{name: "new beta", platform: Anthropic, fields: []string{"anthropic-beta", "new-2027-01-01"}, contains: "msg_fake"},
		{name: "new beta, strict", platform: Anthropic, rules: strict, fields: []string{"anthropic-beta", "new-2027-01-01"}, status: 400, contains: "Unexpected value(s) `new-2027-01-01`"},
		{name: "beta, strict", platform: Anthropic, rules: strict, fields: []string{"anthropic-beta", "claude-code-20250219, oauth-2025-04-20"}, contains: "msg_fake"},
		{name: "beta by rule", platform: Anthropic, rules: Rules{Betas: []string{"a"}}, fields: []string{"anthropic-beta", "a,b"}, status: 400, contains: "`b`"},
		{name: "beta twice", platform: Anthropic, fields: []string{"anthropic-beta", "a, a"}, status: 400, contains: "twice"},
		{name: "empty betas", platform: Anthropic, fields: []string{"anthropic-beta", " "}, status: 400, contains: "not one list"},
		{name: "betas in the body", platform: Anthropic, members: `"anthropic_beta":[]`, status: 400, contains: "anthropic_beta: Extra inputs"},
		{name: "lone surrogate", platform: Anthropic, members: `"x":"\ud83d"`, contains: "msg_fake"},
		{name: "lone surrogate, strict", platform: Anthropic, rules: strict, members: `"system":"\ud83d"`, status: 400, contains: "no low surrogate in string: line 1 column"},
		{name: "vendor's own, strict", platform: Anthropic, rules: strict, members: `"service_tier":"auto","speed":"fast","tools":[{"type":"web_fetch_20250910","name":"f"}]`, contains: "msg_fake"},
		{name: "unknown tool, strict", platform: Anthropic, rules: strict, members: `"tools":[{"type":"zz_20270101"}]`, status: 400, contains: "zz_20270101"},
		{name: "old version, strict", platform: Anthropic, rules: strict, fields: []string{"anthropic-version", "v"}, status: 400, contains: "not a valid version"},
		{name: "duplicate", platform: Anthropic, members: `"model":"other"`, status: 400, contains: "duplicate member"},
		{name: "stream is a word", platform: Anthropic, members: `"stream":"true"`, status: 400, contains: "stream: Input should be a valid boolean"},
		{name: "no model", platform: Anthropic, body: `{"messages":[]}`, status: 400, contains: "model: Field required"},
		{name: "no messages, strict", platform: Anthropic, body: `{"model":"m","max_tokens":1}`, rules: strict, status: 400, contains: "messages: Field required"},
		{name: "one model", platform: Anthropic, path: "/v1/models/claude-wren-1", method: http.MethodGet, contains: `"id":"claude-wren-1"`},
		{name: "POST to models", platform: Anthropic, path: "/v1/models", status: 405, contains: "Method"},
		{name: "batches", platform: Anthropic, path: "/v1/messages/batches", contains: "message_batch"},
		{name: "a batch", platform: Anthropic, path: "/v1/messages/batches/msgbatch_1/results", method: http.MethodGet, contains: "message_batch"},
		{name: "organisations", platform: Anthropic, path: "/v1/organizations/me", method: http.MethodGet, status: 404, contains: "Not found"},
		{name: "odd query", platform: Anthropic, path: "/v1/messages?x=1", status: 400, contains: "query"},
		{name: "query of models", platform: Anthropic, path: "/v1/models?limit=1", method: http.MethodGet, contains: "has_more"},
		{name: "coded body", platform: Anthropic, fields: []string{"content-encoding", "gzip"}, status: 400, contains: "content-encoding"},
		{name: "text", platform: Anthropic, fields: []string{"content-type", "text/plain"}, status: 400, contains: "content-type"},
	})
}

func TestBatchesMayBeChunked(t *testing.T) {
	s := newServer(t, Anthropic)
	req := request(t, s, "/v1/messages/batches", `{"requests":[]}`)
	req.ContentLength, req.Body = -1, io.NopCloser(strings.NewReader(`{"requests":[]}`))
	if status, body := do(t, req); status != 200 {
		t.Errorf("got %d %s", status, body)
	}
}

func TestFiles(t *testing.T) {
	rules := Rules{Files: map[string]File{
		"file_a": {Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF-")}, "file_up": {Name: "b.png", MIME: "image/png", Data: []byte("x"), Uploaded: true},
	}}
	get := func(platform, name, path string, status int, contains string, fields ...string) variant {
		return variant{name: name, platform: platform, path: path, method: http.MethodGet, rules: rules, status: status, contains: contains, fields: fields}
	}
	beta := []string{"anthropic-beta", "files-api-2025-04-14"}
	runVariants(t, []variant{
		get(Anthropic, "content", "/v1/files/file_a/content", 0, "%PDF-"),
		get(Anthropic, "metadata", "/v1/files/file_a", 0, `"mime_type":"application/pdf"`),
		get(Anthropic, "size", "/v1/files/file_a", 0, `"size_bytes":5`),
		get(Anthropic, "unknown", "/v1/files/file_b/content", 404, "File not found"),
		get(Anthropic, "uploaded", "/v1/files/file_up/content", 400, "not downloadable"),
		get(Anthropic, "metadata of an uploaded one", "/v1/files/file_up", 0, `"downloadable":false`),
		get(Anthropic, "without a key", "/v1/files/file_a", 401, "x-api-key", "x-api-key", ""),
		get(ClaudeOnAWS, "without the beta", "/v1/files/file_a", 400, "files-api-2025-04-14"),
		get(ClaudeOnAWS, "with the beta", "/v1/files/file_a", 0, "a.pdf", beta...),
		get(Foundry, "with the beta", "/anthropic/v1/files/file_a/content", 0, "%PDF-", beta...),
		{name: "POST", platform: Anthropic, path: "/v1/files/file_a", rules: rules, status: 405, contains: "Method"},
	})
}

func TestHostsOfVertex(t *testing.T) {
	for _, c := range []struct {
		host, location string
		ok             bool
	}{
		{"aiplatform.googleapis.com", "global", true}, {"aiplatform.eu.rep.googleapis.com", "eu", true}, {"us-east5-aiplatform.googleapis.com", "us-east5", true},
		{"aiplatform.googleapis.com", "eu", false}, {"eu-aiplatform.googleapis.com", "eu", false}, {"global-aiplatform.googleapis.com", "global", false}, {"127.0.0.1:80", "eu", true},
	} {
		if got := vertexHost(c.host, c.location); got != c.ok {
			t.Errorf("%s for %s: %v", c.host, c.location, got)
		}
		s := newServer(t, Vertex)
		b := bases[Vertex]
		req := request(t, s, strings.Replace(b.path, "/eu/", "/"+c.location+"/", 1), b.body, b.fields...)
		req.Host = c.host
		if status, _ := do(t, req); (status != 404) != c.ok && c.location != "us-east5" {
			t.Errorf("%s for %s: %d", c.host, c.location, status)
		}
	}
}

// TestFraming: what no client of Go's sends.
func TestFraming(t *testing.T) {
	for _, c := range []struct{ name, head, refusal string }{
		{"good", "host: h\r\ncontent-length: %d\r\n", ""},
		{"no host", "content-length: %d\r\n", "not exactly one host"},
		{"two hosts", "host: h\r\nhost: h\r\ncontent-length: %d\r\n", "not exactly one host"},
		{"two lengths", "host: h\r\ncontent-length: %[1]d\r\ncontent-length: %[1]d\r\n", "not exactly one content-length"},
		{"odd length", "host: h\r\ncontent-length: 0%d\r\n", "content-length is not the body's length"},
		{"two versions", "host: h\r\ncontent-length: %d\r\nanthropic-version: 2023-06-01\r\n", "anthropic-version: header is required"},
		{"two betas", "host: h\r\ncontent-length: %d\r\nanthropic-beta: a\r\nanthropic-beta: b\r\n", "anthropic-beta: not one list"},
		{"two keys", "host: h\r\ncontent-length: %d\r\nx-api-key: k\r\n", "more than one credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, Anthropic)
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"+c.head+"\r\n"+small, len(small))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got := s.Requests()[0].Refusal; got != c.refusal || (resp.StatusCode == 200) != (c.refusal == "") {
				t.Errorf("got %d, refusal %q", resp.StatusCode, got)
			}
		})
	}
}
