package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// modelForm is the contract's rule for a model: 1 to 256 printable ASCII
// characters.
var modelForm = regexp.MustCompile(`^[ -~]{1,256}$`)

const modelRule = "must be 1 to 256 printable ASCII characters"

func isGlob(model string) bool { return strings.ContainsAny(model, "*?") }

// models compiles a target's own table; features are the target's.
func (c *compiler) models(path string, list []FileModel, features map[string]FeatureAction) []ModelRule {
	var rules []ModelRule
	for _, f := range list {
		at := join(path, f.Model)
		id := c.at(at, "id")
		if !modelForm.MatchString(f.Model) {
			c.failKey(at, "a model %s", modelRule)
		}
		if c.has(id) && c.ok(id) && !modelForm.MatchString(f.ID) {
			c.fail(id, "an ID %s", modelRule)
		}
		rules = append(rules, ModelRule{
			Model: f.Model, ID: f.ID,
			Features: c.features(join(at, "features"), f.Features, features),
		})
	}
	return rules
}

// at is the path of a member that has a short form: in the short form it is the
// element itself.
func (d *document) at(path, member string) string {
	if d.isMapping[path] {
		return join(path, member)
	}
	return path
}

// globs compiles a route's models.
func (c *compiler) globs(path string, models []string) []string {
	if c.has(path) && c.ok(path) && len(models) == 0 {
		c.fail(path, `is empty: write globs such as "claude-*"`)
	}
	for i, m := range models {
		at := index(path, i)
		switch {
		case !c.ok(at):
		case !modelForm.MatchString(m):
			c.fail(at, "a model %s", modelRule)
		case slices.Contains(models[:i], m):
			c.fail(at, "%s is there twice", show(m))
		}
	}
	return models
}

// resolvable reports the models that a target of the chain has no ID for. A
// glob leaves such a target out of the plan instead (contract, end of section 2).
func (c *compiler) resolvable(path string, r *Route) {
	for i, model := range r.Models {
		at := index(join(path, "models"), i)
		if isGlob(model) || !c.ok(at) {
			continue
		}
		first := map[*Target]bool{}
		for _, e := range r.Chain {
			if e.Target == nil || e.Model != "" || first[e.Target] || !c.tableKnown(e.Target) {
				continue
			}
			first[e.Target] = true
			if _, ok := e.Target.ModelID(model); !ok {
				c.fail(at, "%s", c.noID(e.Target, model))
			}
		}
	}
}

// noID says what to do about a model that a target has no ID for.
func (c *compiler) noID(t *Target, model string) string {
	where := ""
	if t.Region != "" {
		where = " in " + t.Region
	}
	advice := "add it to the target's models"
	if t.Platform == PlatformBedrock {
		where += " with profile: " + string(t.Profile)
		advice += c.otherProfile(t, model)
	}
	return fmt.Sprintf("no ID for %s on target %q%s: %s%s", show(model), t.Name, where, advice, c.suggestModel(model))
}

// otherProfile names a profile that has an ID for the model; whether requests
// may run elsewhere is for a person to say.
func (c *compiler) otherProfile(t *Target, model string) string {
	at := t.modelPlace()
	for _, p := range []Profile{ProfileNone, ProfileGeo, ProfileGlobal} {
		at.Profile = p
		if c.catalog.ModelID == nil || p == t.Profile {
			continue
		}
		if _, ok := c.catalog.ModelID(t.Platform, at, model); ok {
			return ", or write profile: " + string(p) + " if requests may run " + profileReach[p]
		}
	}
	return ""
}

var profileReach = map[Profile]string{ProfileNone: "in this region alone", ProfileGeo: "in all of the region's geography", ProfileGlobal: "anywhere"}

// entryModel checks the model that an entry names in place of the client's.
func (c *compiler) entryModel(path string, f FileEntry, t *Target) {
	if !c.has(path) || !c.ok(path) {
		return
	}
	switch {
	case !modelForm.MatchString(f.Model):
		c.fail(path, "a model %s", modelRule)
	case isGlob(f.Model):
		c.fail(path, "must be one model, not a glob")
	case t != nil && c.tableKnown(t):
		if _, ok := t.ModelID(f.Model); !ok {
			c.fail(path, "%s", c.noID(t, f.Model))
		}
	}
}

// tableKnown reports whether a missing ID is an error of its own: not when the
// target's platform or table already is one.
func (c *compiler) tableKnown(t *Target) bool {
	path := join("targets", t.Name)
	return c.ok(path, join(path, "platform"), join(path, "region"), join(path, "profile"), join(path, "hosting")) &&
		c.clean(join(path, "models"))
}

func (c *compiler) suggestModel(model string) string {
	if c.catalog.Models == nil {
		return ""
	}
	known := c.catalog.Models()
	if slices.Contains(known, model) {
		return ""
	}
	return suggest(model, known)
}
