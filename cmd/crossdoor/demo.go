package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/crossdoor/crossdoor/internal/demo"
	"github.com/crossdoor/crossdoor/internal/trail"
)

const demoHelp = `Show failover at work: fake platforms, the service and a real Envoy on free ports
of 127.0.0.1, and a tour of ten things that go wrong with platforms. Each request
is shown as it goes from target to target, and checked: status, headers, bytes,
trail. It takes about 20 seconds and needs no network and no keys.

Envoy (1.37 to 1.40) is the binary of --envoy, else of $ENVOY; "make demo" fetches
one and sets it. --keep leaves everything running afterwards, with curl commands to
try, until Ctrl-C. On a terminal the display is live and coloured; NO_COLOR or a
pipe make it plain lines.

Exit codes: 0 every step behaved, 1 one did not, 2 no usable command line.`

const demoExamples = `  make demo
  crossdoor demo --envoy /usr/local/bin/envoy
  ENVOY=/usr/local/bin/envoy crossdoor demo --keep
  NO_COLOR=1 crossdoor demo > tour.txt`

// demoFlags is the command line of `demo`.
type demoFlags struct {
	envoy string
	keep  bool
}

func demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use: "demo", Short: "Show failover at work, with a real Envoy and fake platforms", Long: demoHelp, Example: demoExamples,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	c.Flags().StringVar(&f.envoy, "envoy", "", "Envoy binary (default $ENVOY)")
	c.Flags().BoolVar(&f.keep, "keep", false, "leave everything running afterwards, until Ctrl-C")
	return c
}

func (f *demoFlags) run(c *cobra.Command) error {
	envoy, err := f.envoyBinary()
	if err != nil {
		return usageError{err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: which binary is this? %w", err)
	}
	o := demo.Options{Binary: self, Envoy: envoy, Out: c.OutOrStdout()}
	if f.keep {
		o.After = demo.KeepRunning
	}
	if styleOf(o.Out) == trail.Colour {
		o.Display, o.Width = demo.Live, widthOf(o.Out)
	}
	return demo.Run(c.Context(), o)
}

// envoyBinary is the file to start; its errors say what to do.
func (f *demoFlags) envoyBinary() (string, error) {
	path, from := f.envoy, "--envoy"
	if path == "" {
		path, from = os.Getenv("ENVOY"), "$ENVOY"
	}
	if path == "" {
		return "", errors.New("demo: it needs an Envoy binary (1.37 to 1.40): run `make demo`, which fetches one, or give --envoy FILE or $ENVOY")
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("demo: %s: %w: give the path of an Envoy binary (1.37 to 1.40); `make envoy` fetches one and prints it", from, err)
	}
	if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("demo: %s: %s is not a program: give the path of an Envoy binary (1.37 to 1.40)", from, path)
	}
	return path, nil
}

// widthOf is a terminal's width, or 0.
func widthOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}
