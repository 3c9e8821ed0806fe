package config

import (
	"reflect"
	"strings"
)

// member is one field of a File type with what its tags say.
type member struct {
	name     string // "" when it has none: the key, or a short form alone
	field    int
	typ      reflect.Type
	key      bool
	short    bool
	required bool
	def      string
	hasDef   bool
	enum     []string
	later    []string
	off      string
	hasOff   bool
	min, max string
}

// shape is a struct type of the file.
type shape struct {
	members []member // those with a name, in the file's order
	key     *member
	short   *member
}

func shapeOf(t reflect.Type) shape {
	var s shape
	for i := range t.NumField() {
		m := memberOf(t.Field(i), i)
		if m.key {
			s.key = &m
			continue
		}
		if m.short {
			s.short = &m
		}
		if m.name != "" {
			s.members = append(s.members, m)
		}
	}
	return s
}

func memberOf(f reflect.StructField, i int) member {
	name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	m := member{
		name: name, field: i, typ: f.Type,
		key: option == "key", short: option == "short",
		required: f.Tag.Get("required") == "true",
		enum:     strings.Fields(f.Tag.Get("enum")),
		later:    strings.Fields(f.Tag.Get("later")),
		min:      f.Tag.Get("min"), max: f.Tag.Get("max"),
	}
	m.def, m.hasDef = f.Tag.Lookup("default")
	m.off, m.hasOff = f.Tag.Lookup("off")
	return m
}

func (s shape) names() []string {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.name
	}
	return names
}

func (s shape) member(name string) (member, bool) {
	for _, m := range s.members {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// keyed reports whether a slice type is written as a mapping, in the file's
// order, rather than as a list.
func keyed(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && shapeOf(t.Elem()).key != nil
}

// setDefaults gives every absent member its default, also in structs that are
// absent as a whole.
func setDefaults(v reflect.Value) {
	s := shapeOf(v.Type())
	members := s.members
	if s.short != nil && s.short.name == "" {
		members = append(members, *s.short)
	}
	for _, m := range members {
		f := v.Field(m.field)
		if f.Kind() == reflect.Struct {
			setDefaults(f)
		} else if m.hasDef {
			// A default that does not parse would be a slip in file.go: the
			// test of the defaults sees it as a zero value.
			_ = setScalar(f, m.def)
		}
	}
}
