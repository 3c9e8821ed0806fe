package fakeplatform

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is the deepest nesting that a platform reads.
const maxDepth = 512

// value is one JSON value with its bytes as they came: raw aliases the body.
type value struct {
	kind  byte // '{' '[' '"' '0' (a number), 't', 'f', 'n'
	raw   []byte
	names []string // of an object, one for each kid
	kids  []value
}

// get is a member of an object; nil when it has none of the name.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	if i := slices.Index(v.names, name); i >= 0 {
		return &v.kids[i]
	}
	return nil
}

// text is the decoded string, "" of anything else.
func (v *value) text() string {
	if v == nil || v.kind != '"' {
		return ""
	}
	return unquote(v.raw)
}

func (v *value) isTrue() bool { return v != nil && v.kind == 't' }

func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil { // the parser has seen that it is a string
		return ""
	}
	return s
}

// document is a parsed body.
type document struct {
	root value
	lone string // what is wrong with the first surrogate without its other half; "" is none
}

// parse reads one JSON object by RFC 8259: UTF-8, nothing after it, no member
// twice. Below `input` and `input_schema` names may repeat: what is in there is
// the client's own data.
func parse(body []byte) (*document, error) {
	p := &parser{b: body}
	root, err := p.value(0, '{')
	if err == nil {
		if p.space(); p.i != len(body) {
			err = p.fail(p.i, "trailing characters")
		}
	}
	if err != nil {
		return nil, err
	}
	return &document{root: root, lone: p.lone}, nil
}

type parser struct {
	b    []byte
	i    int
	free int // depth of objects whose names may repeat
	lone string
}

// fail names the place by line and column, from 1.
func (p *parser) fail(at int, what string) error {
	at = min(at, len(p.b))
	line := 1 + bytes.Count(p.b[:at], []byte("\n"))
	column := at - bytes.LastIndexByte(p.b[:at], '\n')
	return fmt.Errorf("%s: line %d column %d", what, line, column)
}

func (p *parser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\n' || p.b[p.i] == '\t' || p.b[p.i] == '\r') {
		p.i++
	}
}

// peek is the next byte that is no blank; 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.i == len(p.b) {
		return 0
	}
	return p.b[p.i]
}

// value reads one value; want 0 takes every kind.
func (p *parser) value(depth int, want byte) (value, error) {
	c := p.peek()
	start := p.i
	v := value{kind: c}
	var err error
	switch {
	case want != 0 && c != want:
		return v, p.fail(p.i, "not an object")
	case depth == maxDepth:
		return v, p.fail(p.i, "nested too deeply")
	case c == '{':
		err = p.object(&v, depth)
	case c == '[':
		err = p.array(&v, depth)
	case c == '"':
		err = p.str()
	case c == 't':
		err = p.word("true")
	case c == 'f':
		err = p.word("false")
	case c == 'n':
		err = p.word("null")
	default:
		v.kind = '0'
		err = p.number()
	}
	v.raw = p.b[start:p.i]
	return v, err
}

func (p *parser) object(v *value, depth int) error {
	p.i++
	if p.peek() == '}' {
		p.i++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.fail(p.i, "a member's name is missing")
		}
		at := p.i
		if err := p.str(); err != nil {
			return err
		}
		name := unquote(p.b[at:p.i])
		if p.free == 0 && slices.Contains(v.names, name) {
			return p.fail(at, "duplicate member "+strconv.Quote(name))
		}
		if p.peek() != ':' {
			return p.fail(p.i, "a colon is missing")
		}
		p.i++
		free := name == "input" || name == "input_schema"
		if free {
			p.free++
		}
		kid, err := p.value(depth+1, 0)
		if free {
			p.free--
		}
		if err != nil {
			return err
		}
		v.names, v.kids = append(v.names, name), append(v.kids, kid)
		if done, err := p.next('}'); done || err != nil {
			return err
		}
	}
}

func (p *parser) array(v *value, depth int) error {
	p.i++
	if p.peek() == ']' {
		p.i++
		return nil
	}
	for {
		kid, err := p.value(depth+1, 0)
		if err != nil {
			return err
		}
		v.kids = append(v.kids, kid)
		if done, err := p.next(']'); done || err != nil {
			return err
		}
	}
}

// next reads the comma before another kid, or the end.
func (p *parser) next(end byte) (bool, error) {
	switch p.peek() {
	case ',':
		p.i++
		return false, nil
	case end:
		p.i++
		return true, nil
	}
	return false, p.fail(p.i, "a comma or the end is missing")
}

func (p *parser) word(w string) error {
	if !bytes.HasPrefix(p.b[p.i:], []byte(w)) {
		return p.fail(p.i, "not a value")
	}
	p.i += len(w)
	return nil
}

func (p *parser) number() error {
	start := p.i
	digits := func() int {
		n := p.i
		for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
			p.i++
		}
		return p.i - n
	}
	at := func(chars string) bool { return p.i < len(p.b) && strings.IndexByte(chars, p.b[p.i]) >= 0 }
	if at("-") {
		p.i++
	}
	first := p.i
	if n := digits(); n == 0 || n > 1 && p.b[first] == '0' {
		return p.fail(start, "not a value")
	}
	if at(".") {
		p.i++
		if digits() == 0 {
			return p.fail(start, "not a number")
		}
	}
	if at("eE") {
		p.i++
		if at("+-") {
			p.i++
		}
		if digits() == 0 {
			return p.fail(start, "not a number")
		}
	}
	return nil
}

// str leaps over a string: it is long in a large body.
func (p *parser) str() error {
	start := p.i + 1
	i, quote := start, -1
	for {
		if quote < i {
			k := bytes.IndexByte(p.b[i:], '"')
			if k < 0 {
				return p.fail(len(p.b), "a string does not end")
			}
			quote = i + k
		}
		k := bytes.IndexByte(p.b[i:quote], '\\')
		if k < 0 {
			break
		}
		n, err := p.escape(i + k)
		if err != nil {
			return err
		}
		i += k + n
	}
	content := p.b[start:quote]
	if hasControl(content) {
		return p.fail(start, "a control character in a string")
	}
	if !utf8.Valid(content) {
		return p.fail(start, "not UTF-8")
	}
	p.i = quote + 1
	return nil
}

// escape is the length of the escape at i: both halves of a surrogate pair are
// one.
func (p *parser) escape(i int) (int, error) {
	if i+1 >= len(p.b) || strings.IndexByte(`"\/bfnrtu`, p.b[i+1]) < 0 {
		return 0, p.fail(i, "not an escape")
	}
	if p.b[i+1] != 'u' {
		return 2, nil
	}
	u, ok := p.hex(i)
	if !ok {
		return 0, p.fail(i, "not an escape")
	}
	if u>>11 != 0xd800>>11 {
		return 6, nil
	}
	if low, ok := p.hex(i + 6); u < 0xdc00 && ok && low>>10 == 0xdc00>>10 {
		return 12, nil
	}
	if p.lone == "" {
		p.lone = p.fail(i+6, "no low surrogate in string").Error()
	}
	return 6, nil
}

// hex is the code of the \u escape at i.
func (p *parser) hex(i int) (uint64, bool) {
	if i+6 > len(p.b) || p.b[i] != '\\' || p.b[i+1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(p.b[i+2:i+6]), 16, 16)
	return u, err == nil
}

// hasControl looks at eight bytes at a time for one below 0x20.
func hasControl(b []byte) bool {
	const low, high = 0x2020202020202020, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		if (x-low)&^x&high != 0 {
			return true
		}
	}
	return slices.ContainsFunc(b, func(c byte) bool { return c < 0x20 })
}
