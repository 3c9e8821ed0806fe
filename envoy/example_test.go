package envoy_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/envoy"
)

// A policy becomes one file that starts as it is, and a folder of files that
// Envoy follows.
func ExampleRender() {
	services, err := envoy.ParseServices("10.0.0.5:9002,unix:/run/crossdoor.sock")
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := envoy.Render(onePolicy(), envoy.Options{Version: "1.38", Services: services, Listen: "0.0.0.0:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range files.Paths() {
		fmt.Println(path)
	}
	_, err = envoy.Render(onePolicy(), envoy.Options{Version: "1.41"})
	fmt.Println(err)
	// Output:
	// dynamic/cds.yaml
	// dynamic/envoy.yaml
	// dynamic/lds.yaml
	// dynamic/rds-dispatch.yaml
	// dynamic/rds.yaml
	// envoy.yaml
	// envoy version "1.41" was not tried yet: the newest is 1.40; render for that one
}
