package messages

import (
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	long := strings.Repeat("ab ", 200)
	for _, c := range []struct{ name, message, want string }{
		{"plain", "Overloaded", "Overloaded"},
		{"nothing", "", ""},
		{"first-party key", "invalid x-api-key sk-ant-api03-AbC_d-1 given", "invalid x-api-key [redacted] given"},
		{"AWS key", "The key AKIAIOSFODNN7EXAMPLE is unknown", "The key [redacted] is unknown"},
		{"bearer", "bad header Authorization: Bearer abc.def, sorry", "bad header [redacted], sorry"},
		{"token by name", "api_key=hunter2 is wrong", "[redacted] is wrong"},
		{"JWT", "token eyJhbGciOi.eyJzdWIi.c2ln expired", "token [redacted] expired"},
		{"hexadecimal", "key 0123456789abcdef0123456789abcdef not found", "key [redacted] not found"},
		{"base64", "secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY no", "secret [redacted] no"},
		{"models and betas stay", "claude-opus-4-5-20251101 and fine-grained-tool-streaming-2025-05-14", "claude-opus-4-5-20251101 and fine-grained-tool-streaming-2025-05-14"},
		{"quota names stay", "Quota exceeded for online_prediction_input_tokens_per_minute_per_base_model", "Quota exceeded for online_prediction_input_tokens_per_minute_per_base_model"},
		{"quoted runs", "Unexpected value(s) `x` for the `anthropic-beta` header", "Unexpected value(s) … for the … header"},
		{"double quotes", `tool "get_salary" is not "ok"`, "tool … is not …"},
		{"escaped quotes inside", `tool "a \" b" is bad`, "tool … is bad"},
		{"single quotes", "unknown field 'secret plan' here", "unknown field … here"},
		{"an apostrophe is none", "You don't have access; it isn't on", "You don't have access; it isn't on"},
		{"an apostrophe inside quotes", "said 'it isn't so' twice", "said … twice"},
		{"curly quotes", "model “my own” and ‘more’ and «plus»", "model … and … and …"},
		{"a quote that stays open", `input was "and then the prompt went on`, "input was …"},
		{"a key in quotes", `key "sk-ant-api03-x" bad`, "key … bad"},
		{"lines", "one\r\n two\tthree\x00", "one two three"},
		{"not UTF-8", "a\xffb", "ab"},
		{"long", long, strings.TrimSpace(long[:300])},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.TrimSpace(Redact(c.message)); got != c.want {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

func TestRedactCutsAfterQuotesAreGone(t *testing.T) {
	secret := strings.Repeat("the prompt ", 2000)
	if got := Redact("bad input: '" + secret + "' at 5"); strings.Contains(got, "prompt") {
		t.Errorf("part of a long quoted run is left: %q", got)
	}
	if got := Redact(strings.Repeat("é", 500)); len([]rune(got)) != MaxMessage {
		t.Errorf("%d characters, want %d", len([]rune(got)), MaxMessage)
	}
}

func TestPath(t *testing.T) {
	for message, want := range map[string]string{
		"messages.3.content.0.source: Field required": "messages.3.content.0.source",
		"messages[2].content: too long":               "messages[2].content",
		"max_tokens: must be positive":                "max_tokens",
		"model: claude-x":                             "model",
		"Your credit balance is too low":              "",
		"the prompt was: hello":                       "",
		"":                                            "",
	} {
		if got := Path(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
