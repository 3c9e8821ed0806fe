package trail

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errNoRecord = errors.New("no trail record: no id or no time")

// The contract's limits, in characters.
const (
	maxError  = 300
	maxClient = 128
)

// ellipsis stands for what was taken out.
const ellipsis = "…"

// CutClient is the client header's value as a record may hold it: 128
// characters, without control characters.
func CutClient(value string) string { return cut(printable(value), maxClient) }

// CleanError is a platform's own error message as a record may hold it:
// credentials redacted, quoted runs (they may repeat the request's content)
// replaced by an ellipsis, one line, at most 300 characters. It is meant for the
// kinds whose message may be kept; for 400, 404, 409, 413 and 422 the contract
// allows only error.type and the JSON path, which is the caller's to see to.
func CleanError(message string) string {
	// Bounded before anything looks at it: a message may be 64 KiB long. Twice
	// the limit would be too little when a long quoted run comes first.
	message = cut(message, 8*maxError)
	message = redact(printable(message))
	return cut(unquote(message), maxError)
}

// credentials are what a message may repeat of a request's headers, or of a key.
// Rather too much is redacted than too little.
var credentials = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\bauthorization\s*[:=]\s*(?:[a-z]+\s+)?[^\s,;]+`),
	regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(?i)\b(?:api[-_ ]?key|secret|password|token|provided)["']?\s*[:=]\s*["']?[^\s"',;]{4,}`),
	regexp.MustCompile(`\bsk-[A-Za-z0-9_*.…-]{4,}`),
	regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{12,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*`),
	// Keys without a known shape: long and unbroken. Request IDs (req_…) are
	// shorter, model IDs have dashes.
	regexp.MustCompile(`[A-Za-z0-9+/]{32,}={0,2}`),
}

func redact(s string) string {
	for _, c := range credentials {
		s = c.ReplaceAllString(s, "[redacted]")
	}
	return s
}

// quotes maps an opening quote to its closing one.
var quotes = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '«': '»'}

// unquote replaces what stands between quotes. A quote that never closes takes
// the rest with it: the end may have been cut off. An apostrophe inside a word
// is no quote.
func unquote(s string) string {
	var b strings.Builder
	var closing, before rune
	for _, c := range s {
		switch {
		case closing != 0:
			if c == closing {
				b.WriteRune(c)
				closing = 0
			}
		case quotes[c] != 0 && (c != '\'' || !wordRune(before)):
			b.WriteRune(c)
			b.WriteString(ellipsis)
			closing = quotes[c]
		default:
			b.WriteRune(c)
		}
		before = c
	}
	return b.String()
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// printable makes one line of s that a terminal shows as it is: control
// characters and broken UTF-8 become blanks.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if !shown(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		if shown(r) {
			return r
		}
		return ' '
	}, s)
}

func shown(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

// cut keeps the first max characters.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	n := 0
	for i := range s {
		if n == max {
			return s[:i]
		}
		n++
	}
	return s
}
