package demo

import (
	"bytes"
	_ "embed" // the policy's template
	"fmt"
	"strings"
	"text/template"
)

// Targets of the demo's policy.
const (
	targetAnthropic   = "anthropic"
	targetAWS         = "claude-aws"
	targetFoundry     = "foundry"
	targetUnreachable = "unreachable"
)

// Models of the demo: what happens to a request follows from its model.
const (
	modelHealthy = "demo-healthy"
	modelBusy    = "demo-529"
	modelLimited = "demo-429"
	modelRefused = "demo-refused"
	modelError   = "demo-stream-error"
	modelStalled = "demo-stalled"
	modelBreaker = "demo-breaker"
	modelBad     = "demo-400"
	modelRestart = "demo-restart"
	modelNothing = "demo-nothing"
)

// tourModels are those of the route `tour`.
var tourModels = []string{modelHealthy, modelBusy, modelLimited, modelError, modelBreaker, modelBad, modelRestart, modelNothing}

// The secrets and names of the fakes: they protect nothing.
const (
	workspace     = "wrkspc_demo"
	keyAnthropic  = "sk-demo-anthropic"
	keyAWS        = "sk-demo-aws"
	keyFoundry    = "sk-demo-foundry"
	keyClient     = "sk-demo-client"
	deployment    = "acme-claude"
	deploymentOut = "acme-claude-out" // for modelNothing: breakers are per ID
)

// keyEnv is what the service needs for the policy's keys.
var keyEnv = []string{"DEMO_ANTHROPIC_KEY=" + keyAnthropic, "DEMO_AWS_KEY=" + keyAWS, "DEMO_FOUNDRY_KEY=" + keyFoundry}

//go:embed policy.yaml.tmpl
var policyText string

var policyTemplate = template.Must(template.New("policy").Option("missingkey=error").Parse(policyText))

// urls are where the targets are.
type urls struct{ Anthropic, AWS, Foundry, Unreachable string }

// policyYAML is the policy file for platforms at the URLs.
func policyYAML(at urls) ([]byte, error) {
	deployments := make([]string, 0, len(tourModels)+2)
	for _, m := range append([]string{modelRefused, modelStalled}, tourModels...) {
		id := deployment
		if m == modelNothing {
			id = deploymentOut
		}
		deployments = append(deployments, m+": "+id)
	}
	var b bytes.Buffer
	err := policyTemplate.Execute(&b, struct {
		urls

		Workspace, FoundryModels, Refused, Stalled, Models string
	}{
		urls: at, Workspace: workspace, Refused: modelRefused, Stalled: modelStalled,
		FoundryModels: "{" + strings.Join(deployments, ", ") + "}",
		Models:        "[" + strings.Join(tourModels, ", ") + "]",
	})
	if err != nil {
		return nil, fmt.Errorf("writing the demo's policy: %w", err)
	}
	return b.Bytes(), nil
}
