package scan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// whole skips one value with nothing after it.
func whole(b []byte) Fault {
	var s Scanner
	s.Reset(b)
	s.Value()
	s.End()
	fault, _ := s.Fault()
	return fault
}

// stepped takes the same text member by member, as a caller who descends does.
func stepped(b []byte) Fault {
	var s Scanner
	s.Reset(b)
	descend(&s)
	s.End()
	fault, _ := s.Fault()
	return fault
}

func descend(s *Scanner) {
	switch s.Peek() {
	case '{':
		s.Open('{')
		for _, more := s.Member(); more; _, more = s.Member() {
			descend(s)
		}
	case '[':
		s.Open('[')
		for s.Element() {
			descend(s)
		}
	default:
		s.Value()
	}
}

// outOfText reports bytes that encoding/json lets pass and RFC 8259 does not.
func outOfText(b []byte) bool { return !utf8.Valid(b) }

func depth(b []byte) (deepest int) {
	dec := json.NewDecoder(bytes.NewReader(b))
	for level := 0; ; {
		t, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			level++
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		deepest = max(deepest, level)
	}
}

var texts = []string{
	``, ` `, `{}`, `[]`, ` { } `, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}{`, `{"a":1} x`,
	`[1,2,3]`, `[1,]`, `[,1]`, `[1 2]`, `[[],{},[{}]]`, `[}`, `{]`, `[[1}]`, `{"a":[1}`, `{"a":{"b":[{"c":null}]}}`,
	`true`, `false`, `null`, `tru`, `truex`, `nul`, `falsy`, `t`, `True`, `[true,false,null]`,
	`0`, `-0`, `00`, `01`, `-`, `+1`, `1.`, `.1`, `1.5`, `-1.5e10`, `1e`, `1e+`, `1E-3`, `1.e1`, `0e0`, `-a`, `1a`, `0x10`, `Infinity`, `NaN`, `12345678901234567890`,
	`""`, `"a"`, `"`, `"a`, `"\"`, `"\\"`, `"\""`, `"\/\b\f\n\r\t"`, `"\x"`, `"\u"`, `"\u12"`, `"\u12g4"`, `"\u0041"`, `"\ud83d\ude00"`, `"\ud800"`, `"\ude00\ud83d"`, `'a'`,
	"\"tab\there\"", "\"line\nbreak\"", "\"nul\x00\"", "\"del\x7f\"", "\x00", "{\"a\":1}\x00", "\"\x1f\"", "\"01234567\x01\"", "\"0123456789012345678901234567890123456789\x1e\"",
	`"häßlich"`, `"日本語の文章です。とても長いので、三十二バイトを超えます。"`, "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc0\x80\"",
	"\ufeff{}", "{\u00a0}", "\v{}", "\f[]", "[1,\t2,\r\n3]", `{"k":"` + strings.Repeat("x", 100) + `"}`, `{"k":"` + strings.Repeat(`\"`, 100) + `"}`,
	strings.Repeat("[", 512) + strings.Repeat("]", 512), strings.Repeat("[", 513) + strings.Repeat("]", 513), strings.Repeat(`{"a":`, 512) + "1" + strings.Repeat("}", 512),
	strings.Repeat(`{"a":[`, 300), "/*c*/{}", `{"a":1//x` + "\n}", `{"a":"b","a":"c"}`,
}

func check(t *testing.T, b []byte) {
	t.Helper()
	want := json.Valid(b) && !outOfText(b) && depth(b) <= MaxDepth
	for name, fault := range map[string]Fault{"skipped": whole(b), "stepped": stepped(b)} {
		if (fault == None) != want {
			t.Errorf("%s: fault %v, want valid=%v for %.80q", name, fault, want, b)
		}
	}
}

func TestAcceptsWhatRFC8259Does(t *testing.T) {
	for _, text := range texts {
		check(t, []byte(text))
		// Each text also in each place where a value, a name or an end may be.
		check(t, []byte(`{"a":`+text+`}`))
		check(t, []byte(`[`+text+`,`+text+`]`))
		check(t, []byte(`{`+text+`:0}`))
	}
}

func TestEveryCutIsTold(t *testing.T) {
	text := []byte(`{"a":[1.5e3,true,null,"x\u00e9\n"],"b":{"ö":false}}`)
	for n := range text {
		if fault := whole(text[:n]); fault == None {
			t.Errorf("accepted when cut at %d", n)
		}
		if fault := stepped(text[:n]); fault == None {
			t.Errorf("accepted when cut at %d and stepped through", n)
		}
	}
	for _, n := range []int{1, 9, 13, 26, 30, 45} {
		if fault := whole(text[:n]); fault != FaultEnd && fault != FaultUTF8 {
			t.Errorf("cut at %d: fault %v, want an early end", n, fault)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Fault
		at         int
	}{
		{"no value", ``, FaultEnd, 0},
		{"stray character", `{"a":x}`, FaultSyntax, 5},
		{"zero byte", "{\"a\":\x00}", FaultSyntax, 5},
		{"control character in a string", "{\"a\":\"b\n\"}", FaultSyntax, 7},
		{"bad escape", `["\x"]`, FaultSyntax, 3},
		{"bad hex digit", `["\u00g0"]`, FaultSyntax, 6},
		{"too deep", strings.Repeat("[", 513), FaultDepth, 512},
		{"not UTF-8", "[\"\xff\"]", FaultUTF8, 2},
		{"something after it", `{} {}`, FaultSyntax, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Scanner
			s.Reset([]byte(c.text))
			s.Value()
			s.End()
			if fault, at := s.Fault(); fault != c.want || at != c.at {
				t.Errorf("fault %v at %d, want %v at %d", fault, at, c.want, c.at)
			}
		})
	}
}

func TestTextUnescapesLikeEncodingJSON(t *testing.T) {
	for _, text := range []string{`""`, `"plain"`, `"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9\u65e5"`, `"\ud83d\ude00!"`, `"a\u0000b"`, `"ö\u00f6"`} {
		var s Scanner
		s.Reset([]byte(text))
		span, ok := s.String()
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil || !ok {
			t.Fatalf("%s: %v, taken %v", text, err, ok)
		}
		if got := string(s.Text(span)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if !s.Is(span, want) || s.Is(span, want+"x") {
			t.Errorf("%s: Is disagrees with Text", text)
		}
	}
}

func TestLoneSurrogatesStayDistinct(t *testing.T) {
	var s Scanner
	s.Reset([]byte(`["\ud800","\ud801"]`))
	s.Open('[')
	s.Element()
	a, _ := s.String()
	s.Element()
	b, _ := s.String()
	if bytes.Equal(s.Text(a), s.Text(b)) {
		t.Error("two lone surrogates read as one name")
	}
}

func TestSkippingAllocatesNothing(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`words and \"more\" words\n`, 400) + `"}],"n":[1,2,{"x":-1.5e3}]}`)
	if n := testing.AllocsPerRun(20, func() { whole(body) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b) })
}
