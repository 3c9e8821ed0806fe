package config

import (
	"cmp"
	"maps"
)

// features compiles what a target, or one of its models, says about features:
// list over base. base stays as it is.
func (c *compiler) features(path string, list []FileFeature, base map[string]FeatureAction) map[string]FeatureAction {
	if len(list) == 0 {
		return base
	}
	all := maps.Clone(base)
	if all == nil {
		all = make(map[string]FeatureAction, len(list))
	}
	for _, f := range list {
		c.feature(join(path, f.Name), f)
		all[f.Name] = FeatureAction(f.Action)
	}
	return all
}

func (c *compiler) feature(path string, f FileFeature) {
	if c.catalog.Feature == nil || !c.ok(path) {
		return
	}
	known, strippable := c.catalog.Feature(f.Name)
	switch {
	case !known:
		var names []string
		if c.catalog.Features != nil {
			names = c.catalog.Features()
		}
		c.failKey(path, "unknown feature%s", cmp.Or(suggest(f.Name, names), ": the feature matrix of the docs has the names"))
	case !strippable && FeatureAction(f.Action) == FeatureStrip:
		c.fail(path, "the request would mean something else without it: write keep or refuse")
	}
}
