package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

const referenceHead = `# Policy reference

<!-- Generated from policy/config/file.go by ` + "`go generate ./policy/config`" + `: edit the comments there. -->

One YAML file, usually ` + "`crossdoor.yaml`" + `, says everything: limits, targets, routes, health. It is strict. A member that
nobody knows, a wrong type, a reference to nothing, a rule between two members that does not hold: each is an error with
its place, all of them at once, exit code 2, and a running service keeps the policy that it has.

` + "```" + `
crossdoor.yaml:14:9: routes[0].chain[1]: unknown target "bedrok" (did you mean "bedrock"?)
` + "```" + `

The smallest policy:

` + "```yaml" + `
version: 1
targets:
  anthropic: {platform: anthropic, keys: [{env: ANTHROPIC_API_KEY}]}
routes:
  - name: all
    models: ["*"]
    chain: [anthropic]
` + "```" + `

Notation: durations are ` + "`500ms`, `5s`, `2m`, `9m30s`" + ` (1ms to 24h where nothing else is said); sizes are ` + "`512KiB`, `32MiB`, `1GiB`" + ` or
a plain number of bytes; globs match the whole of a model's name, ` + "`*`" + ` any run of characters, ` + "`?`" + ` one. Anchors, aliases and
tags are not part of a policy, and neither are keys: those come from ` + "`env` or `file`" + `.

Members marked *later* are not supported yet. Written with the value shown they are accepted, with any other refused.
Editors can use the JSON Schema in ` + "`policy/config/crossdoor.schema.json`" + `.

## Failure kinds

What an attempt came to, and what follows it before the commit unless the route's ` + "`actions`" + ` say otherwise. With a passthrough
key, the kinds that the client's own credential may have caused stop.

| kind | action | with passthrough |
| --- | --- | --- |
`

// kindOrder is the contract's order of the kinds.
var kindOrder = []Kind{
	KindConnection, KindTimeout, KindOverloaded, KindServerError, KindRateLimit, KindBillingQuota, KindCredential,
	KindPermission, KindModelUnavailable, KindEntitlement, KindUnsupportedFeature, KindTooLarge, KindInvalidRequest,
	KindModeration, KindInvalidOutput,
}

func referenceOf(comments map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString(referenceHead)
	for _, k := range kindOrder {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k, DefaultAction(k, false), DefaultAction(k, true))
	}
	for _, place := range places(reflect.TypeFor[File](), "") {
		writeSection(&b, place, comments)
	}
	return b.Bytes()
}

// place is a struct type and where it stands, as in `routes[].chain[]`.
type place struct {
	typ  reflect.Type
	path string
}

func places(t reflect.Type, path string) []place {
	list := []place{{t, path}}
	for _, m := range shapeOf(t).members {
		at, typ := strings.TrimPrefix(path+"."+m.name, "."), m.typ
		switch {
		case keyed(typ):
			at, typ = at+".NAME", typ.Elem()
		case typ.Kind() == reflect.Slice:
			at, typ = at+"[]", typ.Elem()
		}
		if typ.Kind() == reflect.Struct && typ != reflect.TypeFor[Later]() {
			list = append(list, places(typ, at)...)
		}
	}
	return list
}

func writeSection(b *bytes.Buffer, p place, comments map[string]string) {
	title := "The file"
	if p.path != "" {
		title = "`" + p.path + "`"
	}
	about := comments[p.typ.Name()]
	if _, rest, ok := strings.Cut(about, " "); ok {
		about = strings.TrimPrefix(rest, "is ")
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| member | value | default | |\n| --- | --- | --- | --- |\n", title, strings.ToUpper(about[:1])+about[1:])
	s := shapeOf(p.typ)
	if s.key != nil {
		fmt.Fprintf(b, "| *NAME* | text | | %s |\n", comments[p.typ.Name()+"."+p.typ.Field(s.key.field).Name])
	}
	if s.short != nil && s.short.name == "" {
		fmt.Fprintf(b, "| *plain value* | %s | | %s |\n", valueOf(*s.short), comments[p.typ.Name()+"."+p.typ.Field(s.short.field).Name])
	}
	for _, m := range s.members {
		name := "`" + m.name + "`"
		if m.short {
			name += " or a plain value"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, valueOf(m), defaultOf(m), comments[p.typ.Name()+"."+p.typ.Field(m.field).Name])
	}
}

func valueOf(m member) string {
	var s string
	switch {
	case m.typ == reflect.TypeFor[Later]():
		if m.off == "" {
			return "*later*"
		}
		return "*later*; `" + m.off + "`"
	case len(m.enum) > 0:
		s = "`" + strings.Join(m.enum, "`, `") + "`"
		if len(m.later) > 0 {
			s += "; *later*: " + strings.Join(m.later, ", ")
		}
		return s
	case m.typ == reflect.TypeFor[Duration]():
		s = "duration"
	case m.typ == reflect.TypeFor[AutoDuration]():
		s = "`auto` or duration"
	case m.typ == reflect.TypeFor[Size]():
		s = "size"
	case keyed(m.typ), m.typ.Kind() == reflect.Struct:
		s = "mapping"
	case m.typ.Kind() == reflect.Slice:
		s = "list"
	case m.typ.Kind() == reflect.Int:
		s = "number"
	case m.typ.Kind() == reflect.Bool:
		s = "`true`, `false`"
	default:
		s = "text"
	}
	switch {
	case m.min != "" && m.max == m.min:
		s = "`" + m.min + "`"
	case m.min != "" && m.max != "":
		s += ", " + m.min + " to " + m.max
	case m.max != "":
		s += ", at most " + m.max
	case m.min != "":
		s += ", at least " + m.min
	}
	return s
}

func defaultOf(m member) string {
	switch {
	case m.required:
		return "*required*"
	case m.hasDef:
		return "`" + m.def + "`"
	}
	return ""
}
