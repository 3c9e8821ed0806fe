package config

import (
	"errors"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite generated files and expectations")

// testCatalog has two models and three features. foundry knows one of the
// models, and has the other where it hosts itself; bedrock has a profile of one
// only worldwide; mantle has nothing.
func testCatalog() Catalog {
	const opus, sonnet = "claude-opus-5-5", "claude-sonnet-5-5"
	features := map[string]bool{"cache_control.ttl": true, "output_config.effort": true, "mcp_servers": false}
	return Catalog{
		ModelID: func(platform string, at ModelPlace, model string) (string, bool) {
			id, ok := model, model == opus || model == sonnet
			switch platform {
			case PlatformFoundry:
				ok = ok && (model == opus || at.Hosting == HostingAzure)
			case PlatformBedrock:
				id = string(at.Profile) + ".anthropic." + model
				ok = ok && (model == opus || at.Profile == ProfileGlobal)
			case PlatformMantle:
				ok = false
			}
			return id, ok
		},
		Models: func() []string { return []string{opus, sonnet} },
		Feature: func(name string) (known, strippable bool) {
			strippable, known = features[name]
			return known, strippable
		},
		Features: func() []string { return slices.Sorted(maps.Keys(features)) },
	}
}

func loadErrors(t *testing.T, data string) string {
	t.Helper()
	p, err := Load("crossdoor.yaml", []byte(data), testCatalog())
	if err == nil {
		return ""
	}
	var list *Errors
	if p != nil || !errors.As(err, &list) || len(list.List) == 0 {
		t.Fatalf("Load gave %v and %T", p, err)
	}
	return err.Error() + "\n"
}

// TestBad runs testdata/bad.txt: sections of a name, a policy, and the whole
// text of its error. -update rewrites the errors, to be read in review.
func TestBad(t *testing.T) {
	const file = "testdata/bad.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	sections := strings.Split(string(data), "== ")[1:]
	if len(sections) < 90 {
		t.Fatalf("%d bad policies", len(sections))
	}
	for _, section := range sections {
		name, rest, _ := strings.Cut(section, "\n")
		policy, want, found := strings.Cut(rest, "-- want\n")
		t.Run(name, func(t *testing.T) {
			got := loadErrors(t, policy)
			switch {
			case !found || got == "":
				t.Fatal("no error, or no `-- want` line")
			case !*update && got != want:
				t.Errorf("policy:\n%s\ngot:\n%s\nwant:\n%s", policy, got, want)
			case strings.Contains(got, "hunter2"), strings.Contains(got, "very-secret"):
				t.Errorf("a key is in the error:\n%s", got)
			}
			out.WriteString("== " + name + "\n" + policy + "-- want\n" + got)
		})
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadText has what a text file with comments cannot hold.
func TestBadText(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"empty", "", "f:1:1: policy: the file is empty; it begins with `version: 1`"},
		{"comments only", "# a\n# b\n", "f:1:1: policy: the file is empty; it begins with `version: 1`"},
		{"only null", "~", "f:1:1: policy: must be a mapping with members such as version"},
		{"not UTF-8", "version: 1\n# \xff\n", "f:2:3: yaml: not UTF-8"},
		{"NUL", "version: 1\x00\n", "f:1:11: yaml: control character U+0000"},
		{"a lone carriage return", "version: 1\r", "f:1:11: yaml: control character U+000D"},
		{"open list", "version: 1\na: [1, 2\n", "f:2:4: yaml: sequence end token ']' not found"},
		{"open mapping", "version: 1\na: {b: 1\n", "f:2:4: yaml: could not find flow mapping end token '}'"},
		{"tab", "version: 1\nlimits:\n\tbody: 1\n", "f:3:1: yaml: found character '\t' that cannot start any token"},
		{"open quote", "version: 1\na: \"b\n", "f:2:4: yaml: could not find end character of double-quoted text"},
		{"a text with a star", "version: 1\nroutes: [{models: [*x]}]\n", "f:2:20: yaml: anchors and aliases (& * <<) are not part of a policy: write the value out, or quote a text that begins with * or &"},
		{"deep lists", strings.Repeat("[", 20_000), "f:1:33: yaml: nested too deeply"},
		{"deep dashes", strings.Repeat("- ", 10_000), "f:1:65: yaml: nested too deeply"},
		{"large", strings.Repeat("#", MaxFileBytes+1), "f:1:1: yaml: the file has 262145 bytes; a policy has at most 256KiB"},
		{"many members", strings.Repeat("a:\n", 20_000), "f:1:1: yaml: the file is too large: more than 30000 words and signs"},
		{"windows line ends", "version: 1\r\ntargets: {}\r\nroutes: [x]\r\n", "f:2:10: targets: is empty: a policy has at least one target\nf:3:10: routes[0]: must be a mapping with members such as name"},
		{"byte order mark", "\ufeffversion: 2\ntargets: {}\n", "f:1:1: policy: \"routes\" is missing: every policy has one\nf:1:10: version: must be at most 1\nf:2:10: targets: is empty: a policy has at least one target"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load("f", []byte(tt.data), Catalog{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tt.want)
			}
		})
	}
}

// TestContract loads the contract's whole block. What this build lacks is said
// to be not supported yet, and nothing in it is unknown or wrong.
func TestContract(t *testing.T) {
	data, err := os.ReadFile("testdata/contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var other []string
	lines := strings.Split(strings.TrimSpace(loadErrors(t, string(data))), "\n")
	for _, line := range lines {
		if !strings.Contains(line, "not supported yet") {
			other = append(other, line)
		}
	}
	// The block leaves the key of its foundry target out.
	if len(other) != 1 || !strings.Contains(other[0], `targets.foundry: "keys" is missing`) {
		t.Errorf("wrong:\n%s", strings.Join(other, "\n"))
	}
	for _, want := range []string{
		"targets.anthropic.keys[1].standby", "targets.local.platform", "targets.local.context",
		"targets.local.when", "targets.local.not_for", "routes[0].require", "routes[0].single_target", "routes[0].settle",
		"routes[0].output", "budget", "ramp", "state",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, ": "+want+": ") }) {
			t.Errorf("nothing about %s", want)
		}
	}
}

// FuzzLoad: whatever the text, there is a policy or a list of errors whose
// positions are in the file.
func FuzzLoad(f *testing.F) {
	data, err := os.ReadFile("testdata/bad.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, section := range strings.Split(string(data), "== ")[1:] {
		_, rest, _ := strings.Cut(section, "\n")
		policy, _, _ := strings.Cut(rest, "-- want\n")
		f.Add(policy)
	}
	f.Add(goodPolicy)
	f.Add(cloudPolicy)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Load("f", []byte(text), testCatalog())
		if (p == nil) == (err == nil) {
			t.Fatalf("policy %v, error %v", p, err)
		}
		if err == nil {
			return
		}
		var list *Errors
		if !errors.As(err, &list) {
			t.Fatalf("%T", err)
		}
		lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n")
		for _, e := range list.List {
			if e.Line < 1 || e.Line > len(lines) || e.Col < 1 || e.Col > utf8.RuneCountInString(lines[e.Line-1])+1 {
				t.Errorf("%v: outside of the file", e)
			}
			if e.Path == "" || e.Message == "" || strings.Contains(e.Message, "\n") {
				t.Errorf("%q", e.Error())
			}
		}
	})
}
