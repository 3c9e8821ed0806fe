package credential

import (
	"regexp"
	"strings"
)

// maxReason bounds what is logged of an error, in bytes.
const maxReason = 400

// runs are words long enough to be a secret.
var runs = regexp.MustCompile(`[A-Za-z0-9+=_~.-]{20,}`)

// reason makes of an error's text what may be logged: one line, cut, without an
// endpoint's answer but for its code, and without anything that looks like a
// secret. Libraries put files, commands and answers into their errors, and this
// package cannot know all of them.
func reason(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if i := strings.IndexAny(text, "{<"); i >= 0 {
		text = text[:i] + codeIn(text[i:]) + "…"
	}
	text = runs.ReplaceAllStringFunc(text, func(word string) string {
		if secretLike(word) {
			return "…"
		}
		return word
	})
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// codes are the forms of the codes in a token endpoint's answer: `error` (RFC 6749,
// section 5.2), and Entra's own, which stands in a text.
var codes = [...]*regexp.Regexp{regexp.MustCompile(`"error" ?: ?"([A-Za-z_]{1,64})"`), regexp.MustCompile(`\b(AADSTS[0-9]{1,10})\b`)}

// codeIn are the codes in a token endpoint's answer, and nothing else of it.
func codeIn(answer string) string {
	var found []string
	for _, form := range codes {
		if m := form.FindStringSubmatch(answer); m != nil {
			found = append(found, m[1])
		}
	}
	return strings.Join(found, " ")
}

// secretLike tells keys and tokens from names, hosts, paths and UUIDs: capital
// letters, small ones and digits in one word, or a long row of letters and digits
// that no mark divides.
func secretLike(word string) bool {
	var lower, upper, digit bool
	row, longest := 0, 0
	for i := range len(word) {
		c := word[i]
		row++
		switch {
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= '0' && c <= '9':
			digit = true
		default:
			row = 0
		}
		longest = max(longest, row)
	}
	return digit && (lower && upper || longest >= 32)
}
