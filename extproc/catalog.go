package extproc

import (
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// Catalog is what is built in about models: policies that a Server is to run
// are loaded with it.
func Catalog() config.Catalog {
	return config.Catalog{
		ModelID: func(name string, _ config.ModelPlace, model string) (string, bool) {
			return platform.ModelID(name, model)
		},
		Models: platform.Models,
	}
}
