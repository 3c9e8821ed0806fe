package fakeplatform

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Usage that every good answer reports.
const (
	InputTokens  = 25
	OutputTokens = 15
)

// Message answers with a complete message; id and text are as given.
func Message(id, model, text string) Answer {
	body, err := json.Marshal(map[string]any{
		"id": id, "type": "message", "role": "assistant", "model": model,
		"content":     []any{map[string]any{"type": "text", "text": text}},
		"stop_reason": "end_turn", "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": InputTokens, "output_tokens": OutputTokens, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
	})
	if err != nil { // only strings and numbers come here
		body = []byte("{}")
	}
	a := Raw(200, "application/json", body)
	a.Name = "message"
	return a
}

// Good is what a healthy platform answers to a request for a message, in its
// framing; model is the ID that it was asked with.
func Good(platform, model string, stream bool) Answer { return goodMessage(platform, model, stream, 1) }

// goodMessage is Good with the number of the request in the message's id.
func goodMessage(platform, model string, stream bool, n int) Answer {
	id := fmt.Sprintf("%s%d", traitsOf[platform].ids, n)
	model = shortName(platform, model)
	if stream {
		return StreamFor(platform, goodEvents(id, model, 5)...)
	}
	a := Message(id, model, "hello from "+platform)
	if platform == Bedrock {
		a = a.With(Field{"x-amzn-bedrock-input-token-count", strconv.Itoa(InputTokens)}, Field{"x-amzn-bedrock-output-token-count", strconv.Itoa(OutputTokens)}, Field{"x-amzn-bedrock-invocation-latency", "1250"})
	}
	return a
}

// good answers a request that was not refused.
func good(platform string, rules Rules, r Request) Answer {
	switch r.call.op {
	case opModels:
		return Models("claude-opus-5-5", "claude-haiku-5-5")
	case opModel:
		return jsonAnswer(200, modelEntry(r.call.model), nil)
	case opBatches:
		return batchAnswer()
	case opFile, opFileContent:
		return fileAnswer(rules, r.call)
	case opCount:
		return Count(platform, r.Tokens)
	}
	return goodMessage(platform, r.Model, r.Stream, r.N)
}

// Count is the answer to count_tokens.
func Count(platform string, tokens int) Answer {
	name := "input_tokens"
	if platform == Bedrock {
		name = "inputTokens"
	}
	a := jsonAnswer(200, map[string]any{name: tokens}, nil)
	a.Name = "count"
	return a
}

// Tokens is the count for a body in the schema of messages: the bytes of the
// members that make a prompt, so that one dropped byte shows.
func Tokens(body []byte) int {
	doc, err := parse(body)
	if err != nil {
		return 0
	}
	return tokens(&doc.root)
}

func tokens(root *value) int {
	n := 0
	for _, name := range []string{"system", "tools", "tool_choice", "thinking", "messages", "output_config", "mcp_servers"} {
		if v := root.get(name); v != nil {
			n += len(v.raw)
		}
	}
	return n
}

// Event is one SSE event in the vendor's framing.
func Event(name, data string) []byte {
	return []byte("event: " + name + "\ndata: " + data + "\n\n")
}

// CRLF rewrites an event's line ends to CRLF.
func CRLF(event []byte) []byte { return []byte(strings.ReplaceAll(string(event), "\n", "\r\n")) }

// MessageStart opens a stream; it is no content.
func MessageStart(id, model string) []byte {
	return Event("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}`, id, model, InputTokens))
}

// Ping is the platform's sign of life.
func Ping() []byte { return Event("ping", `{"type": "ping"}`) }

// BlockStart opens an empty text block.
func BlockStart(index int) []byte {
	return Event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, index))
}

// BlockStartOf opens a block of any type; block is its JSON.
func BlockStartOf(index int, block string) []byte {
	return Event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block))
}

// TextDelta is the first kind of content event.
func TextDelta(index int, text string) []byte {
	return Event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, index, text))
}

// Delta is a content_block_delta of another type: its field and value.
func Delta(index int, kind, field, value string) []byte {
	return Event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%q}}`, index, kind, field, value))
}

// BlockStop closes a block.
func BlockStop(index int) []byte {
	return Event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

// MessageDelta carries the stop reason and the final usage.
func MessageDelta(stopReason string) []byte {
	return Event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, stopReason, OutputTokens))
}

// MessageStop ends a stream.
func MessageStop() []byte { return Event("message_stop", `{"type":"message_stop"}`) }

// StreamError is an error event inside a stream.
func StreamError(kind, message string) []byte {
	return Event("error", fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message))
}

// Stream answers 200 with the events, each its own write.
func Stream(events ...[]byte) Answer {
	parts := make([]Part, len(events))
	for i, e := range events {
		parts[i] = Part{Data: e}
	}
	return StreamOf(parts...)
}

// StreamOf answers 200 with the parts, chunked.
func StreamOf(parts ...Part) Answer {
	return Answer{
		Name: "stream", Status: 200, Length: LengthChunked, Parts: parts,
		Header: []Field{{"content-type", "text/event-stream; charset=utf-8"}, {"cache-control", "no-cache"}},
	}
}

// GoodStream is a whole stream with n text deltas.
func GoodStream(id, model string, n int) Answer { return Stream(goodEvents(id, model, n)...) }

func goodEvents(id, model string, n int) [][]byte {
	events := [][]byte{MessageStart(id, model), BlockStart(0), Ping()}
	for i := range n {
		events = append(events, TextDelta(0, fmt.Sprintf("word %d ", i)))
	}
	return append(events, BlockStop(0), MessageDelta("end_turn"), MessageStop())
}

// SplitEvery cuts the bytes of all events into parts of n bytes.
func SplitEvery(n int, events ...[]byte) Answer {
	var all []byte
	for _, e := range events {
		all = append(all, e...)
	}
	var parts []Part
	for len(all) > 0 {
		k := min(n, len(all))
		parts = append(parts, Part{Data: all[:k:k]})
		all = all[k:]
	}
	return StreamOf(parts...)
}

// Models is the vendor's list of models.
func Models(ids ...string) Answer {
	data := []any{}
	for _, id := range ids {
		data = append(data, modelEntry(id))
	}
	return jsonAnswer(200, map[string]any{"data": data, "has_more": false}, nil)
}

func modelEntry(id string) map[string]any {
	return map[string]any{"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"}
}
