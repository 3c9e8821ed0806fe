package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/crossdoor/crossdoor/policy/config"
)

const checkHelp = `Check a policy file: every error at once, each with its line and column, and what
to do about it.`

const checkExamples = `  crossdoor check --policy crossdoor.yaml
  crossdoor check --policy crossdoor.yaml --format json`

type checkFlags struct {
	policy, format, envoyConfig, envoyBinary, against string
}

func checkCommand() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use: "check", Short: "Check a policy", Long: checkHelp, Example: checkExamples,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fs := c.Flags()
	fs.StringVar(&f.policy, "policy", "", policyFlagHelp)
	fs.StringVar(&f.format, "format", "text", "text or json (sarif: not supported yet)")
	fs.StringVar(&f.envoyConfig, "envoy-config", "", "check an Envoy config as well (not supported yet)")
	fs.StringVar(&f.envoyBinary, "envoy", "", "Envoy binary that checks the config (not supported yet)")
	fs.StringVar(&f.against, "against", "", "the policy that was in force: says whether a new render is needed")
	return c
}

func (f *checkFlags) run(c *cobra.Command) error {
	for name, value := range map[string]string{"envoy-config": f.envoyConfig, "envoy": f.envoyBinary} {
		if value != "" {
			return usageError{fmt.Errorf("--%s: not supported yet", name)}
		}
	}
	switch f.format {
	case "text", "json":
	case "sarif":
		return usageError{errors.New("--format sarif: not supported yet")}
	default:
		return usageError{fmt.Errorf("--format %q: want text or json", f.format)}
	}
	path, err := policyPath(f.policy)
	if err != nil {
		return err
	}
	p, err := loadPolicy(path)
	if err != nil {
		return f.tellErrors(c.OutOrStdout(), err)
	}
	return f.tellGood(c.OutOrStdout(), path, p)
}

// finding is one error of the JSON output.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// tellErrors writes the findings where the format has a place for them.
func (f *checkFlags) tellErrors(w io.Writer, err error) error {
	var errs *config.Errors
	if f.format != "json" || !errors.As(err, &errs) {
		return err
	}
	findings := []finding{}
	for _, e := range errs.List {
		findings = append(findings, finding{File: e.File, Line: e.Line, Column: e.Col, Path: e.Path, Message: e.Message})
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"findings": findings}); err != nil {
		return err
	}
	return usageError{fmt.Errorf("%d findings", len(findings))}
}

func (f *checkFlags) tellGood(w io.Writer, path string, p *config.Policy) error {
	needed := false
	if f.against != "" {
		old, err := loadPolicy(f.against)
		if err != nil {
			return err
		}
		needed = old.RenderHash != p.RenderHash
	}
	if f.format == "json" {
		return json.NewEncoder(w).Encode(map[string]any{"findings": []finding{}, "policy": p.Hash, "render_needed": needed})
	}
	fmt.Fprintf(w, "%s: ok (policy %s, %d targets, %d routes)\n", path, p.Hash, len(p.Targets), len(p.Routes))
	if needed {
		fmt.Fprintln(w, "Envoy's config depends on what changed: render again before this policy is loaded.")
	}
	fmt.Fprintln(w, "Crossdoor does not authenticate clients: the ingress in front of it must.")
	return nil
}
