package platform

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// calls are the same for each platform.
var calls = []struct {
	name string
	call Call
}{
	{"plain", Call{Path: "/v1/messages", Authority: "host.example", Key: "KEY"}},
	{"everything", Call{
		Path: "/v1/messages?beta=true", Authority: "host.example:8443", Key: "KEY", Workspace: "wrkspc_01", Version: "2026-10-21",
		Beta:        []string{" context-1m-2025-08-07 ,new-thing-2026-12-01,,", "token-efficient-tools-2025-02-19", "new-thing-2026-12-01,\tcompact-2026-01-12"},
		UserProfile: "up_1", Credential: ClientCredential{APIKey: "CLIENT", Authorization: "Bearer CLIENT"},
	}},
	{"count_tokens", Call{Path: "/v1/messages/count_tokens", Authority: "host.example", Key: "KEY", Beta: []string{" , "}}},
	{"passthrough of a key", Call{Path: "/v1/messages", Authority: "host.example", Key: "KEY", Passthrough: true, Credential: ClientCredential{APIKey: "CLIENT"}}},
	{"passthrough of a bearer", Call{Path: "/v1/messages", Authority: "host.example", Passthrough: true, Credential: ClientCredential{Authorization: "Bearer CLIENT"}}},
	{"passthrough of both", Call{Path: "/v1/messages", Authority: "host.example", Passthrough: true, Credential: ClientCredential{APIKey: "CLIENT", Authorization: "Bearer INGRESS"}}},
	{"passthrough of nothing", Call{Path: "/v1/messages", Authority: "host.example", Key: "KEY", Passthrough: true}},
	{"no workspace", Call{Path: "/v1/messages", Authority: "host.example", Key: "KEY", Beta: []string{"compact-2026-01-12"}}},
}

func TestHeaders(t *testing.T) {
	for _, name := range []string{"anthropic", "claude-on-aws", "foundry"} {
		t.Run(name, func(t *testing.T) {
			spec, ok := Get(name)
			if !ok {
				t.Fatal("no such platform")
			}
			var got strings.Builder
			for _, c := range calls {
				fmt.Fprintf(&got, "# %s\n", c.name)
				for _, h := range spec.Headers(c.call) {
					if h.Value == "" {
						fmt.Fprintf(&got, "- %s\n", h.Name)
					} else {
						fmt.Fprintf(&got, "+ %s: %s\n", h.Name, h.Value)
					}
				}
			}
			golden(t, filepath.Join("testdata", name+".headers"), got.String())
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not as in %s (written anew by -update):\n%s", file, got)
	}
}

// Whatever was sent to one platform, another's headers leave nothing of it.
func TestEveryListHasTheSameNames(t *testing.T) {
	var want []string
	for _, name := range []string{"anthropic", "claude-on-aws", "foundry"} {
		spec, _ := Get(name)
		for _, c := range calls {
			var names []string
			credentials := 0
			for _, h := range spec.Headers(c.call) {
				names = append(names, h.Name)
				if h.Value != "" && (h.Name == "x-api-key" || h.Name == "authorization" || h.Name == "api-key") {
					credentials++
				}
			}
			if want == nil {
				want = names
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s, %s: %v, want %v", name, c.name, names, want)
			}
			if credentials > 1 {
				t.Errorf("%s, %s: %d credentials", name, c.name, credentials)
			}
		}
	}
}

func TestStrippedBetas(t *testing.T) {
	lines := []string{"compact-2026-01-12, output-128k-2025-02-19", "context-1m-2025-08-07"}
	for name, want := range map[string][]string{"anthropic": nil, "claude-on-aws": nil, "foundry": {"compact-2026-01-12"}} {
		spec, _ := Get(name)
		if got := spec.StrippedBetas(lines); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestAllowedClientHeader(t *testing.T) {
	for name, want := range map[string]bool{
		"content-type": true, "accept": true, "user-agent": true, "anthropic-version": true, "anthropic-beta": true,
		"anthropic-user-profile-id": true, "x-stainless-retry-count": true, "x-stainless-timeout": true,
		"anthropic-dangerous-direct-browser-access": true,
		"cookie": false, "authorization": false, "x-api-key": false, "api-key": false, "anthropic-workspace-id": false,
		"x-request-id": false, "x-forwarded-for": false, "x-stainless": false, "accept-encoding": false, "content-encoding": false,
		"x-goog-user-project": false, "x-amz-security-token": false, "traceparent": false, "": false,
	} {
		if got := AllowedClientHeader(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestGet(t *testing.T) {
	if _, ok := Get("bedrock"); ok {
		t.Error("a platform that is not built")
	}
	for name, want := range map[string]string{
		"anthropic":     "api.anthropic.com",
		"claude-on-aws": "aws-external-anthropic.us-east-1.api.aws",
		"foundry":       "acme-ai.services.ai.azure.com",
	} {
		spec, ok := Get(name)
		if !ok || spec.Host("us-east-1", "acme-ai") != want || spec.BodyLimit != 32<<20 || spec.ImageLimit != 10<<20 {
			t.Errorf("%s: %+v", name, spec)
		}
	}
}
