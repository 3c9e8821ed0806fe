package config

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// decode lays the YAML tree over the File types. What is wrong is reported and
// left at its default.
func (d *document) decode(body ast.Node) *File {
	file := &File{}
	v := reflect.ValueOf(file).Elem()
	setDefaults(v)
	d.keys[""] = positionOf(body)
	d.object(body, "", v)
	return file
}

// value decodes one node; m is the member whose tags apply.
func (d *document) value(n ast.Node, path string, v reflect.Value, m member) {
	d.values[path] = d.inside(positionOf(n))
	if v.Type() == reflect.TypeFor[Later]() {
		d.later(n, path, m)
		return
	}
	if _, ok := n.(*ast.NullNode); ok || n == nil {
		d.failKey(path, "has no value: write one, or leave the member out")
		return
	}
	switch {
	case keyed(v.Type()):
		d.mapping(n, path, v)
	case v.Kind() == reflect.Slice:
		d.list(n, path, v)
	case v.Kind() == reflect.Struct:
		d.object(n, path, v)
	default:
		d.scalar(n, path, v, m)
	}
}

// object decodes a struct: a mapping, or the plain value of its short form.
func (d *document) object(n ast.Node, path string, v reflect.Value) {
	s := shapeOf(v.Type())
	pairs, isMapping := pairsOf(n)
	if !isMapping {
		if s.short != nil && isScalar(n) {
			d.scalar(n, path, v.Field(s.short.field), *s.short)
			return
		}
		d.fail(path, "must be %s", s.describe())
		return
	}
	if len(s.members) == 0 {
		d.fail(path, "must be %s", s.describe())
		return
	}
	d.isMapping[path] = true
	var meant []string
	for _, p := range d.pairs(pairs, path) {
		m, known := s.member(p.name)
		if !known {
			d.unknown(p.path, p.name, s)
			meant = append(meant, nearest(p.name, s.names()))
			continue
		}
		d.value(p.value, p.path, v.Field(m.field), m)
	}
	// A member that was only misspelt is not missing as well.
	for _, name := range meant {
		if at := join(path, name); name != "" && !d.has(at) {
			d.bad[at] = true
		}
	}
	for _, m := range s.members {
		if at := join(path, m.name); m.required && d.ok(at) && d.keys[at] == (position{}) {
			d.missing(path, m.name, "every %s has one", s.what(v.Type()))
		}
	}
}

func (s shape) what(t reflect.Type) string {
	switch name := strings.ToLower(strings.TrimPrefix(t.Name(), "File")); name {
	case "":
		return "policy"
	case "entry":
		return "entry of a chain"
	default:
		return name
	}
}

func (s shape) describe() string {
	switch {
	case s.short == nil:
		return "a mapping with members such as " + s.members[0].name
	case len(s.members) == 0 || (len(s.members) == 1 && s.members[0].short):
		return describe(reflect.TypeFor[string](), *s.short)
	}
	return "a plain text, or a mapping with members such as " + s.members[0].name
}

// pair is one member of a mapping in the file.
type pair struct {
	name, path string
	value      ast.Node
}

// pairs notes where each member stands and leaves out duplicates.
func (d *document) pairs(nodes []*ast.MappingValueNode, path string) []pair {
	var list []pair
	seen := map[string]bool{}
	for _, n := range nodes {
		at := d.inside(positionOf(n.Key))
		key, ok := n.Key.(*ast.StringNode)
		if !ok {
			d.report(at, path, "a member's name must be a text: write it in quotes")
			continue
		}
		p := pair{name: key.Value, path: join(path, key.Value), value: n.Value}
		if seen[p.name] {
			d.report(at, p.path, "is there twice: first in line %d", d.keys[p.path].line)
			continue
		}
		seen[p.name] = true
		d.keys[p.path] = at
		list = append(list, p)
	}
	return list
}

func (d *document) unknown(path, name string, s shape) {
	d.values[path] = d.keys[path]
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)) {
	case "apikey", "key", "password", "secret", "token", "value", "credential", "credentials":
		d.failKey(path, "unknown member: a key or password is never in the policy; write keys: [{env: NAME}] or keys: [{file: PATH}]")
		return
	}
	if len(s.members) == 0 {
		d.failKey(path, "unknown member")
		return
	}
	hint := suggest(name, s.names())
	if hint == "" {
		hint = "; known are " + strings.Join(s.names(), ", ")
	}
	d.failKey(path, "unknown member%s", hint)
}

// mapping decodes a slice that is written as a mapping, in the file's order.
func (d *document) mapping(n ast.Node, path string, v reflect.Value) {
	nodes, ok := pairsOf(n)
	if !ok {
		d.fail(path, "must be a mapping of names to values")
		return
	}
	s := shapeOf(v.Type().Elem())
	for _, p := range d.pairs(nodes, path) {
		e := reflect.New(v.Type().Elem()).Elem()
		setDefaults(e)
		e.Field(s.key.field).SetString(p.name)
		d.value(p.value, p.path, e, member{})
		v.Set(reflect.Append(v, e))
	}
}

// list decodes a slice. Elements that are wrong stay in it, so that indices
// agree with the file.
func (d *document) list(n ast.Node, path string, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(path, "must be a list: [a, b], or one line with a dash for each")
		return
	}
	for i, item := range seq.Values {
		at := index(path, i)
		d.keys[at] = d.inside(positionOf(item))
		e := reflect.New(v.Type().Elem()).Elem()
		if e.Kind() == reflect.Struct {
			setDefaults(e)
		}
		d.value(item, at, e, member{})
		v.Set(reflect.Append(v, e))
	}
}

// later accepts the off values of a member that is not built.
func (d *document) later(n ast.Node, path string, m member) {
	if m.hasOff && isOff(n, m.off) {
		return
	}
	hint := ""
	if m.hasOff && m.off != "" {
		hint = "; only " + m.off + " is accepted"
	}
	d.failKey(path, "not supported yet%s", hint)
}

func isOff(n ast.Node, off string) bool {
	switch v := n.(type) {
	case *ast.MappingNode:
		return off == "{}" && len(v.Values) == 0
	case *ast.SequenceNode:
		return off == "[]" && len(v.Values) == 0
	}
	text, ok := textOf(n)
	return ok && text == off
}
