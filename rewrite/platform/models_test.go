package platform

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestModelID(t *testing.T) {
	azure := Site{Hosting: HostingAzure}
	for _, c := range []struct {
		platform  string
		at        Site
		model, id string
		ok        bool
	}{
		{"anthropic", Site{}, "claude-opus-5-5", "claude-opus-5-5", true},
		{"anthropic", Site{}, "claude-haiku-4-5", "claude-haiku-4-5", true},
		{"anthropic", Site{}, "claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001", true},
		{"anthropic", Site{}, "claude-not-yet-6", "claude-not-yet-6", true},
		{"anthropic", Site{}, "", "", false},
		{"claude-on-aws", Site{}, "claude-sonnet-5-5", "claude-sonnet-5-5", true},
		{"claude-on-aws", Site{}, "claude-not-yet-6", "claude-not-yet-6", true},
		{"claude-on-google", Site{}, "claude-not-yet-6", "claude-not-yet-6", true},
		{"foundry", Site{}, "claude-opus-5-5", "claude-opus-5-5", true},
		{"foundry", Site{}, "claude-haiku-4-5", "claude-haiku-4-5", true},
		{"foundry", Site{}, "claude-haiku-4-5-20251001", "claude-haiku-4-5", true},
		{"foundry", Site{}, "claude-opus-4-5-20251101", "claude-opus-4-5", true},
		{"foundry", Site{}, "claude-opus-4-1-20250805", "", false},
		{"foundry", Site{}, "claude-mythos-5", "", false},
		{"foundry", Site{}, "claude-mythos-preview", "", false},
		{"foundry", Site{}, "claude-not-yet-6", "", false},
		{"foundry", Site{}, "Claude-Opus-5-5", "", false},
		{"foundry", azure, "claude-opus-5", "claude-opus-5", true},
		{"foundry", azure, "claude-opus-5-5", "claude-opus-5-5", true},
		{"foundry", azure, "claude-fable-5", "", false},
		{"foundry", Site{Hosting: HostingAnthropic}, "claude-fable-5", "claude-fable-5", true},
		{"vertex", Site{}, "claude-opus-5-5", "claude-opus-5-5", true},
		{"vertex", Site{}, "claude-haiku-4-5", "claude-haiku-4-5@20251001", true},
		{"vertex", Site{}, "claude-mythos-preview", "", false},
		{"vertex", Site{}, "claude-not-yet-6", "", false},
		{"mantle", Site{}, "claude-opus-5-5", "anthropic.claude-opus-5-5", true},
		{"mantle", Site{}, "claude-haiku-4-5-20251001", "anthropic.claude-haiku-4-5", true},
		{"mantle", Site{}, "claude-opus-4-6", "", false},
		{"openai", Site{}, "claude-opus-5-5", "", false},
		{"", Site{}, "claude-opus-5-5", "", false},
	} {
		if id, ok := ModelID(c.platform, c.at, c.model); id != c.id || ok != c.ok {
			t.Errorf("%s %+v %q: %q, %v; want %q, %v", c.platform, c.at, c.model, id, ok, c.id, c.ok)
		}
	}
}

