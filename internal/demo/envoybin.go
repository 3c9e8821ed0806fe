package demo

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"time"
)

var versionForm = regexp.MustCompile(`version: [0-9a-f]*/(\d+\.\d+\.\d+)`)

// envoyVersion asks the binary what it is.
func envoyVersion(ctx context.Context, bin string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w: point --envoy or $ENVOY at an Envoy binary for this machine; `make envoy` fetches one", bin, err)
	}
	m := versionForm.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s does not say that it is Envoy: point --envoy or $ENVOY at an Envoy binary (1.37 to 1.40)", bin)
	}
	return string(m[1]), nil
}
