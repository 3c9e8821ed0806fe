package demo_test

import (
	"context"
	"fmt"
	"os"

	"github.com/crossdoor/crossdoor/internal/demo"
)

// Without an Envoy there is no demo, and the error says what to do.
func ExampleRun() {
	err := demo.Run(context.Background(), demo.Options{Binary: "crossdoor", Envoy: "/no/envoy", Out: os.Stdout})
	fmt.Println(err)
	// Output:
	// /no/envoy --version: fork/exec /no/envoy: no such file or directory: point --envoy or $ENVOY at an Envoy binary for this machine; `make envoy` fetches one
}
