package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

//go:generate go test . -run TestDocsGenerated -update

var update = flag.Bool("update", false, "write what is generated in docs/")

// generated are the parts of pages that are written from the code, by the name in
// their markers.
var generated = map[string]func(t *testing.T) string{
	"features":           featureMatrix,
	"betas":              betaMatrix,
	"models that differ": modelLimits,
	"model IDs":          modelIDs,
	"request":            exampleRequest,
	"explained":          exampleExplained,
	"sent":               exampleSent,
}

// part is a generated part: its name, and what stands between its markers.
var part = regexp.MustCompile(`(?s)(<!-- generated: ([^>]+) -->\n).*?(<!-- end -->)`)

// TestDocsGenerated compares the generated parts of docs/ with the code; -update
// writes them.
func TestDocsGenerated(t *testing.T) {
	for i, host := range rewrite.Hosts() {
		generated["features of "+host] = func(*testing.T) string { return featuresOf(i) }
	}
	used := map[string]bool{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := part.ReplaceAllFunc(text, func(found []byte) []byte {
			m := part.FindSubmatch(found)
			name := string(m[2])
			written := generated[name]
			if written == nil {
				t.Errorf("%s: nothing is called %q", page, name)
				return found
			}
			used[name] = true
			return slices.Concat(m[1], []byte(written(t)+"\n"), m[3])
		})
		if *update && !bytes.Equal(text, want) {
			if err := os.WriteFile(page, want, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if !bytes.Equal(text, want) {
			t.Errorf("%s is stale: run go generate ./cmd/crossdoor", page)
		}
	}
	for name := range generated {
		if !used[name] {
			t.Errorf("%q is in no page", name)
		}
	}
}

func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, glob := range []string{"../../docs/*.md", "../../docs/platforms/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", glob, found, err)
		}
		all = append(all, found...)
	}
	return all
}

func TestEveryPlatformHasAPage(t *testing.T) {
	for _, name := range platform.Names() {
		text, err := os.ReadFile("../../docs/platforms/" + name + ".md")
		if err != nil {
			t.Error(err)
		} else if !bytes.Contains(text, []byte("```yaml\nversion: 1\n")) {
			t.Errorf("the page of %s has no policy to copy", name)
		}
	}
}

// TestDocJSON: every JSON in a page can be read by what it is to be copied into.
func TestDocJSON(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```json\n(.*?)^```$")
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllSubmatch(text, -1) {
			if !json.Valid(m[1]) {
				t.Errorf("%s: no JSON: %s", page, m[1])
			}
		}
	}
}

// cell is an action in the matrix; a page's legend says what the words mean.
func cell(a rewrite.Action) string {
	return map[rewrite.Action]string{rewrite.Keep: "yes", rewrite.Strip: "**strip**", rewrite.StripLossless: "strip", rewrite.Refuse: "no"}[a]
}

func featureMatrix(*testing.T) string {
	rows := [][]string{append(append([]string{"feature"}, rewrite.Hosts()...), "note")}
	for _, r := range rewrite.Rows() {
		row := []string{"`" + r.Feature + "`"}
		for _, a := range r.Hosts {
			row = append(row, cell(a))
		}
		rows = append(rows, append(row, r.Note))
	}
	return markdown(rows)
}

func betaMatrix(*testing.T) string {
	hosts := rewrite.Hosts()
	columns := []int{slices.Index(hosts, "mantle"), slices.Index(hosts, "bedrock"), slices.Index(hosts, "vertex"), slices.Index(hosts, "foundry")}
	head := []string{"token"}
	for _, c := range columns {
		head = append(head, hosts[c])
	}
	rows := [][]string{append(head, "where it may not go")}
	for _, b := range rewrite.Betas() {
		row := []string{"`" + b.Token + "`"}
		for _, c := range columns {
			row = append(row, map[string]string{b.Token: "yes", "": "no"}[b.Hosts[c]])
			if other := b.Hosts[c]; other != "" && other != b.Token {
				row[len(row)-1] = "as `" + other + "`"
			}
		}
		loss := "the client is told"
		switch {
		case !slices.Contains(b.Hosts, ""):
			loss = "-"
		case len(b.Opens) > 0:
			loss = "goes with " + codes(b.Opens)
		case b.NoOp:
			loss = "nothing is lost"
		}
		rows = append(rows, append(row, loss))
	}
	return markdown(rows)
}

