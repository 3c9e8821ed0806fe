package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

type object = map[string]any

func schemaOf(comments map[string]string) object {
	defs := object{}
	for _, t := range fileTypes()[1:] {
		defs[defName(t)] = structSchema(t, comments)
	}
	root := structSchema(reflect.TypeFor[File](), comments)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/crossdoor/crossdoor/policy/config/crossdoor.schema.json"
	root["title"] = "Crossdoor policy"
	root["$defs"] = defs
	return root
}

func defName(t reflect.Type) string { return strings.TrimPrefix(t.Name(), "File") }

func structSchema(t reflect.Type, comments map[string]string) object {
	s := shapeOf(t)
	long := object{"type": "object", "additionalProperties": false}
	properties, required := object{}, []string{}
	for _, m := range s.members {
		p := memberSchema(m)
		p["description"] = comments[t.Name()+"."+t.Field(m.field).Name]
		if m.typ == reflect.TypeFor[Later]() {
			p["description"] = p["description"].(string) + " Not supported yet."
		}
		properties[m.name] = p
		if m.required {
			required = append(required, m.name)
		}
	}
	long["properties"] = properties
	if len(required) > 0 {
		long["required"] = required
	}
	if s.short == nil {
		long["description"] = comments[t.Name()]
		return long
	}
	short := memberSchema(*s.short)
	if len(s.members) == 0 {
		short["description"] = comments[t.Name()]
		return short
	}
	return object{"description": comments[t.Name()], "anyOf": []object{short, long}}
}

func memberSchema(m member) object {
	p := typeSchema(m)
	if m.hasDef && m.typ.Kind() != reflect.Struct {
		p["default"] = defaultValue(m)
	}
	return p
}

func defaultValue(m member) any {
	switch m.typ.Kind() {
	case reflect.Bool:
		return m.def == "true"
	case reflect.Int:
		n, _ := strconv.Atoi(m.def)
		return n
	}
	return m.def
}

func typeSchema(m member) object {
	switch {
	case m.typ == reflect.TypeFor[Later]():
		return laterSchema(m)
	case m.typ == reflect.TypeFor[Duration]():
		return object{"type": "string", "pattern": durationPattern}
	case m.typ == reflect.TypeFor[AutoDuration]():
		return object{"anyOf": []object{{"const": "auto"}, {"type": "string", "pattern": durationPattern}}}
	case m.typ == reflect.TypeFor[Size]():
		return object{"anyOf": []object{{"type": "integer", "minimum": 0}, {"type": "string", "pattern": sizePattern}}}
	case keyed(m.typ):
		p := object{"type": "object", "additionalProperties": object{"$ref": "#/$defs/" + defName(m.typ.Elem())}}
		if m.typ.Elem() == reflect.TypeFor[FileTarget]() {
			p["propertyNames"] = object{"pattern": namePattern}
		}
		return p
	case m.typ.Kind() == reflect.Slice:
		return object{"type": "array", "items": typeSchema(member{typ: m.typ.Elem()})}
	case m.typ.Kind() == reflect.Struct:
		return object{"$ref": "#/$defs/" + defName(m.typ)}
	case m.typ.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case m.typ.Kind() == reflect.Int:
		return intSchema(m)
	case len(m.enum) > 0:
		return object{"enum": m.enum}
	}
	return object{"type": "string"}
}

func intSchema(m member) object {
	p := object{"type": "integer", "minimum": 0}
	if n, err := strconv.Atoi(m.min); err == nil {
		p["minimum"] = n
	}
	if n, err := strconv.Atoi(m.max); err == nil {
		p["maximum"] = n
	}
	return p
}

func laterSchema(m member) object {
	switch {
	case !m.hasOff:
		return object{"not": object{}}
	case m.off == "{}":
		return object{"type": "object", "maxProperties": 0}
	case m.off == "[]":
		return object{"type": "array", "maxItems": 0}
	case m.off == "false":
		return object{"const": false}
	case m.off == "0":
		return object{"const": 0}
	}
	return object{"const": m.off}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("crossdoor.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("crossdoor.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func toJSON(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaAccepts(t *testing.T) {
	s := compileSchema(t)
	for name, text := range map[string]string{"minimal": minimalPolicy, "contract": goodPolicy, "clouds": cloudPolicy} {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(toJSON(t, text)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSchemaRefuses: what the schema can know, it refuses as Load does.
func TestSchemaRefuses(t *testing.T) {
	s := compileSchema(t)
	data, err := os.ReadFile("testdata/bad.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"version is missing", "version 2", "unknown members with and without a suggestion",
		"a platform of a later issue", "auth that a platform does not have", "target members of a later issue",
		"route members of a later issue", "top members of a later issue", "keys in the policy",
		"durations", "sizes", "counts", "words", "wrong types", "wrong types inside",
		"words of the cloud platforms", "a token in the policy", "tokens of the wrong shape", "features of the wrong shape",
		"features without an ID", "portability and guard", "other_paths with another word",
	} {
		t.Run(name, func(t *testing.T) {
			_, rest, found := strings.Cut(string(data), "== "+name+"\n")
			policy, _, _ := strings.Cut(rest, "-- want\n")
			if !found || s.Validate(toJSON(t, policy)) == nil {
				t.Errorf("the schema takes it (found %v):\n%s", found, policy)
			}
		})
	}
}

func TestSchemaIsACopy(t *testing.T) {
	Schema()[0] = 'x'
	if !json.Valid(Schema()) {
		t.Error("a caller changed the schema")
	}
}
