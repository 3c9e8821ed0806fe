package messages

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxMessage is how many characters of a platform's message are kept (policy
// reference, "Trail record").
const MaxMessage = 300

const (
	gap      = "…"
	redacted = "[redacted]"
	// scanned bounds the work on a message that is as long as an error body; a
	// quoted run that this cuts open counts as quoted to its end.
	scanned = 8 << 10
)

// secrets are forms of credentials, wherever they stand.
var secrets = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\bsk-[a-z0-9_-]{3,}`,
	`\b(?:AKIA|ASIA|ABSK)[a-z0-9+/=]{8,}`,
	`\b(?:bearer|basic)\s+[^\s,;]+`,
	`\b(?:api|access|secret|session|security|subscription)[-_ ]?(?:key|token|secret)(?:[-_ ]?id)?\s*[:=]\s*[^\s,;]+`,
	`\b(?:authorization|password|x-amz-security-token)\s*[:=]\s*(?:(?:bearer|basic)\s+)?[^\s,;]+`,
	// Of a member's path, "messages.1.content.0.thinking.signature: Field required",
	// no value follows.
	`\b(?:credential|signature)\s*[:=]\s*[^\s,;]{12,}`,
	`\beyJ[a-z0-9_-]+(?:\.[a-z0-9_-]+)*`,
	`\bya29\.[a-z0-9_.-]+`,
}, "|"))

// runs are stretches that may be keys; opaque tells those that are.
var runs = regexp.MustCompile(`[A-Za-z0-9+/=_-]{20,}`)

// Redact makes a platform's message fit for logs and the trail: one line, at
// most MaxMessage characters, credentials and long hexadecimal or base64 runs
// replaced by [redacted], quoted runs by …, since what is quoted may be the
// client's. A quote that does not close is taken to run to the end.
func Redact(message string) string {
	if len(message) > scanned {
		message = message[:scanned]
	}
	message = strings.ToValidUTF8(message, "")
	message = unquote(message)
	message = secrets.ReplaceAllString(message, redacted)
	message = runs.ReplaceAllStringFunc(message, func(run string) string {
		if opaque(run) {
			return redacted
		}
		return run
	})
	return cut(strings.Join(strings.FieldsFunc(message, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " "))
}

// opaque tells keys from words: models, betas and quota names are lower case and
// words; keys mix cases and digits, or are long and hexadecimal.
func opaque(run string) bool {
	var upper, lower, digit, hex int
	for _, c := range []byte(run) {
		switch {
		case c >= '0' && c <= '9':
			digit++
			hex++
		case c >= 'a' && c <= 'z':
			lower++
			if c <= 'f' {
				hex++
			}
		case c >= 'A' && c <= 'Z':
			upper++
			if c <= 'F' {
				hex++
			}
		case c == '-':
			hex++
		}
	}
	mixed := upper > 0 && lower > 0 && digit > 0
	hexadecimal := hex == len(run) && digit > 0
	unbroken := len(run) >= 40 && digit > 0 && !strings.ContainsAny(run, "-_/")
	return mixed || hexadecimal || unbroken
}

func cut(message string) string {
	n := 0
	for i := range message {
		if n == MaxMessage {
			return message[:i]
		}
		n++
	}
	return message
}

// closing has the quotes that open a run and what closes it.
var closing = map[rune]rune{'"': '"', '`': '`', '\'': '\'', '“': '”', '‘': '’', '«': '»'}

// unquote replaces quoted runs.
func unquote(message string) string {
	var out strings.Builder
	before := ' '
	for i := 0; i < len(message); {
		r, n := utf8.DecodeRuneInString(message[i:])
		end, quote := closing[r]
		// An apostrophe inside a word (don't) opens nothing.
		if !quote || (r == '\'' && word(before)) {
			out.WriteString(message[i : i+n])
			before = r
			i += n
			continue
		}
		out.WriteString(gap)
		i += n + runLength(message[i+n:], end)
		before = end
	}
	return out.String()
}

// runLength is the length of a quoted run after its opening quote, the closing
// one included.
func runLength(text string, end rune) int {
	escaped := false
	for i, r := range text {
		n := i + utf8.RuneLen(r)
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == end:
			next, _ := utf8.DecodeRuneInString(text[n:])
			// 'it isn't so' goes on after its inner apostrophe.
			if end != '\'' || !word(next) {
				return n
			}
		}
	}
	return len(text)
}

func word(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// path begins with a member of the schema: what else stands before a colon may be
// the request's own words.
var path = regexp.MustCompile(`^(?:model|messages|system|tools|tool_choice|max_tokens|metadata|stop_sequences|stream|temperature|top_[pk]|` +
	`thinking|output_config|output_format|context_management|container|mcp_servers|service_tier|speed|inference_geo|cache_control|betas)` +
	`(?:\.[a-z_0-9]+|\[[0-9]+\])*(?::|$)`)

// Path is the JSON path with which the platform's message begins, as
// "messages.3.content.0.source" in "messages.3.content.0.source: Field
// required"; "" when it begins otherwise. Names in it are the schema's, but an
// unknown member that a client invented may be among them: it is cut at 100
// bytes.
func Path(message string) string {
	found := strings.TrimSuffix(path.FindString(message), ":")
	if len(found) > 100 {
		return found[:100]
	}
	return found
}
