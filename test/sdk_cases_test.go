package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"maps"
	"slices"
	"strings"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/test/sdk"
)

// sdkModel has an ID on every platform.
const sdkModel = "claude-opus-5-5"

// sdkCountModel is one that Bedrock counts tokens for: those that need an
// inference profile it does not.
const sdkCountModel = "claude-mythos-preview"

// sdkCase is one kind of call. The request and the reply are all that differs.
type sdkCase struct {
	name    string
	request map[string]any // less model and max_tokens
	reply   fakeplatform.Reply
	count   bool
	stream  bool
	beta    bool
	betas   []string
	headers map[string]string
	// edited says that platforms other than the vendor's get less than the client
	// sent (sdkLoses).
	edited bool
}

// object is JSON in a test's source.
func object(s string) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		panic("sdk cases: " + err.Error()) // of this file
	}
	return out
}

func sdkCases() []sdkCase {
	tools := `"tools":[{"name":"look","description":"Looks at a path","input_schema":{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}},"required":["path"]}}],"tool_choice":{"type":"auto"}`
	history := `"messages":[{"role":"user","content":[{"type":"text","text":"@"}]},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0","name":"look","input":{"path":"/"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":[{"type":"text","text":"bin etc"}]}]}]`
	thinking := `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"messages":[{"role":"user","content":[{"type":"text","text":"@"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"Erst nachdenken.","signature":"RXJzdA=="},{"type":"text","text":"Ja."}]},{"role":"user","content":[{"type":"text","text":"Und dann?"}]}]`
	text := []fakeplatform.Block{{Type: "text", Text: "Grüße aus 東京 🌍: 1 < 2 & \"ja\"\nnächste Zeile"}}
	used := []fakeplatform.Block{text[0], {Type: "tool_use", ID: "toolu_1", Name: "look", Input: `{"path": "/tmp/Ärger \"x\"", "depth": 12345678901234567, "deep": {"list": [1, 2.5, null, true]}}`}}
	thought := []fakeplatform.Block{{Type: "thinking", Text: "Schritt für Schritt …", Signature: "U2lnbmF0dXI+/w=="}, text[0]}
	simple := object(`{"system":[{"type":"text","text":"Answer in one line."}],"stop_sequences":["END"],"metadata":{"user_id":"u-1"},"messages":[{"role":"user","content":[{"type":"text","text":"@"}]}]}`)
	picture := object(`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + smallPNG() + `"}},{"type":"text","text":"@"}]}]}`)
	paper := object(`{"messages":[{"role":"user","content":[{"type":"document","title":"Paper","source":{"type":"base64","media_type":"application/pdf","data":"` + smallPDF() + `"},"cache_control":{"type":"ephemeral"}},{"type":"text","text":"@"}]}]}`)
	return []sdkCase{
		{name: "text", request: simple, reply: sdkReply("end_turn", text)},
		{name: "text-stream", request: simple, stream: true, reply: sdkReply("stop_sequence", text)},
		{name: "tools", request: object("{" + tools + "," + history + "}"), reply: sdkReply("tool_use", used)},
		{name: "tools-stream", request: object("{" + tools + "," + history + "}"), stream: true, reply: sdkReply("tool_use", used)},
		{name: "thinking", request: object("{" + thinking + "}"), reply: sdkReply("end_turn", thought)},
		{name: "thinking-stream", request: object("{" + thinking + "}"), stream: true, reply: sdkReply("max_tokens", thought)},
		{name: "count", request: object("{" + tools + "," + history + "}"), count: true},
		{name: "image", request: picture, reply: sdkReply("end_turn", text)},
		{name: "pdf-stream", request: paper, stream: true, reply: sdkReply("end_turn", text)},
		claudeCode(slices.Concat(thought[:1], used)),
	}
}

// claudeCode is the shape of Claude Code's requests: the beta method, ?beta=true,
// a list of betas, large cached system blocks, eager tools.
func claudeCode(blocks []fakeplatform.Block) sdkCase {
	request := object(`{
		"system":[{"type":"text","text":"You are Claude Code, the official CLI.","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}},{"type":"text","text":"` + strings.Repeat("Follow the house rules. ", 4000) + `","cache_control":{"type":"ephemeral","ttl":"1h"}}],
		"tools":[
			{"name":"Bash","description":"Runs a command","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false},"eager_input_streaming":true},
			{"name":"Read","description":"Reads a file","input_schema":{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":false},"eager_input_streaming":true,"cache_control":{"type":"ephemeral"}}],
		"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"},
		"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
		"metadata":{"user_id":"user_0_account__session_0"},
		"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>Be brief.</system-reminder>"},{"type":"text","text":"@","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`)
	return sdkCase{
		name: "claude-code", request: request, stream: true, beta: true, edited: true, reply: sdkReply("tool_use", blocks),
		betas:   strings.Fields("claude-code-20250219 interleaved-thinking-2025-05-14 context-management-2025-06-27 effort-2025-11-24 fine-grained-tool-streaming-2025-05-14 extended-cache-ttl-2025-04-11 prompt-caching-scope-2026-01-05"),
		headers: map[string]string{"x-app": "cli", "user-agent": "claude-cli/2.8.1 (external, cli)", "anthropic-dangerous-direct-browser-access": "true"},
	}
}

func sdkReply(stop string, blocks []fakeplatform.Block) fakeplatform.Reply {
	return fakeplatform.Reply{Blocks: blocks, StopReason: stop, Usage: fakeplatform.Usage{Input: 1201, CacheCreation: 302, CacheRead: 44003, Output: 516}}
}

func smallPNG() string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		panic("sdk cases: " + err.Error()) // of this file
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func smallPDF() string {
	const pdf = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
	return base64.StdEncoding.EncodeToString([]byte(pdf))
}

// job is the case as the client sends it on the lane.
func (c sdkCase) job(client sdkClient, l *laneRun) sdk.Job {
	name := client.name + "/" + l.name + "/" + c.name
	request := map[string]any{"model": sdkModel}
	if c.count {
		request["model"] = l.countModel()
	} else {
		request["max_tokens"] = 4096
	}
	maps.Copy(request, c.request)
	text, err := json.Marshal(request)
	if err != nil {
		panic("sdk cases: " + err.Error()) // of this file
	}
	text = bytes.Replace(text, []byte(`"@"`), []byte(`"`+promptSecret+" [["+name+`]]"`), 1)
	headers := map[string]string{"x-sdk-lane": l.name}
	maps.Copy(headers, c.headers)
	var query map[string]string
	if c.beta && !client.marksBeta {
		query = map[string]string{"beta": "true"}
	}
	return sdk.Job{
		Name: name, BaseURL: l.e.url(""), APIKey: "sk-client-" + client.name, Count: c.count, Stream: c.stream, Beta: c.beta, Betas: c.betas,
		Headers: headers, Query: query, Request: text,
	}
}

// countModel is a model of the lane that its platforms count tokens for.
func (l *laneRun) countModel() string {
	for _, tg := range l.targets {
		if platformOf(tg) == fakeplatform.Bedrock {
			return sdkCountModel
		}
	}
	return sdkModel
}
