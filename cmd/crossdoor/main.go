// Command crossdoor gives an Envoy ingress LLM failover: it is the service that
// Envoy asks, and the tools to render its config and to look at what happened.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes (contract, section "Commands").
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run executes one command line and says how it ended.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "crossdoor",
		Short: "LLM failover inside the Envoy you already run",
		Long: `Crossdoor picks the target of each Claude Messages API request, rewrites the
request for it, and lets Envoy try the next one when a failure is of a kind that
another target can fix. CROSSDOOR_POLICY stands for --policy.

Exit codes: 0 ok, 1 failed, 2 wrong usage or wrong policy.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see %s --help", args[0], c.CommandPath())}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(serveCommand(), renderCommand(), checkCommand(), explainCommand(), trailCommand(), demoCommand(), versionCommand())
	return root
}
