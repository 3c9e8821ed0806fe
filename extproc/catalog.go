package extproc

import (
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// Catalog is what is built in about models and features: policies that a Server is to run
// are loaded with it.
func Catalog() config.Catalog {
	return config.Catalog{
		ModelID: func(name string, at config.ModelPlace, model string) (string, bool) {
			site := platform.Site{Region: at.Region, Profile: string(at.Profile), Hosting: string(at.Hosting)}
			return platform.ModelID(name, site, model)
		},
		Models: platform.Models,
		Feature: func(name string) (known, strippable bool) {
			f, ok := rewrite.FeatureNamed(name)
			return ok, ok && f.Strippable()
		},
		Features: rewrite.Features,
	}
}
