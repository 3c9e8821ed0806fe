package config

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// pairsOf is the members of a mapping node.
func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch v := n.(type) {
	case *ast.MappingNode:
		return v.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, true
	}
	return nil, false
}

func isScalar(n ast.Node) bool {
	_, ok := textOf(n)
	return ok
}

// textOf is a plain value as it is written.
func textOf(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// positionOf is where a node begins. The parser's token of a block mapping is
// its first colon, hence the first name.
func positionOf(n ast.Node) position {
	for {
		var first ast.Node
		switch v := n.(type) {
		case *ast.MappingNode:
			if !v.IsFlowStyle && len(v.Values) > 0 {
				first = v.Values[0].Key
			}
		case *ast.MappingValueNode:
			first = v.Key
		}
		if first == nil {
			break
		}
		n = first
	}
	if n == nil {
		return position{1, 1}
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// quoted reports whether a text is written in quotes: then it is no number.
func quoted(n ast.Node) bool {
	t := n.GetToken()
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// scalar decodes a plain value and checks its words and bounds.
func (d *document) scalar(n ast.Node, path string, v reflect.Value, m member) {
	text, ok := textOf(n)
	if !ok {
		d.fail(path, "must be %s", describe(v.Type(), m))
		return
	}
	_, isText := n.(*ast.StringNode)
	_, isBlock := n.(*ast.LiteralNode)
	_, isBool := n.(*ast.BoolNode)
	switch v.Kind() {
	case reflect.String:
		if !isText && !isBlock {
			d.fail(path, "must be a text: write it in quotes")
			return
		}
		d.text(path, text, m)
	case reflect.Bool:
		if !isBool {
			d.fail(path, "must be true or false")
			return
		}
	default:
		if isBool || isBlock || (quoted(n) && v.Kind() == reflect.Int) {
			d.fail(path, "must be %s", describe(v.Type(), m))
			return
		}
	}
	if problem := setScalar(v, text); problem != "" {
		d.fail(path, "%s", problem)
		return
	}
	if problem := bounds(v, m); problem != "" {
		d.fail(path, "%s", problem)
	}
}

func describe(t reflect.Type, m member) string {
	switch {
	case len(m.enum) > 0:
		return strings.Join(m.enum, " or ")
	case t == reflect.TypeFor[Size]():
		return "a size such as 512KiB, 32MiB or 1GiB"
	case t == reflect.TypeFor[Duration]():
		return "a duration such as 500ms, 5s, 2m or 9m30s"
	case t == reflect.TypeFor[AutoDuration]():
		return "auto, or a duration such as 500ms, 5s, 2m or 9m30s"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	}
	return "a text"
}

// text checks what any text must be, and the words of an enumeration.
func (d *document) text(path, text string, m member) {
	passthrough := len(m.enum) == 1 && m.enum[0] == "passthrough"
	switch {
	case passthrough && text != "passthrough":
		// Whatever stands here may be the key itself: it is never shown.
		d.fail(path, "a key is never in the policy itself: write {env: NAME}, {file: PATH} or passthrough")
	case looksSecret(text):
		d.fail(path, "looks like a key: a key is never in the policy itself; write keys: [{env: NAME}] or keys: [{file: PATH}]")
	case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		d.fail(path, "has a line break or a control character in it")
	case slices.Contains(m.later, text):
		d.fail(path, "%q is not supported yet; supported: %s", text, strings.Join(m.enum, ", "))
	case len(m.enum) > 0 && !slices.Contains(m.enum, text):
		hint := suggest(text, slices.Concat(m.enum, m.later))
		if hint == "" {
			hint = ": must be " + strings.Join(m.enum, " or ")
		}
		d.fail(path, "unknown %s %s%s", cmp.Or(m.name, "word"), show(text), hint)
	}
}

// setScalar parses text into v. The problem is "" when it could.
func setScalar(v reflect.Value, text string) (problem string) {
	var err error
	var n int64
	switch v.Interface().(type) {
	case Size:
		n, err = parseSize(text)
	case AutoDuration:
		if text == "auto" {
			break
		}
		var t time.Duration
		if t, err = parseDuration(text); err == nil && t == 0 {
			return "must be at least 1ms, or auto"
		}
		n = int64(t)
	case Duration:
		var t time.Duration
		t, err = parseDuration(text)
		n = int64(t)
	default:
		return setPlain(v, text)
	}
	switch {
	case errors.Is(err, errForm):
		return "must be " + describe(v.Type(), member{})
	case err != nil:
		return err.Error()
	}
	v.SetInt(n)
	return ""
}

func setPlain(v reflect.Value, text string) (problem string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		// YAML 1.2 knows True and TRUE as well.
		v.SetBool(strings.EqualFold(text, "true"))
	default:
		// Base 10 alone: 010 is a trap and 0x10 is nobody's number of retries.
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || (len(text) > 1 && text[0] == '0') {
			return "must be a whole number"
		}
		v.SetInt(n)
	}
	return ""
}

// bounds checks min and max; a duration without bounds of its own is 1ms to 24h.
func bounds(v reflect.Value, m member) (problem string) {
	lo, hi := m.min, m.max
	var value int64
	var number func(string) int64
	switch t := v.Interface().(type) {
	case Duration, AutoDuration:
		if value = v.Int(); value == 0 && v.Type() == reflect.TypeFor[AutoDuration]() {
			return ""
		}
		number = func(s string) int64 { d, _ := parseDuration(s); return int64(d) }
		if lo == "" {
			lo = "1ms"
		}
		if hi == "" {
			hi = "24h"
		}
	case Size:
		value, number = int64(t), func(s string) int64 { n, _ := parseSize(s); return n }
	case int:
		value, number = int64(t), func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
		if lo == "" {
			lo = "0"
		}
	default:
		return ""
	}
	if lo != "" && value < number(lo) {
		return "must be at least " + lo
	}
	if hi != "" && value > number(hi) {
		return "must be at most " + hi
	}
	return ""
}