func TestBedrockID(t *testing.T) {
	for _, c := range []struct{ region, profile, model, id string }{
		{"us-east-1", "", "claude-opus-5-5", "us.anthropic.claude-opus-5-5"},
		{"us-west-2", ProfileGeo, "claude-haiku-4-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"eu-central-1", ProfileGeo, "claude-opus-4-6", "eu.anthropic.claude-opus-4-6-v1"},
		{"eu-central-1", ProfileGeo, "claude-fable-5-2", ""},
		{"eu-central-1", ProfileGeo, "claude-opus-4-1", ""},
		{"ap-northeast-1", ProfileGeo, "claude-opus-4-6", "jp.anthropic.claude-opus-4-6-v1"},
		{"ap-northeast-1", ProfileGeo, "claude-sonnet-4-0", "apac.anthropic.claude-sonnet-4-20250514-v1:0"},
		{"ap-northeast-1", ProfileGeo, "claude-fable-5-1", ""},
		{"ap-southeast-2", ProfileGeo, "claude-fable-5", "au.anthropic.claude-fable-5"},
		{"ap-southeast-4", ProfileGeo, "claude-opus-5-5", "au.anthropic.claude-opus-5-5"},
		{"ap-southeast-2", ProfileGeo, "claude-opus-4-6", "apac.anthropic.claude-opus-4-6-v1"},
		{"ap-south-1", ProfileGeo, "claude-sonnet-5-5", "apac.anthropic.claude-sonnet-5-5"},
		{"ap-south-1", ProfileGeo, "claude-opus-5-5", ""},
		{"us-gov-west-1", ProfileGeo, "claude-sonnet-5-5", "us-gov.anthropic.claude-sonnet-5-5"},
		{"us-gov-west-1", ProfileGeo, "claude-opus-5-5", ""},
		{"ca-central-1", ProfileGeo, "claude-sonnet-5-5", ""},
		{"sa-east-1", ProfileGeo, "claude-sonnet-5-5", ""},
		{"us-iso-east-1", ProfileGeo, "claude-sonnet-5-5", ""},
		{"eusc-de-east-1", ProfileGeo, "claude-sonnet-5-5", ""},
		{"cn-north-1", ProfileGeo, "claude-sonnet-5-5", ""},
		{"", ProfileGeo, "claude-sonnet-5-5", ""},
		{"sa-east-1", ProfileGlobal, "claude-sonnet-5-5", "global.anthropic.claude-sonnet-5-5"},
		{"us-east-1", ProfileGlobal, "claude-fable-5-2", ""},
		{"us-east-1", ProfileNone, "claude-fable-5-2", "anthropic.claude-fable-5-2"},
		{"us-east-1", ProfileNone, "claude-mythos-preview", "anthropic.claude-mythos-preview"},
		{"us-east-1", ProfileGeo, "claude-mythos-preview", ""},
		{"us-east-1", "eu", "claude-opus-5-5", ""},
		{"us-east-1", ProfileNone, "claude-3-opus-20240229", ""},
		{"us-east-1", ProfileNone, "claude-not-yet-6", ""},
		{"us-east-1", ProfileNone, "anthropic.claude-opus-5-5", ""},
	} {
		if id, ok := ModelID("bedrock", Site{Region: c.region, Profile: c.profile}, c.model); id != c.id || ok != (c.id != "") {
			t.Errorf("%s %s %s: %q, %v; want %q", c.region, c.profile, c.model, id, ok, c.id)
		}
	}
}

// Every name of every model, at every site, over the whole table: what comes out
// is what the row says, and leads back to the row.
func TestModelIDsOfTheTable(t *testing.T) {
	cells := rowsOfTheTable(t)
	for _, cell := range cells {
		for _, name := range []string{cell["id"], cell["alias"]} {
			if name == "-" {
				continue
			}
			check := func(platform string, at Site, want string) {
				t.Helper()
				id, ok := ModelID(platform, at, name)
				if want == "-" {
					want = ""
				}
				if id != want || ok != (want != "") {
					t.Errorf("%s %+v %s: %q, %v; want %q", platform, at, name, id, ok, want)
				}
				if ok && Canonical(id) != cell["id"] {
					t.Errorf("Canonical(%q) is %q, want %q", id, Canonical(id), cell["id"])
				}
			}
			for _, platform := range []string{"anthropic", "claude-on-aws", "claude-on-google"} {
				check(platform, Site{}, name)
			}
			check("mantle", Site{Region: "us-east-1"}, cell["mantle_id"])
			check("vertex", Site{Region: "global"}, cell["vertex_id"])
			check("foundry", Site{}, cell["foundry_name"])
			check("bedrock", Site{Region: "us-east-1", Profile: ProfileNone}, cell["bedrock_id"])
			offered := strings.Split(cell["bedrock_profiles"], ",")
			prefixed := func(prefixes ...string) string {
				for _, p := range prefixes {
					if slices.Contains(offered, p) {
						return p + "." + cell["bedrock_id"]
					}
				}
				return "-"
			}
			check("bedrock", Site{Region: "ca-central-1", Profile: ProfileGlobal}, prefixed("global"))
			for _, g := range geographies {
				for _, region := range g.regions {
					check("bedrock", Site{Region: region}, prefixed(g.prefixes...))
				}
			}
		}
	}
}

func rowsOfTheTable(t *testing.T) (rows []map[string]string) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(modelsTSV, "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[head[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCanonical(t *testing.T) {
	for model, want := range map[string]string{
		"claude-opus-5-5":                                "claude-opus-5-5",
		"claude-opus-4-5":                                "claude-opus-4-5-20251101",
		"anthropic.claude-opus-4-6-v1":                   "claude-opus-4-6",
		"global.anthropic.claude-opus-4-5-20251101-v1:0": "claude-opus-4-5-20251101",
		"us-gov.anthropic.claude-sonnet-5-5":             "claude-sonnet-5-5",
		"anthropic.claude-haiku-4-5":                     "claude-haiku-4-5-20251001",
		"claude-sonnet-5-5@default":                      "claude-sonnet-5-5",
		"claude-3-5-sonnet@20240620":                     "claude-3-5-sonnet-20240620",
		"anthropic.claude-3-5-sonnet-20241022-v2:0":      "claude-3-5-sonnet-20241022",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5": "claude-opus-5-5",
		"arn:aws:bedrock:us-east-1:1:application-inference-profile/abc":              "",
		"us.us.anthropic.claude-opus-5-5":                                            "",
		"us.claude-opus-5-5":                                                         "",
		"uk.anthropic.claude-opus-5-5":                                               "",
		"claude-opus-5-5-v":                                                          "",
		"claude-opus-5-5-v1:":                                                        "",
		"claude-opus-5-5-vx":                                                         "",
		"Claude-Opus-5-5":                                                            "",
		"claude-not-yet-6":                                                           "",
		"wren-prod-eu":                                                               "",
		"":                                                                           "",
		"/":                                                                          "",
		"@":                                                                          "",
		"-v1":                                                                        "",
	} {
		if got := Canonical(model); got != want {
			t.Errorf("%q: %q, want %q", model, got, want)
		}
	}
}

// A region is in one geography, and its prefixes are ones that exist.
func TestGeographies(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range geographies {
		for _, region := range g.regions {
			if seen[region] {
				t.Errorf("%s is there twice", region)
			}
			seen[region] = true
		}
		for _, prefix := range g.prefixes {
			if !slices.Contains(profilePrefixes, prefix) || prefix == "global" {
				t.Errorf("%v: no geography has the prefix %s", g.regions, prefix)
			}
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
