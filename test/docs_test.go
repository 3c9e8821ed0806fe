package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the pages for people, relative to the project's root.
func documents(t *testing.T) []string {
	t.Helper()
	docs := sources(t, ".md")
	if !slices.Contains(docs, "README.md") || !slices.Contains(docs, "docs/troubleshooting.md") {
		t.Fatalf("README.md or docs/ is not among %v", docs)
	}
	return docs
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineAny    = regexp.MustCompile("`[^`\n]*`")
	heading      = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notInAnchor  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the fragments of a page's headings, as GitHub makes them.
func anchors(text string) []string {
	found := heading.FindAllStringSubmatch(text, -1)
	out := make([]string, 0, len(found))
	for _, m := range found {
		out = append(out, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

// TestDocLinks: every link to a file of the project leads to one, every
// fragment to a heading.
func TestDocLinks(t *testing.T) {
	for _, doc := range documents(t) {
		for _, m := range markdownLink.FindAllStringSubmatch(inlineAny.ReplaceAllString(read(t, doc), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			target := doc
			if file != "" {
				target = filepath.Join(filepath.Dir(doc), file)
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[1], err)
			} else if fragment != "" && !slices.Contains(anchors(read(t, target)), fragment) {
				t.Errorf("%s links to %s: no such heading", doc, m[1])
			}
		}
	}
}

// fence is one fenced block of a page.
type fence struct{ kind, text string }

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func fences(text string) []fence {
	found := fenced.FindAllStringSubmatch(text, -1)
	out := make([]fence, 0, len(found))
	for _, m := range found {
		out = append(out, fence{kind: m[1], text: m[2]})
	}
	return out
}

var (
	inlineCode  = regexp.MustCompile("`((?:bin/)?crossdoor [a-z][^`]*)`")
	crossdoorIn = regexp.MustCompile(`(?:^|[|;&(]\s*|\s)(?:\./|bin/)*crossdoor ([a-z].*)$`)
	pastCommand = regexp.MustCompile(`\s(?:[|;&>#]|2>).*$`)
)

// commandLines are the arguments of every `crossdoor …` in a page's shell blocks
// and inline code.
func commandLines(text string) []string {
	var out []string
	for _, f := range fences(text) {
		if f.kind != "sh" {
			continue
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(f.text, "\\\n", " "), "\n") {
			line, _, _ = strings.Cut(line, " # ")
			if m := crossdoorIn.FindStringSubmatch(line); m != nil {
				out = append(out, pastCommand.ReplaceAllString(m[1], ""))
			}
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(text, -1) {
		_, args, _ := strings.Cut(m[1], "crossdoor ")
		out = append(out, args)
	}
	return out
}

// flagIn is a flag's line in the help: its name, and what its value is called.
var flagIn = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z-]+)(?: (\S+(?: \S+)*))?\s{2,}`)

// word is one of a command line: plain, or in quotes.
var word = regexp.MustCompile(`(?:[^\s']|'[^']*')+`)

// commands remembers the flags of each command: name to whether it takes a value.
type commands map[string]map[string]bool

func (c commands) flags(name string) (map[string]bool, error) {
	if f, ok := c[name]; ok {
		return f, nil
	}
	help, err := exec.Command(crossdoorBin, append(strings.Fields(name), "--help")...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("crossdoor %s --help: %w: %s", name, err, help)
	}
	c[name] = map[string]bool{}
	for _, m := range flagIn.FindAllStringSubmatch(string(help), -1) {
		c[name][m[1]] = m[2] != ""
	}
	return c[name], nil
}

// parse says what is wrong with a command line.
func (c commands) parse(args string) error {
	words := word.FindAllString(args, -1)
	flags, err := c.flags(words[0])
	if err != nil {
		return err
	}
	for i := 1; i < len(words); i++ {
		flag, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			return fmt.Errorf("%q is no flag, and there is no command that takes anything else", words[i])
		}
		flag, _, written := strings.Cut(flag, "=")
		value, known := flags[flag]
		switch {
		case !known:
			return fmt.Errorf("crossdoor %s has no --%s", words[0], flag)
		case value && !written:
			if i++; i == len(words) || strings.HasPrefix(words[i], "--") {
				return fmt.Errorf("--%s stands without its value", flag)
			}
		}
	}
	return nil
}

// TestDocCommands: every `crossdoor …` of a page is one that the binary takes.
func TestDocCommands(t *testing.T) {
	c, seen := commands{}, 0
	for _, doc := range documents(t) {
		for _, line := range commandLines(read(t, doc)) {
			seen++
			if len(strings.Fields(line)) == 1 || strings.HasPrefix(line, "demo") {
				if _, err := c.flags(strings.Fields(line)[0]); err != nil {
					t.Errorf("%s: %v", doc, err)
				}
				continue
			}
			if err := c.parse(line); err != nil {
				t.Errorf("%s: crossdoor %s: %v", doc, line, err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d commands found, which cannot be all", seen)
	}
	for _, bad := range []string{"serve --polcy x", "serve --policy", "render --policy --out d", "check crossdoor.yaml", "destroy --all", "explain --header a: b"} {
		if c.parse(bad) == nil {
			t.Errorf("crossdoor %s: no error", bad)
		}
	}
}

// TestDocPolicies: every whole policy in a page passes `crossdoor check`.
func TestDocPolicies(t *testing.T) {
	seen := 0
	for _, doc := range documents(t) {
		for i, f := range fences(read(t, doc)) {
			if f.kind != "yaml" || !strings.HasPrefix(f.text, "version: 1") {
				continue
			}
			seen++
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i))
			if err := os.WriteFile(path, []byte(f.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(crossdoorBin, "check", "--policy", path).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s%s", doc, err, f.text, out)
			}
		}
	}
	if seen == 0 {
		t.Error("no policy found")
	}
}

var (
	metricInDoc  = regexp.MustCompile(`\bcrossdoor_([a-z_]+[a-z])\b`)
	metricInCode = regexp.MustCompile(`"crossdoor_([a-z_]+)"|(?:counter|histogram)\("([a-z_]+)"|gauge\(r, "([a-z_]+)"`)
	metricSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestDocMetrics: every metric that a page names exists, and the page on running
// names every metric that exists.
func TestDocMetrics(t *testing.T) {
	exist := map[string]bool{}
	for _, file := range sources(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || !below(file, "extproc") && !below(file, "cmd") && !below(file, "internal/operate") {
			continue
		}
		for _, m := range metricInCode.FindAllStringSubmatch(read(t, file), -1) {
			if name := m[1] + m[2] + m[3]; name != "" {
				exist[name] = true
			}
		}
	}
	for _, doc := range documents(t) {
		for _, m := range metricInDoc.FindAllStringSubmatch(read(t, doc), -1) {
			if !exist[m[1]] && !exist[metricSuffix.ReplaceAllString(m[1], "")] {
				t.Errorf("%s: there is no metric crossdoor_%s", doc, m[1])
			}
		}
	}
	running := read(t, "docs/running.md")
	for name := range exist {
		if !strings.Contains(running, "crossdoor_"+name) {
			t.Errorf("docs/running.md does not name crossdoor_%s", name)
		}
	}
}

// TestFileSizes: what people read stays short. Rendered config and test data
// are not for reading from end to end.
func TestFileSizes(t *testing.T) {
	for _, file := range sources(t, ".go", ".md", ".py", ".tmpl", "Makefile") {
		if lines := strings.Count(read(t, file), "\n"); lines > 500 {
			t.Errorf("%s has %d lines: more than 500", file, lines)
		}
	}
}

// makeTarget finds the targets that pages tell to make.
var (
	makeTarget = regexp.MustCompile("(?m)(?:`|^|[ (])make ([a-z][a-z-]*[a-z])\\b")
	inlineMake = regexp.MustCompile("`make [^`]*`")
)

// TestDocMakeTargets: every `make …` of a shell block or of inline code exists.
func TestDocMakeTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, doc := range documents(t) {
		text := read(t, doc)
		var places []string
		for _, f := range fences(text) {
			if f.kind == "sh" {
				places = append(places, f.text)
			}
		}
		places = append(places, inlineMake.FindAllString(text, -1)...)
		for _, m := range makeTarget.FindAllStringSubmatch(strings.Join(places, "\n"), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") && m[1] != "example" {
				t.Errorf("%s: no make target %q", doc, m[1])
			}
		}
	}
}
