package fakeplatform

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReply(t *testing.T) {
	p := Reply{
		ID: "msg_1", StopReason: "tool_use", Usage: Usage{Input: 12, CacheRead: 3, Output: 45},
		Blocks: []Block{
			{Type: "thinking", Text: "Was soll’s: 12 < 13", Signature: "c2ln"},
			{Type: "text", Text: "Grüße, 世界 🌍"},
			{Type: "tool_use", ID: "toolu_1", Name: "look", Input: `{"path":"/tmp/é","n":[1,2.50]}`},
		},
	}
	whole := p.Answer(Anthropic, Request{Model: "m"}).Body()
	const want = `{"content":[{"signature":"c2ln","thinking":"Was soll’s: 12 < 13","type":"thinking"},{"text":"Grüße, 世界 🌍","type":"text"},{"id":"toolu_1","input":{"path":"/tmp/é","n":[1,2.50]},"name":"look","type":"tool_use"}],"id":"msg_1","model":"m","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"output_tokens":45}}`
	if string(whole) != want {
		t.Errorf("message\n%s\nwant\n%s", whole, want)
	}

	joined := map[string]string{}
	var order []string
	for _, e := range p.Events("m") {
		name, data, _ := strings.Cut(strings.TrimPrefix(string(e), "event: "), "\ndata: ")
		var v struct {
			Type  string
			Delta map[string]any
		}
		if err := json.Unmarshal([]byte(data), &v); err != nil || v.Type != name {
			t.Fatalf("event %q: %v", e, err)
		}
		if len(order) == 0 || order[len(order)-1] != name {
			order = append(order, name)
		}
		for field, x := range v.Delta {
			if s, ok := x.(string); ok && field != "type" {
				joined[field] += s
			}
		}
	}
	for field, want := range map[string]string{"thinking": p.Blocks[0].Text, "signature": "c2ln", "text": p.Blocks[1].Text, "partial_json": p.Blocks[2].Input, "stop_reason": "tool_use"} {
		if joined[field] != want {
			t.Errorf("the deltas of %s make %q, want %q", field, joined[field], want)
		}
	}
	const block = "content_block_start content_block_delta content_block_stop "
	if got, want := strings.Join(order, " "), "message_start content_block_start ping content_block_delta content_block_stop "+block+block+"message_delta message_stop"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if a := p.Answer(Bedrock, Request{Model: "eu.anthropic.m", Stream: true}); a.Header[0].Value != "application/vnd.amazon.eventstream" {
		t.Errorf("a stream of bedrock is %s", a.Header[0].Value)
	}
}
