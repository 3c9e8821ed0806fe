package test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/crossdoor/crossdoor/"

// arrows says which packages of ours a package may import: the first rule whose
// folder is the package's, or one above it. "x" is that package, "x/..." it and
// all below. Tests may import more, so only other files count.
var arrows = []struct {
	folder  string
	imports []string
}{
	{"cmd", []string{"extproc", "envoy", "envoy/...", "policy", "policy/config", "rewrite/...", "internal/..."}},
	{"policy/config", nil},
	{"policy", []string{"policy/config"}},
	{"rewrite", []string{"rewrite/..."}},
	{"extproc/wire", []string{"envoy/names"}},
	{"extproc", []string{"extproc/wire", "policy", "policy/config", "rewrite/...", "internal/trail", "envoy/names"}},
	{"envoy/names", nil},
	{"envoy", []string{"envoy", "envoy/names", "policy/config", "rewrite/platform"}},
	{"internal/trail", nil},
	{"internal/fakeplatform", nil},
	{"internal", []string{"internal/...", "extproc", "envoy", "envoy/names", "policy", "policy/config", "rewrite/..."}},
}

// keptOut says where packages of others stay.
var keptOut = []struct {
	prefix  string
	folders []string // that may import it
	why     string
}{
	{"google.golang.org/protobuf/", []string{"extproc", "envoy"}, "protobuf stays at the edge to Envoy"},
	{"github.com/envoyproxy/go-control-plane/", []string{"extproc", "envoy"}, "protobuf stays at the edge to Envoy"},
	{"github.com/prometheus/", []string{"extproc", "internal/operate", "cmd"}, "others return values or take a small recorder interface"},
	{module + "internal/fakeplatform", []string{"internal/demo", "cmd"}, "imitations are for the demo and for tests"},
	{"testing", []string{"internal/fakeplatform"}, "tests only"},
}

// below reports whether pkg is the folder or below it.
func below(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// wrongArrow says what is wrong with pkg importing path; "" is nothing. pkg is
// relative to the module's root.
func wrongArrow(pkg, path string) string {
	for _, k := range keptOut {
		in := func(f string) bool { return below(pkg, f) }
		if (path == k.prefix || strings.HasSuffix(k.prefix, "/") && strings.HasPrefix(path, k.prefix)) && !slices.ContainsFunc(k.folders, in) {
			return k.why
		}
	}
	ours, ok := strings.CutPrefix(path, module)
	if !ok {
		return ""
	}
	for _, rule := range arrows {
		if !below(pkg, rule.folder) {
			continue
		}
		for _, may := range rule.imports {
			if folder, all := strings.CutSuffix(may, "/..."); ours == may || all && below(ours, folder) {
				return ""
			}
		}
		return "no arrow leads there (test/imports_test.go has the list)"
	}
	return "the package is in no room of the list (test/imports_test.go)"
}

// TestImports walks the tree: who imports what is the architecture.
func TestImports(t *testing.T) {
	packages := map[string]bool{}
	for _, file := range sources(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || below(file, "test") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		packages[pkg] = true
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			} else if why := wrongArrow(pkg, path); why != "" {
				t.Errorf("%s imports %s: %s", file, strings.TrimPrefix(path, module), why)
			}
		}
	}
	for _, rule := range arrows {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), func(p string) bool { return below(p, rule.folder) }) {
			t.Errorf("the list has %q, the tree has not", rule.folder)
		}
	}
}

// sources are the project's files with one of the endings, relative to its root
// and with slashes.
func sources(t *testing.T, endings ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != ".." && (strings.HasPrefix(name, ".") || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) }) {
			rel, err := filepath.Rel("..", path)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestWrongArrows: the list catches what it is for.
func TestWrongArrows(t *testing.T) {
	for _, c := range []struct {
		pkg, path string
		wrong     bool
	}{
		{"policy", module + "policy/config", false},
		{"policy", module + "extproc", true},
		{"policy", "google.golang.org/protobuf/proto", true},
		{"policy/config", module + "policy", true},
		{"policy/config", module + "rewrite/platform", true},
		{"rewrite", module + "rewrite/scan", false},
		{"rewrite/sse", module + "policy/config", true},
		{"extproc", module + "rewrite/sse", false},
		{"extproc", module + "envoy/names", false},
		{"extproc", module + "envoy", true},
		{"extproc", module + "internal/operate", true},
		{"extproc/wire", module + "extproc", true},
		{"envoy", module + "rewrite/platform", false},
		{"envoy", module + "rewrite", true},
		{"envoy", module + "extproc", true},
		{"envoy", "google.golang.org/protobuf/proto", false},
		{"internal/trail", module + "policy/config", true},
		{"internal/trail", "github.com/prometheus/client_golang/prometheus", true},
		{"internal/operate", "github.com/prometheus/client_golang/prometheus", false},
		{"internal/operate", module + "internal/fakeplatform", true},
		{"internal/demo", module + "internal/fakeplatform", false},
		{"cmd/crossdoor", module + "extproc", false},
		{"cmd/crossdoor", module + "extproc/wire", true},
		{"cmd/crossdoor", "github.com/envoyproxy/go-control-plane/envoy/config/core/v3", true},
		{"helpers", module + "policy", true},
		{"policy", "testing", true},
		{"policy", "time", false},
	} {
		if got := wrongArrow(c.pkg, c.path); (got != "") != c.wrong {
			t.Errorf("%s -> %s: %q, want wrong: %v", c.pkg, c.path, got, c.wrong)
		}
	}
}
