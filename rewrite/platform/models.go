package platform

import (
	_ "embed"
	"strings"
)

//go:embed models.tsv
var modelsTSV string

// row is one model of the table; "" is an ID that is not known or not offered.
type row struct {
	id             string   // first-party, canonical: dated before the 4.6 generation
	alias          string   // the dateless form of a dated ID
	bedrock        string   // base ID
	profiles       []string // prefixes of its inference profiles
	mantle         string
	vertex         string
	foundry        string // default deployment name
	foundryHosting string // "anthropic" alone, "both"; "" is not known
	retired        bool   // on the platforms that Anthropic operates
}

// table has the rows in the file's order; byName finds a row by ID or alias.
var table, byName = load(modelsTSV)

func load(text string) ([]row, map[string]*row) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	column := map[string]int{}
	for i, name := range strings.Split(lines[0], "\t") {
		column[name] = i
	}
	rows := make([]row, 0, len(lines)-1)
	index := make(map[string]*row, 2*len(lines))
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		cell := func(name string) string { return strings.TrimPrefix(cells[column[name]], "-") }
		rows = append(rows, row{
			id:             cell("id"),
			alias:          cell("alias"),
			bedrock:        cell("bedrock_id"),
			profiles:       strings.FieldsFunc(cell("bedrock_profiles"), func(c rune) bool { return c == ',' }),
			mantle:         cell("mantle_id"),
			vertex:         cell("vertex_id"),
			foundry:        cell("foundry_name"),
			foundryHosting: cell("foundry_hosting"),
			retired:        cell("state") == "retired",
		})
		r := &rows[len(rows)-1]
		index[r.id] = r
		if r.alias != "" {
			index[r.alias] = r
		}
	}
	return rows, index
}

// Models lists the built-in models that the first-party API still serves, by
// canonical ID (claude-haiku-4-5-20251001, not its alias claude-haiku-4-5), in
// the table's order: by family, newest first. The slice is the caller's.
func Models() []string {
	ids := make([]string, 0, len(table))
	for _, r := range table {
		if !r.retired {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// Known reports whether the table has model, as an ID or an alias, retired ones
// included. What is not known may be a client's invention: no label value.
func Known(model string) bool {
	_, ok := byName[model]
	return ok
}

// ModelID is the ID by which the named platform knows a client's model, at a
// site. The platforms with first-party IDs take every name as it is, aliases and
// unknown ones too; the others only what the table has for them.
func ModelID(platform string, at Site, model string) (id string, ok bool) {
	s, ok := Get(platform)
	if !ok {
		return "", false
	}
	return s.modelID(at, model)
}

func asItIs(_ Site, model string) (string, bool) { return model, model != "" }
