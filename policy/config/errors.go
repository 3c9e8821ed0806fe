package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is one thing that is wrong with a policy file. Line and Col count from
// 1; Col is in characters. Path names the member, as in `routes[0].chain[1]`; it
// is "yaml" for a text that is no YAML and "policy" for the file as a whole.
type Error struct {
	File      string
	Line, Col int
	Path      string
	Message   string
}

// Error is `FILE:LINE:COL: PATH: message`.
func (e Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.File, e.Line, e.Col, e.Path, e.Message)
}

// Errors is everything that is wrong with a policy file, in the file's order.
// Load returns it as *Errors; List has at least one element.
type Errors struct{ List []Error } //nolint:errname // a list of Error

// Error is one line for each.
func (e *Errors) Error() string {
	lines := make([]string, len(e.List))
	for i, one := range e.List {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

func sorted(list []Error) *Errors {
	slices.SortFunc(list, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return &Errors{List: slices.Compact(list)}
}

// position is a place in the file, both from 1.
type position struct{ line, col int }

// document is what is known about a file besides its values: where each member
// stands and what is wrong. Paths are its keys, so that the compiler can talk
// about a member that it has only as a Go value.
type document struct {
	file      string
	values    map[string]position // of a member's value
	keys      map[string]position // of a member's name; of the value for a list's element
	bad       map[string]bool
	isMapping map[string]bool // written as a mapping rather than a plain value
	lines     []int           // characters of each line
	errs      []Error
}

func newDocument(file string) *document {
	return &document{
		file:      file,
		values:    map[string]position{},
		keys:      map[string]position{"": {1, 1}},
		bad:       map[string]bool{},
		isMapping: map[string]bool{},
	}
}

func (d *document) report(at position, path, format string, args ...any) {
	d.bad[path] = true
	if path == "" {
		path = "policy"
	}
	d.errs = append(d.errs, Error{File: d.file, Line: max(at.line, 1), Col: max(at.col, 1), Path: path, Message: fmt.Sprintf(format, args...)})
}

// fail reports a member at its value.
func (d *document) fail(path, format string, args ...any) {
	at, ok := d.values[path]
	if !ok {
		at = d.keys[path]
	}
	d.report(at, path, format, args...)
}

// failKey reports a member at its name.
func (d *document) failKey(path, format string, args ...any) {
	d.report(d.keys[path], path, format, args...)
}

// missing reports a member that is not there, at its parent's name.
func (d *document) missing(parent, member, format string, args ...any) {
	d.report(d.keys[parent], parent, "%q is missing: %s", member, fmt.Sprintf(format, args...))
	// The parent is there and may be looked at; the member may not.
	delete(d.bad, parent)
	d.bad[join(parent, member)] = true
}

// has reports whether the file writes the member.
func (d *document) has(path string) bool {
	_, ok := d.values[path]
	return ok
}

// ok reports whether nothing was found wrong with any of the members so far.
func (d *document) ok(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool { return d.bad[p] })
}

// clean reports whether nothing was found wrong with a member or inside it.
func (d *document) clean(path string) bool {
	for bad := range d.bad {
		if rest, inside := strings.CutPrefix(bad, path); inside && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return false
		}
	}
	return true
}

// join is the path of a member. A name that is not a plain word is quoted.
func join(parent, name string) string {
	if looksSecret(name) {
		return parent + "[…]"
	}
	if !isWord(name) {
		return parent + "[" + strconv.Quote(cut(name)) + "]"
	}
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func index(parent string, i int) string { return parent + "[" + strconv.Itoa(i) + "]" }

func isWord(s string) bool {
	for _, r := range s {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func cut(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

// show is a name as an error repeats it: quoted, short, and never a key.
func show(s string) string {
	if looksSecret(s) {
		return `"…"`
	}
	return strconv.Quote(cut(s))
}

// looksSecret reports whether s has the form of an API key that someone put
// where a name belongs. It is a net below the rule that only names are shown.
func looksSecret(s string) bool {
	return strings.Contains(s, "sk-ant-") ||
		slices.ContainsFunc(secretPrefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// What keys of Anthropic, AWS, Bedrock and Google and their tokens begin with.
var secretPrefixes = []string{"sk-", "AKIA", "ABSK", "AIza", "ya29.", "Bearer "}

// suggest is ` (did you mean "x"?)`, or "" when nothing is near.
func suggest(word string, known []string) string {
	best := nearest(word, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// nearest is the known word that a slip may have meant, or "".
func nearest(word string, known []string) string {
	best, distance := "", min(max(len(word)/3, 1), 4)+1
	for _, k := range known {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance counts inserted, removed, replaced and swapped bytes. Long words
// are no slips of a known one: they are as far away as they are long.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev2, prev, row := rows[(i+1)%3], rows[(i-1)%3], rows[i%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
