package rewrite

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestInspectFacts(t *testing.T) {
	body := ` {"max_tokens": 1024,"mod\u0065l" : "claude\u002dopus-5-5", "stream":true,"x":{"model":"no"},"messages":[{"role":"user","content":"hi"}]} `
	f, err := Inspect([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if f.Model != "claude-opus-5-5" || !f.Stream || f.MaxTokens != 1024 || f.Open != 2 || f.LargestImage != 0 {
		t.Errorf("facts %+v", f)
	}
	if got := body[f.ModelSpan.Start:f.ModelSpan.End]; got != `"claude\u002dopus-5-5"` {
		t.Errorf("model span %q", got)
	}
	if got := body[f.StreamSpan.Start:f.StreamSpan.End]; got != `true` {
		t.Errorf("stream span %q", got)
	}
	var got []string
	for _, m := range f.Members {
		got = append(got, fmt.Sprintf("%s|%s|%s", m.Name, body[m.Key.Start:m.Key.End], body[m.Value.Start:m.Value.End]))
	}
	want := []string{
		`max_tokens|"max_tokens"|1024`, `model|"mod\u0065l"|"claude\u002dopus-5-5"`, `stream|"stream"|true`,
		`x|"x"|{"model":"no"}`, `messages|"messages"|[{"role":"user","content":"hi"}]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("members:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInspectRefuses(t *testing.T) {
	many := strings.Builder{}
	for i := range MaxMembers {
		fmt.Fprintf(&many, `,"m%d":0`, i)
	}
	for _, c := range []struct{ name, body, says string }{
		{"nothing", ``, "empty"},
		{"blanks only", " \n", "ends too early at byte 2"},
		{"byte order mark", "\ufeff{\"model\":\"m\"}", "byte order mark"},
		{"an array", `[{"model":"m"}]`, "not a JSON object"},
		{"a string", `"model"`, "not a JSON object"},
		{"cut", `{"model":"m"`, "ends too early at byte 12"},
		{"trailing comma", `{"model":"m",}`, "unexpected character at byte 13"},
		{"a second object", `{"model":"m"}{"model":"n"}`, "unexpected character at byte 13"},
		{"not UTF-8", "{\"model\":\"m\",\"x\":\"\xff\"}", "not valid UTF-8"},
		{"not UTF-8 in a name", "{\"model\":\"m\",\"\xff\":1}", "not valid UTF-8"},
		{"surrogate in UTF-8", "{\"model\":\"m\",\"x\":\"\xed\xa0\x80\"}", "not valid UTF-8"},
		{"too deep", `{"model":"m","x":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + `}`, "deeper than 512"},
		{"bad number", `{"model":"m","x":01}`, "unexpected character"},
		{"model twice", `{"model":"a","model":"b"}`, `a member twice ("model")`},
		{"model twice, by escapes", `{"model":"a","\u006dodel":"b"}`, `a member twice ("model")`},
		{"another member twice", `{"model":"a","secret":1,"secret":2}`, `a member twice: names`},
		{"twice among many", `{"model":"a"` + many.String()[:len(`,"m0":0`)*10+len(`,"m10":0`)*60] + `,"m7":1}`, `a member twice: names`},
		{"too many members", `{"model":"a"` + many.String() + `}`, "more than 1024 members"},
		{"no model", `{"messages":[]}`, "model: Field required"},
		{"model null", `{"model":null}`, "model: Input should be a string"},
		{"model a number", `{"model":5}`, "model: Input should be a string"},
		{"model empty", `{"model":""}`, "1 to 256 printable"},
		{"model of 257", `{"model":"` + strings.Repeat("m", 257) + `"}`, "1 to 256 printable"},
		{"model with a line break", `{"model":"a\nb"}`, "1 to 256 printable"},
		{"model with a zero", `{"model":"a\u0000b"}`, "1 to 256 printable"},
		{"model with DEL", "{\"model\":\"a\x7f\"}", "1 to 256 printable"},
		{"model with an umlaut", `{"model":"ä"}`, "1 to 256 printable"},
		{"model with a lone surrogate", `{"model":"\ud800"}`, "1 to 256 printable"},
		{"stream a string", `{"model":"m","stream":"true"}`, "stream: Input should be a boolean"},
		{"stream a number", `{"model":"m","stream":1}`, "stream: Input should be a boolean"},
		{"stream an array", `{"model":"m","stream":[true]}`, "stream: Input should be a boolean"},
		{"broken JSON beside a broken rule", `{"model":5,"x":}`, "not valid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Inspect([]byte(c.body))
			refusal := AsRequestError(err)
			if refusal == nil || refusal.Status != 400 || refusal.Type != "invalid_request_error" || !strings.Contains(refusal.Message, c.says) {
				t.Fatalf("%+v, want a 400 that says %q", refusal, c.says)
			}
			if strings.Contains(refusal.Message, "secret") {
				t.Errorf("the message quotes the request: %s", refusal.Message)
			}
		})
	}
}

func TestInspectAccepts(t *testing.T) {
	for _, c := range []struct {
		name, body, model string
		maxTokens         int64
	}{
		{"the least", `{"model":"m"}`, "m", 0},
		{"blanks and case in a model", `{"model":" Claude  X "}`, " Claude  X ", 0},
		{"model of 256", `{"model":"` + strings.Repeat("m", 256) + `"}`, strings.Repeat("m", 256), 0},
		{"quotes in a model", `{"model":"a\"b\\c\/d"}`, `a"b\c/d`, 0},
		{"a member twice below the top", `{"model":"m","x":{"a":1,"a":2}}`, "m", 0},
		{"lone surrogate in content", `{"model":"m","messages":[{"content":"\ud800"}]}`, "m", 0},
		{"names that only look alike", `{"model":"m","Model":1,"model ":2,"":3}`, "m", 0},
		{"nesting of 512", `{"model":"m","x":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + `}`, "m", 0},
		{"max_tokens a fraction", `{"model":"m","max_tokens":1.5}`, "m", 0},
		{"max_tokens negative", `{"model":"m","max_tokens":-5}`, "m", 0},
		{"max_tokens a string", `{"model":"m","max_tokens":"5"}`, "m", 0},
		{"max_tokens enormous", `{"model":"m","max_tokens":99999999999999999999}`, "m", 0},
		{"max_tokens", `{"model":"m","max_tokens":128000}`, "m", 128000},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Inspect([]byte(c.body))
			if err != nil || f.Model != c.model || f.MaxTokens != c.maxTokens {
				t.Errorf("model %q max_tokens %d err %v, want %q %d", f.Model, f.MaxTokens, err, c.model, c.maxTokens)
			}
		})
	}
}

func TestLargestImage(t *testing.T) {
	data := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	image := func(n int) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data(n) + `"}}`
	}
	user := func(content string) string { return `[{"role":"user","content":` + content + `}]` }
	text := func(n int) int64 { return int64(base64.StdEncoding.EncodedLen(n)) }
	for _, c := range []struct {
		name, messages string
		want           int64
	}{
		{"text", user(`"hello"`), 0},
		{"one image", user(`[` + image(1000) + `]`), text(1000)},
		{"sizes that need padding", user(`[` + image(1001) + `,` + image(1) + `]`), text(1001)},
		{"the largest of several messages", `[{"content":[` + image(10) + `]},{"content":[` + image(30) + `,` + image(20) + `]}]`, text(30)},
		{"members in another order", `[{"content":[{"source":{"data":"` + data(12) + `","type":"base64"},"type":"image"}],"role":"user"}]`, text(12)},
		{"in a tool result", user(`[{"type":"tool_result","content":[{"type":"text","text":"x"},` + image(50) + `]}]`), text(50)},
		{"in a document", user(`[{"type":"document","source":{"type":"content","content":[` + image(60) + `]}}]`), text(60)},
		{"slashes escaped", user(`[{"type":"image","source":{"type":"base64","data":"\/\/\/\/"}}]`), 4},
		{"a PDF is none", user(`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data(99) + `"}}]`), 0},
		{"a URL is none", user(`[{"type":"image","source":{"type":"url","url":"https://a.example/x.png"}}]`), 0},
		{"a look-alike in a tool's input is none", user(`[{"type":"tool_use","input":{"content":[` + image(70) + `]}}]`), 0},
		{"a text that says so is none", user(`[{"type":"text","text":` + string(quote(image(80))) + `}]`), 0},
		{"odd shapes", `[1,null,{"content":5},{"content":[7,{"type":3,"source":[],"content":{}}]}]`, 0},
		{"not an array", `{"content":[` + image(5) + `]}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Inspect([]byte(`{"model":"m","messages":` + c.messages + `}`))
			if err != nil || f.LargestImage != c.want {
				t.Errorf("%d, %v; want %d", f.LargestImage, err, c.want)
			}
		})
	}
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

func FuzzInspect(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","stream":true,"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}]}`,
		`{"model":"m","\u006dodel":"n"}`, `{"model":"\ud83d\ude00"}`, "\ufeff{}", `{"model":"m"} x`,
		`{"model":"m","messages":[{"content":[{"source":{"data":`, `{"model":"m","messages":[{"content":[{"type":`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		facts, err := Inspect(b)
		if err != nil {
			if r := AsRequestError(err); r == nil || r.Status != 400 || r.Message == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		var plain map[string]json.RawMessage
		if !json.Valid(b) || !utf8.Valid(b) || json.Unmarshal(b, &plain) != nil {
			t.Fatalf("accepted %q", b)
		}
		var model string
		if json.Unmarshal(plain["model"], &model) != nil || model != facts.Model || len(facts.Members) < len(plain) {
			t.Fatalf("model %q, members %d of %d in %q", facts.Model, len(facts.Members), len(plain), b)
		}
	})
}

func benchmarkBody(content string, repeat int) []byte {
	return []byte(`{"max_tokens":1024,"messages":[{"role":"user","content":"` + strings.Repeat(content, repeat) + `"}],"model":"claude-opus-5-5"}`)
}

func BenchmarkInspect(b *testing.B) {
	prose := `The quick brown fox jumps over the lazy dog, and then it does so once more, as foxes do.\nNobody had asked for it; the dog, for one, kept its eyes shut and said: \"enough\". So it was. `
	tiny := []byte(`{"model":"m","x":[` + strings.Repeat(`{"a":1,"b":[true,null],"c":"d"},`, 30000) + `0]}`)
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"1KB", benchmarkBody(prose, 10)},
		{"prose1MB", benchmarkBody(prose, 10000)},
		{"prose32MB", benchmarkBody(prose, 320000)},
		{"base64", benchmarkBody("iVBORw0KGgoAAAANSUhEUgAA", 40000)},
		{"japanese", benchmarkBody("日本語の文章です。", 40000)},
		{"tiny", tiny},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Inspect(c.body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/utf8.Valid", func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			for b.Loop() {
				if !utf8.Valid(c.body) {
					b.Fatal("not UTF-8")
				}
			}
		})
	}
}
