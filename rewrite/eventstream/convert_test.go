package eventstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/rewrite/messages"
	"github.com/crossdoor/crossdoor/rewrite/sse"
)

// chunk is a frame as Bedrock sends an event.
func chunk(event string) []byte {
	payload := fmt.Sprintf(`{"bytes":"%s","p":"abcdefghijklmnop"}`, base64.StdEncoding.EncodeToString([]byte(event)))
	return raw(payload)
}

// raw is a chunk with any payload.
func raw(payload string) []byte {
	return frame(Frame{Kind: KindEvent, EventType: []byte("chunk"), ContentType: []byte("application/json"), Payload: []byte(payload)})
}

func exception(name, payload string) []byte {
	return frame(Frame{Kind: KindException, ExceptionType: []byte(name), ContentType: []byte("application/json"), Payload: []byte(payload)})
}

// convert gives the chunks to a converter, the end too, and returns what a client
// reads and the events as text.
func convert(c *Converter, chunks ...[]byte) (client string, events []string) {
	var out []byte
	for _, in := range chunks {
		in = bytes.Clone(in)
		out, _ = c.Convert(out, in, func(e Event) {
			events = append(events, fmt.Sprintf("%v %s %s", e.Step, e.Name, e.Data))
		})
		for i := range in {
			in[i] = '#' // whatever still points here shows
		}
	}
	return string(c.End(out)), events
}

const (
	startEvent = `{"type":"message_start","message":{"id":"msg_bdrk_01","type":"message","role":"assistant","model":"claude-opus-4-5","content":[],"usage":{"input_tokens":11,"cache_read_input_tokens":3,"output_tokens":1}}}`
	blockEvent = `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`
	textEvent  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \u00e9 日本 \"quoted\"\n"}}`
	deltaEvent = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":42}}`
	stopEvent  = `{"type":"message_stop"}`
	metrics    = `"amazon-bedrock-invocationMetrics":{"inputTokenCount":11,"outputTokenCount":42,"invocationLatency":900,"firstByteLatency":300,"cacheReadInputTokenCount":3,"cacheWriteInputTokenCount":7}`
)

