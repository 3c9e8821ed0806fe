package config

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestGenerated compares crossdoor.schema.json and docs/policy.md with what the
// types of file.go give; -update writes them.
func TestGenerated(t *testing.T) {
	comments := readComments(t)
	schema, err := json.MarshalIndent(schemaOf(comments), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]byte{
		"crossdoor.schema.json": append(schema, '\n'),
		"../../docs/policy.md":  referenceOf(comments),
	} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./policy/config", file, err)
		}
	}
}

// fileTypes are the struct types of the file, in the order of first use.
func fileTypes() []reflect.Type {
	var list []reflect.Type
	var visit func(reflect.Type)
	visit = func(t reflect.Type) {
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[Later]() || slices.Contains(list, t) {
			return
		}
		list = append(list, t)
		for field := range t.Fields() {
			visit(field.Type)
		}
	}
	visit(reflect.TypeFor[File]())
	return list
}

// readComments gives the comments of file.go: "Type" and "Type.Field".
func readComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "file.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		spec := gen.Specs[0].(*ast.TypeSpec)
		comments[spec.Name.Name] = oneLine(gen.Doc)
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				comments[spec.Name.Name+"."+f.Names[0].Name] = oneLine(f.Doc)
			}
		}
	}
	for _, typ := range fileTypes() {
		for field := range typ.Fields() {
			if name := typ.Name() + "." + field.Name; comments[name] == "" {
				t.Errorf("%s has no comment", name)
			}
		}
	}
	return comments
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
