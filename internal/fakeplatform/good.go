package fakeplatform

import (
	"encoding/json"
	"fmt"
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
func GoodStream(id, model string, n int) Answer {
	events := [][]byte{MessageStart(id, model), BlockStart(0), Ping()}
	for i := range n {
		events = append(events, TextDelta(0, fmt.Sprintf("word %d ", i)))
	}
	return Stream(append(events, BlockStop(0), MessageDelta("end_turn"), MessageStop())...)
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
		data = append(data, map[string]any{"type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z"})
	}
	return jsonAnswer(200, map[string]any{"data": data, "has_more": false}, nil)
}
