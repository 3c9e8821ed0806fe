package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// crossdoorBin is the binary under test, built once with the race detector.
var crossdoorBin string

// envoyBin is the Envoy that all tests use.
var envoyBin = os.Getenv("ENVOY")

func TestMain(m *testing.M) { os.Exit(mainWith(m)) }

func mainWith(m *testing.M) int {
	if envoyBin == "" {
		fmt.Fprintln(os.Stderr, "test: ENVOY is not set: these tests need a real Envoy. Run `make test`, which fetches one, or set ENVOY to an Envoy binary (1.37 to 1.40).")
		return 1
	}
	if _, err := os.Stat(envoyBin); err != nil {
		fmt.Fprintf(os.Stderr, "test: ENVOY: %v: run `make envoy` to fetch it, or point ENVOY to an Envoy binary (1.37 to 1.40)\n", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "crossdoor-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	crossdoorBin = filepath.Join(dir, "crossdoor")
	build := exec.Command("go", "build", "-race", "-o", crossdoorBin, "../cmd/crossdoor")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "test: go build -race ./cmd/crossdoor: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
