package fakeplatform

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Block is one content block of a Reply: text, thinking (Text is the thought) or
// tool_use.
type Block struct {
	Type      string
	Text      string
	Signature string // of thinking
	ID, Name  string // of tool_use
	Input     string // of tool_use: a JSON object, sent as it is
}

// Usage is what a Reply reports. The names are the wire's.
type Usage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

// Reply is a good answer with all that a client's library reads: blocks of every
// common type, usage with the caches, a stop reason.
type Reply struct {
	ID         string
	Blocks     []Block
	StopReason string
	Usage      Usage
}

// Answer is the reply to r: a message, or the same message as a stream, in the
// platform's framing.
func (p Reply) Answer(platform string, r Request) Answer {
	model := shortName(platform, r.Model)
	if r.Stream {
		return StreamFor(platform, p.Events(model)...)
	}
	content := []json.RawMessage{}
	for _, b := range p.Blocks {
		content = append(content, b.whole())
	}
	message := p.message(model, content, p.Usage)
	message["stop_reason"] = p.StopReason
	a := Raw(200, "application/json", encode(message))
	a.Name = "message"
	return a
}

// Events is the reply as SSE events. Texts and inputs come in several deltas, cut
// between runes; pings stand where the vendor has them.
func (p Reply) Events(model string) [][]byte {
	begin := p.Usage
	begin.Output = 1
	events := [][]byte{event(map[string]any{"type": "message_start", "message": p.message(model, []json.RawMessage{}, begin)})}
	for i, b := range p.Blocks {
		events = append(events, BlockStartOf(i, string(b.empty())))
		if i == 0 {
			events = append(events, Ping())
		}
		for _, d := range b.deltas() {
			events = append(events, event(map[string]any{"type": "content_block_delta", "index": i, "delta": d}))
		}
		events = append(events, BlockStop(i))
	}
	return append(events,
		event(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": p.StopReason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": p.Usage.Output}}),
		MessageStop())
}

func (p Reply) message(model string, content []json.RawMessage, usage Usage) map[string]any {
	return map[string]any{
		"id": p.ID, "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
}

// whole is the block in a message that is no stream.
func (b Block) whole() json.RawMessage {
	switch b.Type {
	case "thinking":
		return encode(map[string]any{"type": b.Type, "thinking": b.Text, "signature": b.Signature})
	case "tool_use":
		return encode(map[string]any{"type": b.Type, "id": b.ID, "name": b.Name, "input": json.RawMessage(b.Input)})
	}
	return encode(map[string]any{"type": b.Type, "text": b.Text})
}

// empty is the block as content_block_start has it.
func (b Block) empty() json.RawMessage {
	b.Text, b.Signature, b.Input = "", "", "{}"
	return b.whole()
}

func (b Block) deltas() []map[string]any {
	kind, field, text := "text_delta", "text", b.Text
	var out []map[string]any
	switch b.Type {
	case "thinking":
		kind, field = "thinking_delta", "thinking"
	case "tool_use":
		kind, field, text = "input_json_delta", "partial_json", b.Input
		out = append(out, map[string]any{"type": kind, field: ""}) // the vendor's first one is empty
	}
	for _, piece := range pieces(text, 9) {
		out = append(out, map[string]any{"type": kind, field: piece})
	}
	if b.Type == "thinking" {
		out = append(out, map[string]any{"type": "signature_delta", "signature": b.Signature})
	}
	return out
}

// pieces cuts s after every n runes.
func pieces(s string, n int) []string {
	var out []string
	for r := []rune(s); len(r) > 0; r = r[min(n, len(r)):] {
		out = append(out, string(r[:min(n, len(r))]))
	}
	return out
}

// event is an SSE event whose name is its data's type.
func event(data map[string]any) []byte {
	name, _ := data["type"].(string) // only this file calls it
	return Event(name, string(encode(data)))
}

// encode is JSON with the characters as they are; only maps of strings, numbers
// and valid JSON come here.
func encode(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace([]byte(b.String()))
}
