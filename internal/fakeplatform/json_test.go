package fakeplatform

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, body, contains string }{
		{"good", "\n{ \"a\" : [1, -0.5e+3, true, false, null, {}], \"b\":\"x\\\"\\\\\\u00e9\" }\t", ""},
		{"big numbers", `{"a":123456789012345678901234567890.5e-7,"b":1e999}`, ""},
		{"surrogate pair", `{"a":"\ud83d\ude00"}`, ""},
		{"deep", `{"a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`, ""},
		{"too deep", `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "nested too deeply"},
		{"free data", `{"input":{"a":1,"a":2},"input_schema":{"x":{"a":1,"a":2}}}`, ""},
		{"duplicate", `{"a":1,"a":2}`, `duplicate member "a": line 1 column 8`},
		{"duplicate, escaped", `{"model":1,"mod\u0065l":2}`, "duplicate member"},
		{"duplicate, inside", `{"messages":[{"a":1,"b":2,"a":3}]}`, "duplicate member"},
		{"duplicate after free data", `{"input":{},"a":1,"a":2}`, "duplicate member"},
		{"not an object", `[1]`, "not an object"},
		{"nothing", ``, "not an object"},
		{"cut", `{"a":[`, "not a value"},
		{"cut string", `{"a":"xyz`, "a string does not end"},
		{"cut in an escape", `{"a":"xyz\"`, "a string does not end"},
		{"trailing", `{"a":1} x`, "trailing"},
		{"leading zero", `{"a":05}`, "not a value"},
		{"no fraction", `{"a":1.}`, "not a number"},
		{"no exponent", `{"a":1e}`, "not a number"},
		{"no value", `{"a":}`, "not a value"},
		{"no colon", `{"a" 1}`, "colon"},
		{"trailing comma", `{"a":1,}`, "name is missing"},
		{"no comma", `{"a":[1 2]}`, "comma"},
		{"bad name", `{"a\x":1}`, "not an escape"},
		{"bad escape", `{"a":"\x"}`, "not an escape"},
		{"bad unicode escape", `{"a":"\u00g0"}`, "not an escape"},
		{"control character", "{\"a\":\"long enough for a leap\x01\"}", "control character"},
		{"newline in a string", "{\"a\":\"\n\"}", "control character"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "not UTF-8"},
		{"second line", "{\n\"a\":x}", "line 2 column 5"},
		{"byte order mark", "\ufeff{}", "not an object"},
		{"wrong word", `{"a":nul}`, "not a value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse([]byte(c.body))
			if (err == nil) != (c.contains == "") || err != nil && !strings.Contains(err.Error(), c.contains) {
				t.Errorf("got %v, want %q", err, c.contains)
			}
		})
	}
}

func TestParseKeepsSpans(t *testing.T) {
	doc, err := parse([]byte(`{"model" : "m\u0031", "x":{"y":[ 1e400 , {"z":true}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	x := doc.root.get("x").get("y")
	if doc.root.get("model").text() != "m1" || string(x.raw) != `[ 1e400 , {"z":true}]` || string(x.kids[0].raw) != "1e400" || !x.kids[1].get("z").isTrue() {
		t.Errorf("spans: %q %q", doc.root.get("model").raw, x.raw)
	}
	if x.get("none").get("none").text() != "" {
		t.Error("what is not there has a text")
	}
}

func TestLoneSurrogates(t *testing.T) {
	for body, lone := range map[string]string{
		`{"a":"\ud83d"}`: "no low surrogate in string: line 1 column 13", `{"a":"\ude00x"}`: "no low surrogate", `{"a":"\ud83d\ud83d"}`: "no low surrogate", `{"a":"\ud83d\ude00"}`: "",
	} {
		doc, err := parse([]byte(body))
		if err != nil || (doc.lone == "") != (lone == "") || !strings.HasPrefix(doc.lone, lone) {
			t.Errorf("%s: %v, %+v", body, err, doc)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, piece := range map[string]string{"one string": strings.Repeat("x", 1<<20), "escapes": strings.Repeat(`a line of text\n`, 1<<16)} {
		b.Run(name, func(b *testing.B) {
			body := []byte(`{"a":"` + piece + `"}`)
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := parse(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
