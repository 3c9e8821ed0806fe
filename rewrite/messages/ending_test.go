package messages

import (
	"strings"
	"testing"
)

const stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":11,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"data: {\\\"type\\\":\\\"error\\\"} \\\"usage\\\":{\\\"output_tokens\\\":99}\"}}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":42,\"cache_creation_input_tokens\":7}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

func TestReadTailOfAStream(t *testing.T) {
	if e := ReadTail("text/event-stream", []byte(stream)); !e.Stop || e.StopReason != "end_turn" || e.Err != nil || !e.HasUsage || e.Usage != (Usage{11, 42, 3, 7}) {
		t.Errorf("%+v", e)
	}
	crlf := strings.ReplaceAll(stream, "\n", "\r\n")
	if e := ReadTail("text/event-stream; charset=utf-8", []byte(crlf)); !e.Stop || e.StopReason != "end_turn" || e.Usage.OutputTokens != 42 {
		t.Errorf("CRLF: %+v", e)
	}
}

// Wherever the front is cut: what is left is told, and nothing that is not.
func TestReadTailOfAStreamCutAnywhere(t *testing.T) {
	delta := strings.Index(stream, `"usage":{"output_tokens":42`)
	reason := strings.Index(stream, `"delta":{"stop_reason"`)
	stop := strings.Index(stream, "data: {\"type\":\"message_stop")
	for n := range stream {
		e := ReadTail("text/event-stream", []byte(stream[n:]))
		if e.Err != nil {
			t.Fatalf("cut at %d: an error event out of text: %+v", n, e.Err)
		}
		if want := n <= stop; e.Stop != want {
			t.Errorf("cut at %d: stop %v, want %v", n, e.Stop, want)
		}
		if n <= delta && e.Usage.OutputTokens != 42 {
			t.Errorf("cut at %d: %+v, want 42 output tokens", n, e.Usage)
		}
		if n > delta+1 && e.HasUsage {
			t.Errorf("cut at %d: usage out of nothing: %+v", n, e.Usage)
		}
		if n <= reason && e.StopReason != "end_turn" {
			t.Errorf("cut at %d: stop reason %q", n, e.StopReason)
		}
	}
}

func TestReadTailOfBrokenStreams(t *testing.T) {
	for _, c := range []struct {
		name, tail string
		stop       bool
		err        string
	}{
		{"error event", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", false, "overloaded_error"},
		{"no end", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n", false, ""},
		{"unfinished message_stop", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n", false, ""},
		{"text that looks like one", "data: {\"type\":\"ping\",\"x\":\"event: message_stop\"}\n\n", false, ""},
		{"bytes replaced", "data: {\"type\":\"content_block_delta\",\"t\":\"???\"}\n\ndata: {\"type\":\"message_stop\"}\n\n", true, ""},
		{"nothing", "", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := ReadTail("text/event-stream", []byte(c.tail))
			said := ""
			if e.Err != nil {
				said = e.Err.Type
			}
			if e.Stop != c.stop || said != c.err {
				t.Errorf("stop %v, error %q; want %v, %q", e.Stop, said, c.stop, c.err)
			}
		})
	}
}

func TestReadTailOfJSON(t *testing.T) {
	inner := `{"usage":{"input_tokens":900,"output_tokens":901},"stop_reason":"no"}`
	answer := ` {"id":"msg","content":[{"type":"text","text":"\"usage\":{\"output_tokens\":77} \\"},{"type":"tool_use","input":` + inner + `}],` +
		`"stop_reason" : "tool_use","stop_sequence":null, "usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":30,"cache_creation":{"x":1},"cache_creation_input_tokens":40,"service_tier":"standard"}} ` + "\n"
	usage, reason := strings.LastIndex(answer, `"usage"`), strings.LastIndex(answer, `"stop_reason"`)
	for n := range answer {
		e := ReadTail("application/json", []byte(answer[n:]))
		wantUsage, wantReason := Usage{}, ""
		if n <= usage {
			wantUsage = Usage{10, 20, 30, 40}
		}
		if n <= reason {
			wantReason = "tool_use"
		}
		if e.Usage != wantUsage || e.HasUsage != (n <= usage) || e.StopReason != wantReason {
			t.Fatalf("cut at %d: %+v, want %+v %q", n, e, wantUsage, wantReason)
		}
		if want := n < len(answer)-2; e.Stop != want {
			t.Fatalf("cut at %d: whole %v, want %v", n, e.Stop, want)
		}
	}
}

func TestReadTailOfOtherAnswers(t *testing.T) {
	for _, c := range []struct{ name, contentType, tail string }{
		{"JSON that stops early", "application/json", `{"usage":{"output_tokens":5},"content":[{"text":"and th`},
		{"HTML", "text/html", `{"usage":{"output_tokens":5}}`},
		{"no type", "", `{"usage":{"output_tokens":5}}`},
		{"an array", "application/json", `[1,2]`},
		{"nothing", "application/json", ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := ReadTail(c.contentType, []byte(c.tail)); e != (Ending{}) {
				t.Errorf("%+v, want nothing", e)
			}
		})
	}
	e := ReadTail("application/json", []byte(`{"usage":{"output_tokens":-5,"input_tokens":1e3,"cache_read_input_tokens":99999999999999999999}}`))
	if e.HasUsage || e.Usage != (Usage{}) {
		t.Errorf("counts that are none: %+v", e)
	}
}
