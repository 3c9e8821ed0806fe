package platform

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestModelID(t *testing.T) {
	for _, c := range []struct {
		platform, model, id string
		ok                  bool
	}{
		{"anthropic", "claude-opus-5-5", "claude-opus-5-5", true},
		{"anthropic", "claude-haiku-4-5", "claude-haiku-4-5", true},
		{"anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001", true},
		{"anthropic", "claude-not-yet-6", "claude-not-yet-6", true},
		{"anthropic", "", "", false},
		{"claude-on-aws", "claude-sonnet-5-5", "claude-sonnet-5-5", true},
		{"claude-on-aws", "claude-not-yet-6", "claude-not-yet-6", true},
		{"foundry", "claude-opus-5-5", "claude-opus-5-5", true},
		{"foundry", "claude-haiku-4-5", "claude-haiku-4-5", true},
		{"foundry", "claude-haiku-4-5-20251001", "claude-haiku-4-5", true},
		{"foundry", "claude-opus-4-5-20251101", "claude-opus-4-5", true},
		{"foundry", "claude-opus-4-1-20250805", "", false},
		{"foundry", "claude-mythos-5", "", false},
		{"foundry", "claude-mythos-preview", "", false},
		{"foundry", "claude-not-yet-6", "", false},
		{"foundry", "Claude-Opus-5-5", "", false},
		{"vertex", "claude-opus-5-5", "", false},
	} {
		if id, ok := ModelID(c.platform, c.model); id != c.id || ok != c.ok {
			t.Errorf("%s %q: %q, %v; want %q, %v", c.platform, c.model, id, ok, c.id, c.ok)
		}
	}
}

func TestModels(t *testing.T) {
	got := Models()
	for model, want := range map[string]bool{
		"claude-fable-5-2": true, "claude-opus-5-5": true, "claude-haiku-4-5-20251001": true, "claude-sonnet-4-5-20250929": true,
		"claude-haiku-4-5": false, "claude-opus-4-1-20250805": false, "claude-3-opus-20240229": false,
	} {
		if slices.Contains(got, model) != want {
			t.Errorf("%s: listed %v, want %v", model, !want, want)
		}
		if !Known(model) {
			t.Errorf("%s is not known", model)
		}
	}
	if Known("claude-not-yet-6") || Known("") {
		t.Error("an invented model is known")
	}
}

// The table is typed by hand: each row has all cells, each name one row.
func TestTable(t *testing.T) {
	forms := map[string]*regexp.Regexp{
		"id":               regexp.MustCompile(`^claude-[a-z0-9-]+$`),
		"alias":            regexp.MustCompile(`^(-|claude-[a-z0-9-]+)$`),
		"state":            regexp.MustCompile(`^(active|limited|legacy|deprecated|retired)$`),
		"bedrock_id":       regexp.MustCompile(`^(-|anthropic\.claude-[a-z0-9-]+(-v1(:0)?)?)$`),
		"bedrock_profiles": regexp.MustCompile(`^(-|(global|us|eu|jp|au|apac|us-gov)(,(us|eu|jp|au|apac|us-gov))*)$`),
		"mantle_id":        regexp.MustCompile(`^(-|anthropic\.claude-[a-z0-9-]+)$`),
		"vertex_id":        regexp.MustCompile(`^(-|claude-[a-z0-9-]+(@[0-9]{8})?)$`),
		"foundry_name":     regexp.MustCompile(`^(-|claude-[a-z0-9-]+)$`),
		"foundry_hosting":  regexp.MustCompile(`^(-|anthropic|both)$`),
		"unconfirmed":      regexp.MustCompile(`^(-|[a-z_]+(,[a-z_]+)*)$`),
	}
	lines := strings.Split(strings.TrimRight(modelsTSV, "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	seen := map[string]string{}
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if len(cells) != len(head) {
			t.Fatalf("%d cells of %d: %s", len(cells), len(head), line)
		}
		for i, cell := range cells {
			if cell == "" || strings.TrimSpace(cell) != cell {
				t.Errorf("%s: cell %s is empty or has blanks around it", cells[0], head[i])
			}
			if form, ok := forms[head[i]]; ok && !form.MatchString(cell) {
				t.Errorf("%s: %s is %q", cells[0], head[i], cell)
			}
			if (head[i] == "id" || head[i] == "alias") && cell != "-" {
				if other, twice := seen[cell]; twice {
					t.Errorf("%s is of %s and of %s", cell, other, cells[0])
				}
				seen[cell] = cells[0]
			}
		}
	}
	for name := range forms {
		if !slices.Contains(head, name) {
			t.Errorf("no column %s", name)
		}
	}
	if len(lines)-1 < 26 {
		t.Errorf("%d models", len(lines)-1)
	}
}
