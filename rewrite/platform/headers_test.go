package platform

import "testing"

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
