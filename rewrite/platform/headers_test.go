package platform

import (
	"slices"
	"testing"
)

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