// featuresOf is what is not simply taken at a column of the matrix.
func featuresOf(column int) string {
	by := map[rewrite.Action][]string{}
	for _, r := range rewrite.Rows() {
		by[r.Hosts[column]] = append(by[r.Hosts[column]], r.Feature)
	}
	var sent, dropped, renamed []string
	for _, b := range rewrite.Betas() {
		switch b.Hosts[column] {
		case b.Token:
			sent = append(sent, b.Token)
		case "":
			dropped = append(dropped, b.Token)
		default:
			renamed = append(renamed, b.Token)
		}
	}
	lines := []struct {
		what  string
		names []string
	}{
		{"left out", by[rewrite.Refuse]},
		{"stripped, the client is told", by[rewrite.Strip]},
		{"stripped, nothing is lost", by[rewrite.StripLossless]},
		{"beta sent, and no other", sent},
		{"beta sent by another name", renamed},
	}
	if !slices.Contains([]string{"bedrock", "mantle", "vertex"}, rewrite.Hosts()[column]) { // those have an allow-list
		lines[3].what, lines[3].names = "beta not sent", dropped
	}
	rows := [][]string{{"what happens", "to requests with"}}
	for _, line := range lines {
		if len(line.names) > 0 {
			rows = append(rows, []string{line.what, codes(line.names)})
		}
	}
	if len(rows) == 1 {
		return "Everything is sent as it is."
	}
	return markdown(rows)
}

// modelLimits is what models do not take, by model: looked at where an entry names
// another model than the client's.
func modelLimits(*testing.T) string {
	rows := [][]string{{"model", "left out", "stripped, the client is told"}}
	for _, model := range platform.Models() {
		facts := rewrite.Facts{Uses: ^rewrite.FeatureSet(0)}
		fit := facts.Fit(&rewrite.Host{Platform: "anthropic", Model: model, Crossing: true}, nil)
		rows = append(rows, []string{"`" + model + "`", codes(fit.Refused.Names()), codes(fit.Stripped.Names())})
	}
	return markdown(rows)
}

// modelIDs is the built-in table, as far as targets have IDs without a `models` of
// their own.
func modelIDs(*testing.T) string {
	profiles := []platform.Site{
		{Profile: platform.ProfileGlobal}, {Region: "us-east-1"}, {Region: "eu-central-1"}, {Region: "ap-northeast-1"}, {Region: "ap-southeast-2"},
		{Region: "ap-south-1"}, {Region: "us-gov-west-1"},
	}
	rows := [][]string{{"model", "bedrock", "with profile", "mantle", "vertex", "foundry", "foundry, `hosting: azure`"}}
	for _, model := range platform.Models() {
		id := func(name string, at platform.Site) string {
			got, ok := platform.ModelID(name, at, model)
			if !ok {
				return ""
			}
			return got
		}
		base := id("bedrock", platform.Site{Profile: platform.ProfileNone})
		var prefixes []string
		for _, at := range profiles {
			if prefix := strings.TrimSuffix(id("bedrock", at), "."+base); prefix != "" && !slices.Contains(prefixes, prefix) {
				prefixes = append(prefixes, prefix)
			}
		}
		azure := "no"
		if id("foundry", platform.Site{Hosting: platform.HostingAzure}) != "" {
			azure = "yes"
		}
		rows = append(rows, []string{
			"`" + model + "`", code(base), codes(prefixes), code(id("mantle", platform.Site{})), code(id("vertex", platform.Site{})),
			code(id("foundry", platform.Site{})), azure,
		})
	}
	return markdown(rows)
}

func code(text string) string {
	if text == "" {
		return "-"
	}
	return "`" + text + "`"
}

func codes(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

// markdown is a table; the first row is its head.
func markdown(rows [][]string) string {
	var lines []string
	for i, row := range rows {
		lines = append(lines, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			lines = append(lines, strings.Repeat("| --- ", len(row))+"|")
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "|  |", "| |")
}

// The worked example of docs/rewriting.md: a request of examples/every-platform,
// as it goes to its target bedrock-eu.
const (
	exampleDir    = "../../examples/every-platform/"
	exampleTarget = "bedrock-eu"
	exampleBetas  = "anthropic-beta: context-management-2025-06-27, claude-code-20250219, interleaved-thinking-2025-05-14"
)

func exampleRequest(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(exampleDir + "request.json")
	if err != nil {
		t.Fatal(err)
	}
	return "```json\n" + strings.TrimSpace(string(text)) + "\n```"
}

func explainExample(t *testing.T, format string) string {
	t.Helper()
	c := explainCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{"--policy", exampleDir + "crossdoor.yaml", "--request", exampleDir + "request.json", "--header", exampleBetas, "--format", format})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// exampleExplained is what explain says of the one target.
func exampleExplained(t *testing.T) string {
	t.Helper()
	for section := range strings.SplitSeq(explainExample(t, "text"), "\n\n") {
		if strings.Contains(section, ". "+exampleTarget+" (") {
			return "```\n" + strings.TrimSpace(section) + "\n```"
		}
	}
	t.Fatalf("explain does not name %s", exampleTarget)
	return ""
}

// exampleSent is the body that goes there.
func exampleSent(t *testing.T) string {
	t.Helper()
	var out struct {
		Plan []struct{ Target, Body string }
	}
	if err := json.Unmarshal([]byte(explainExample(t, "json")), &out); err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Plan {
		if p.Target == exampleTarget {
			return fmt.Sprintf("```json\n%s\n```", strings.TrimSpace(p.Body))
		}
	}
	t.Fatalf("explain does not name %s", exampleTarget)
	return ""
}
