package messages

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, event, data string
		want              Step
	}{
		{"message_start", "message_start", `{"type":"message_start","message":{"content":[],"usage":{}}}`, StepStart},
		{"ping", "ping", `{"type":"ping"}`, StepNone},
		{"text block that is empty", "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, StepNone},
		{"text block with text", "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}`, StepContent},
		{"thinking block", "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, StepNone},
		{"tool_use", "content_block_start", `{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}`, StepContent},
		{"server_tool_use", "content_block_start", `{"content_block":{"id":"t","type":"server_tool_use"},"type":"content_block_start"}`, StepContent},
		{"redacted_thinking", "content_block_start", `{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"x"}}`, StepContent},
		{"a type that is only an input's", "content_block_start", `{"type":"content_block_start","content_block":{"type":"fallback","from":{"type":"tool_use","text":"x"}}}`, StepNone},
		{"unknown block", "content_block_start", `{"type":"content_block_start","content_block":{"type":"new_thing","content":"x"}}`, StepNone},
		{"odd block", "content_block_start", `{"type":"content_block_start","content_block":"text"}`, StepNone},
		{"text_delta", "content_block_delta", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`, StepContent},
		{"thinking_delta", "content_block_delta", `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}`, StepContent},
		{"empty delta", "content_block_delta", `{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}`, StepContent},
		{"type after the delta", "", `{"delta":{"type":"text_delta","text":"a"},"type":"content_block_delta"}`, StepContent},
		{"content_block_stop", "content_block_stop", `{"type":"content_block_stop","index":0}`, StepNone},
		{"message_delta", "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, StepContent},
		{"message_stop", "message_stop", `{"type":"message_stop"}`, StepStop},
		{"error", "error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, StepError},
		{"unknown event", "new_event", `{"type":"new_event","text":"x"}`, StepNone},
		{"no event name", "", `{"type":"content_block_delta"}`, StepContent},
		{"the data's type counts", "ping", `{"type":"content_block_delta"}`, StepContent},
		{"the name counts without a type", "error", `{"message":"boom"}`, StepError},
		{"the name counts when the data is no JSON", "error", `boom`, StepError},
		{"type escaped", "", `{"\u0074ype":"message\u005fstop"}`, StepStop},
		{"type not a string", "message_stop", `{"type":5}`, StepNone},
		{"DONE of another schema", "", `[DONE]`, StepNone},
		{"nothing", "", ``, StepNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, body := Read([]byte(c.event), []byte(c.data))
			if got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if got != StepError && body != (ErrorBody{}) {
				t.Errorf("an error body without an error: %+v", body)
			}
		})
	}
}

func TestReadError(t *testing.T) {
	_, got := Read(nil, []byte(`{"type":"error","error":{"details":{"error_code":"x_y"},"type":"overloaded_error","message":"Over\u006coaded"},"request_id":"req_1"}`))
	want := ErrorBody{Envelope: EnvelopeAnthropic, Type: "overloaded_error", Code: "x_y", Message: "Overloaded", RequestID: "req_1"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReadingADeltaLooksAtItsBeginning(t *testing.T) {
	data := []byte(`{"type":"content_block_delta","delta":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`)
	if n := testing.AllocsPerRun(20, func() { Read(nil, data) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	copy(data[len(data)-3:], "###") // never looked at
	if step, _ := Read(nil, data); step != StepContent {
		t.Errorf("%v, want content", step)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("error"), []byte(`{"type":"error","error":{"type":"a","message":"b","details":[{"@type":"google.rpc.RetryInfo","retryDelay":"1s"}]}}`))
	f.Add([]byte(""), []byte(`{"type":"content_block_start","content_block":{"type":"text","text":"x"}}`))
	f.Fuzz(func(t *testing.T, name, data []byte) {
		step, _ := Read(name, data)
		if step > StepError {
			t.Fatalf("step %d", step)
		}
		ParseError("application/json", data)
		ReadTail("application/json", data)
		ReadTail("text/event-stream", data)
		if n := len([]rune(Redact(string(data)))); n > MaxMessage {
			t.Fatalf("%d characters", n)
		}
	})
}