// sent is an event as the client reads it.
func sent(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func failure(kind, message string) string {
	return sent("error", `{"type":"error","error":{"type":"`+kind+`","message":"`+message+`"}}`)
}

const (
	cutText     = "The platform ended the stream before the message was complete."
	corruptText = "The platform's stream could not be read: it is corrupt."
)

// TestConvertAWholeAnswer: events in order, names and data as the first party
// has them, signatures where they were (public report 49), wherever the stream is
// cut.
func TestConvertAWholeAnswer(t *testing.T) {
	events := [][2]string{
		{"message_start", startEvent},
		{"ping", `{"type":"ping"}`},
		{"content_block_start", blockEvent},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`},
		{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBq7=="}}`},
		{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		{"content_block_delta", textEvent},
		{"message_delta", deltaEvent},
	}
	var stream, before []byte
	for _, e := range events {
		stream = append(stream, chunk(e[1])...)
		before = append(before, sent(e[0], e[1])...)
	}
	stream = append(stream, chunk(`{"type":"message_stop",`+metrics+`}`)...)
	want := string(before) + sent("message_stop", stopEvent)
	for n := range len(stream) + 1 {
		var c Converter
		got, told := convert(&c, stream[:n], stream[n:])
		if got != want || len(told) != len(events)+1 {
			t.Fatalf("cut at %d: %d events\n%s\nwant\n%s", n, len(told), got, want)
		}
		ending := messages.Ending{Stop: true, StopReason: "end_turn", HasUsage: true, Usage: messages.Usage{InputTokens: 11, OutputTokens: 42, CacheReadInputTokens: 3, CacheCreationInputTokens: 7}}
		if a := c.Account(); a != ending || c.Err() != nil {
			t.Fatalf("cut at %d: %+v, %v", n, a, c.Err())
		}
	}
	var c Converter
	if got, _ := convert(&c, bytes.Split(stream, nil)...); got != want {
		t.Errorf("one by one: %s", got)
	}
}

func TestConvertEvents(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream []byte
		want   string // before the end
	}{
		{"spacing is kept", chunk(`{ "type" : "ping" , "x":[ 1,2.50 ] }`), sent("ping", `{ "type" : "ping" , "x":[ 1,2.50 ] }`)},
		{"line breaks between tokens", chunk("{\r\n\"type\":\n\"ping\"}\n"), sent("ping", `{  "type": "ping"} `)},
		{"unknown events go through", chunk(`{"type":"new_thing","a":1}`), sent("new_thing", `{"type":"new_thing","a":1}`)},
		{"type at the end, escaped", chunk(`{"a":{"type":"no"},"\u0074ype":"pi\u006eg"}`), sent("ping", `{"a":{"type":"no"},"\u0074ype":"pi\u006eg"}`)},
		{"no type", chunk(`{"a":1}`), ""},
		{"type that is no string", chunk(`{"type":7}`), ""},
		{"empty type", chunk(`{"type":""}`), ""},
		{"no object", chunk(`null`), ""},
		{"empty event", chunk(``), ""},
		{"no bytes", raw(`{"p":"abc"}`), ""},
		{"bytes null", raw(`{"bytes":null,"p":"abc"}`), ""},
		{"base64 with escaped slashes", raw(`{"p":"x","bytes":"` + strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(`{"type":"ping","x":"???>>>"}`)), "/", `\/`) + `"}`), sent("ping", `{"type":"ping","x":"???>>>"}`)},
		{"other frames", join(frame(Frame{Kind: KindEvent, EventType: []byte("initial-response"), Payload: []byte("{}")}), chunk(`{"type":"ping"}`)), sent("ping", `{"type":"ping"}`)},
		{"metrics first", chunk(`{` + metrics + `, "type":"ping"}`), sent("ping", `{ "type":"ping"}`)},
		{"metrics between", chunk(`{"type":"ping", ` + metrics + ` ,"a":1}`), sent("ping", `{"type":"ping", "a":1}`)},
		{"metrics last, with blanks", chunk(`{"type":"ping" , ` + metrics + ` }`), sent("ping", `{"type":"ping"  }`)},
		{"metrics alone", chunk(`{` + metrics + `}`), ""},
		{"metrics inside something else stay", chunk(`{"type":"ping","x":{` + metrics + `}}`), sent("ping", `{"type":"ping","x":{`+metrics+`}}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := convert(&Converter{}, c.stream); got != c.want+failure("api_error", cutText) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// TestConvertEndings: a stream that fails ends with one error event, told in the
// words that classification knows, and nothing after it.
func TestConvertEndings(t *testing.T) {
	flipped := chunk(textEvent)
	flipped[len(flipped)-20] ^= 1
	head := sent("message_start", startEvent)
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	for _, c := range []struct {
		name   string
		stream []byte
		want   string
		typ    string // of the account's error
		err    error
	}{
		{"throttling", exception("throttlingException", `{"message":"Too many requests, please wait before trying again."}`), failure("rate_limit_error", "Too many requests, please wait before trying again."), "throttlingException", nil},
		{"internal", exception("internalServerException", `{"message":"m"}`), failure("api_error", "m"), "internalServerException", nil},
		{"model stream", exception("modelStreamErrorException", `{"message":"m","originalStatusCode":500,"originalMessage":"o"}`), failure("api_error", "m"), "modelStreamErrorException", nil},
		{"model timeout", exception("modelTimeoutException", `{"message":"m"}`), failure("timeout_error", "m"), "modelTimeoutException", nil},
		{"unavailable", exception("serviceUnavailableException", `{"Message":"m"}`), failure("overloaded_error", "m"), "serviceUnavailableException", nil},
		{"validation", exception("validationException", `{"message":"m"}`), failure("invalid_request_error", "m"), "validationException", nil},
		{"unknown", exception("somethingNewException", `{"message":"m"}`), failure("api_error", "m"), "somethingNewException", nil},
		{"without a message", exception("throttlingException", ``), failure("rate_limit_error", "The platform ended the stream with an error."), "throttlingException", nil},
		{"without anything", exception("", ``), failure("api_error", "The platform ended the stream with an error."), "", nil},
		{"error frame", frame(Frame{Kind: KindError, ErrorCode: []byte("ThrottlingException"), ErrorMessage: []byte(`a "b"`)}), failure("rate_limit_error", `a \"b\"`), "ThrottlingException", nil},
		{"unknown error frame", frame(Frame{Kind: KindError, ErrorCode: []byte("InternalFailure")}), failure("api_error", "The platform ended the stream with an error."), "InternalFailure", nil},
		{"error event", chunk(overloaded), sent("error", overloaded), "overloaded_error", nil},
		{"corrupt frame", flipped, failure("api_error", corruptText), "api_error", ErrCorruptMessage},
		{"no frame", []byte("HTTP/1.1 502 Bad Gateway\r\n"), failure("api_error", corruptText), "api_error", ErrCorruptPrelude},
		{"no message type", appendMessage(nil, nil, nil), failure("api_error", corruptText), "api_error", ErrBadHeader},
		{"too long", raw(`{"bytes":"` + strings.Repeat("A", 2000) + `"}`), failure("api_error", corruptText), "api_error", ErrTooLarge},
		{"payload is no JSON", raw(`{"bytes":"e30="`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"payload is two", raw(`{"bytes":"e30="}{}`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"base64 is none", raw(`{"bytes":"e30*"}`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"base64 without padding", raw(`{"bytes":"e30"}`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"base64 with bits left over", raw(`{"bytes":"e31="}`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"base64 in lines", raw(`{"bytes":"e3\n0="}`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"event is no JSON", chunk(`{"type":"ping"`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"type that breaks the line", chunk(`{"type":"ping\ndata: {}\n\nevent: x"}`), failure("api_error", corruptText), "api_error", ErrBadChunk},
		{"end", nil, failure("api_error", cutText), "", ErrEnded},
		{"end inside a frame", chunk(textEvent)[:50], failure("api_error", cutText), "", ErrEnded},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := errors.Is(c.err, ErrEnded)
			var after []byte
			if !ended {
				after = join(chunk(textEvent), chunk(stopEvent), exception("throttlingException", ""))
			}
			conv := Converter{MaxPayload: 1000}
			got, events := convert(&conv, chunk(startEvent), c.stream, after)
			if got != head+c.want {
				t.Fatalf("%s\nwant %s", got, head+c.want)
			}
			a := conv.Account()
			if a.Stop || !errors.Is(conv.Err(), c.err) || (a.Err == nil) != ended || (a.Err != nil && a.Err.Type != c.typ) {
				t.Errorf("%+v %+v, %v; want %q, %v", a, a.Err, conv.Err(), c.typ, c.err)
			}
			if n := len(events); a.Err != nil && (n != 2 || !strings.HasPrefix(events[1], "error error {")) {
				t.Errorf("told %q", events)
			}
			if step, said := messages.Read(nil, []byte(c.want[len("event: error\ndata: "):])); step != messages.StepError || said.Envelope != messages.EnvelopeAnthropic {
				t.Errorf("the client cannot read it: %v %+v", step, said)
			}
		})
	}
}

func TestNothingComesAfterTheEnd(t *testing.T) {
	for _, after := range [][]byte{chunk(textEvent), exception("throttlingException", ""), []byte("rubbish, and more of it")} {
		var c Converter
		if got, _ := convert(&c, chunk(stopEvent), after); got != sent("message_stop", stopEvent) || !c.Account().Stop || c.Err() != nil {
			t.Errorf("%q, %+v, %v", got, c.Account(), c.Err())
		}
		if got, _ := convert(&c, join(chunk(stopEvent), after)); got != "" {
			t.Errorf("later: %q", got)
		}
	}
}

func TestMetricsCountWhereNothingElseDoes(t *testing.T) {
	var c Converter
	convert(&c, chunk(`{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`), chunk(`{`+metrics+`,"type":"message_stop"}`))
	if a := c.Account(); a.Usage != (messages.Usage{InputTokens: 11, OutputTokens: 42, CacheReadInputTokens: 3, CacheCreationInputTokens: 7}) || !a.HasUsage || a.StopReason != "max_tokens" {
		t.Errorf("%+v", a)
	}
	for _, odd := range []string{`null`, `[1]`, `{"inputTokenCount":"5","outputTokenCount":-1,"x":3,"cacheReadInputTokenCount":1e3}`} {
		c = Converter{}
		got, _ := convert(&c, chunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":`+odd+`}`))
		if a := c.Account(); a.HasUsage || a.Usage != (messages.Usage{}) || got != sent("message_stop", stopEvent) {
			t.Errorf("%s: %+v %s", odd, a, got)
		}
	}
}

// TestAccountIsThatOfTheTail: what the judge knows of the whole stream is what
// the last bytes of its output say, and more.
func TestAccountIsThatOfTheTail(t *testing.T) {
	var c Converter
	got, _ := convert(&c, chunk(startEvent), chunk(textEvent), chunk(deltaEvent), chunk(stopEvent))
	if tail := messages.ReadTail("text/event-stream", []byte(got)); tail != c.Account() {
		t.Errorf("%+v, want %+v", c.Account(), tail)
	}
}

func TestConvertingAllocatesNothing(t *testing.T) {
	stream := bytes.Repeat(chunk(textEvent), 50)
	out := make([]byte, 0, len(stream))
	var c Converter
	n := 0
	each := func(Event) { n++ }
	if allocs := testing.AllocsPerRun(20, func() {
		for in := range slicesOf(stream, 333) {
			if _, done := c.Convert(out, in, each); done {
				t.Error("done")
			}
		}
	}); allocs != 0 || n != 21*50 {
		t.Errorf("%v allocations a run of 50 events, %d events", allocs, n)
	}
}

func TestLongEventsAreNotKept(t *testing.T) {
	var c Converter
	convert(&c, chunk(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"`+strings.Repeat("x", 2<<20)+`"}}`), chunk(stopEvent))
	if cap(c.inner) > keptBetween {
		t.Errorf("%d bytes kept", cap(c.inner))
	}
}

func FuzzConverter(f *testing.F) {
	f.Add(join(chunk(startEvent), chunk(textEvent), chunk(`{"type":"message_stop",`+metrics+`}`)), uint(5))
	f.Add(join(chunk(blockEvent), exception("throttlingException", `{"message":"m"}`)), uint(1))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint) {
		// Frames of its own make the fuzzer reach what checksums guard.
		for _, stream := range [][]byte{stream, chunk(string(stream)), raw(string(stream)), exception(string(stream[:min(len(stream), 300)]), string(stream))} {
			var whole, cut Converter
			want, wantEvents := convert(&whole, stream)
			got, gotEvents := convert(&cut, slices.Collect(slicesOf(stream, int(piece%64)+1))...)
			if got != want || !slices.Equal(gotEvents, wantEvents) {
				t.Fatalf("in pieces: %q; whole: %q", got, want)
			}
			readable(t, want, whole.Account())
		}
	})
}

// readable checks that a client can read the events, each one line of JSON, and
// that the last ends the stream.
func readable(t *testing.T, stream string, a messages.Ending) {
	t.Helper()
	var p sse.Parser
	last := messages.StepNone
	err := p.Feed([]byte(stream), func(e sse.Event) bool {
		if last == messages.StepStop || last == messages.StepError {
			t.Fatalf("%s after the end", e.Name)
		}
		var typed struct{ Type string }
		if err := json.Unmarshal(e.Data, &typed); err != nil || len(e.Name) == 0 {
			t.Fatalf("%q: %q: %v", e.Name, e.Data, err)
		}
		last, _ = messages.Read(e.Name, e.Data)
		return true
	})
	if err != nil || (last != messages.StepStop && last != messages.StepError) || a.Stop != (last == messages.StepStop) {
		t.Fatalf("%v: ends with %v, account %+v: %q", err, last, a, stream)
	}
}

func BenchmarkConverter(b *testing.B) {
	stream := bytes.Repeat(chunk(textEvent), 100)
	out := make([]byte, 0, len(stream))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	var c Converter
	for b.Loop() {
		c.Convert(out, stream, nil)
	}
}

// BenchmarkConverterLong is an event of 1 MB, as tool input or a file may be.
func BenchmarkConverterLong(b *testing.B) {
	stream := chunk(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"` + strings.Repeat("words and words ", 45000) + `"}}`)
	out := make([]byte, 0, len(stream))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	var c Converter
	for b.Loop() {
		c.Convert(out, stream, nil)
	}
}
