package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const explainPolicy = `
version: 1
targets:
  first: {platform: anthropic, keys: [{env: FIRST_KEY}]}
  aws: {platform: bedrock, region: eu-central-1}
  azure: {platform: foundry, resource: acme, hosting: azure, keys: [{env: AZURE_KEY}]}
routes:
  - {name: all, models: ["claude-*"], chain: [first, aws, azure]}
`

// explain runs the command over a request and returns what it prints.
func explain(t *testing.T, request string, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	policy, file := filepath.Join(dir, "crossdoor.yaml"), filepath.Join(dir, "request.json")
	for path, text := range map[string]string{policy: explainPolicy, file: request} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("FIRST_KEY", "sk-first-secret")
	c := explainCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs(append([]string{"--policy", policy, "--request", file}, args...))
	err := c.Execute()
	return out.String(), err
}

func TestExplain(t *testing.T) {
	const request = `{"model":"claude-opus-5","stream":true,"service_tier":"auto","messages":[{"role":"user","content":"a secret of the client's"}]}`
	out, err := explain(t, request, "--header", "Anthropic-Beta: interleaved-thinking-2025-05-14")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"route all: model claude-opus-5, a stream, 127 bytes\nuses service_tier\n",
		"1. first (anthropic, claude-opus-5): as it is\n   POST https://api.anthropic.com/v1/messages\n   + x-api-key: (value of env:FIRST_KEY)\n",
		"body: the client's bytes",
		"2. aws (bedrock, eu.anthropic.claude-opus-5): without interleaved-thinking-2025-05-14 (the client is told)\n" +
			"   POST https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-opus-5/invoke-with-response-stream\n",
		"   - anthropic-beta\n",
		"   @ byte 1\n     + \"anthropic_version\":\"bedrock-2023-05-31\",\n   @ byte 1\n     - \"model\":\"claude-opus-5\",\"stream\":true,\"service_tier\":\"auto\",\n",
		"3. azure (foundry, claude-opus-5): without service_tier, which loses nothing\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, secret := range []string{"sk-first-secret", "a secret of the client's"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q is in the output", secret)
		}
	}
}

func TestExplainLeftOut(t *testing.T) {
	const request = `{"model":"claude-opus-5","inference_geo":"us","messages":[]}`
	out, err := explain(t, request, "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Plan []struct {
			Target, Skipped, URL string
			Refused              []string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Plan) != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	if p := got.Plan[1]; p.Skipped != "feature:inference_geo" || p.URL != "" || strings.Join(p.Refused, "") != "inference_geo" {
		t.Errorf("%+v", p)
	}
	if got.Plan[0].Skipped != "" {
		t.Errorf("%+v", got.Plan[0])
	}
}

func TestExplainRefuses(t *testing.T) {
	for _, c := range []struct {
		request, want string
		args          []string
	}{
		{`{"model":"gpt"}`, "no route", nil},
		{`{"messages":[]}`, "model: Field required", nil},
		{`{"model":"claude-opus-5"}`, "want NAME: VALUE", []string{"--header", "x"}},
		{`{"model":"claude-opus-5"}`, "want text or json", []string{"--format", "xml"}},
	} {
		if out, err := explain(t, c.request, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q; %s", c.request, err, c.want, out)
		}
	}
}
