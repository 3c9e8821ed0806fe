package trail

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errNoRecord = errors.New("no trail record: no id or no time")

// maxClient is the contract's limit, in characters.
const maxClient = 128

// CutClient is the client header's value as a record may hold it: 128
// characters, without control characters.
func CutClient(value string) string { return cut(printable(value), maxClient) }

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

// cut keeps the first limit characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n == limit {
			return s[:i]
		}
		n++
	}
	return s
}
