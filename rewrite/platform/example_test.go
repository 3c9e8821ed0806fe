package platform_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// The same request at another platform: every header is set or removed.
func Example() {
	spec, _ := platform.Get("foundry")
	for _, h := range spec.Headers(platform.Call{
		Path:      "/v1/messages?beta=true",
		Authority: spec.Host("", "acme-ai"),
		Key:       "the key",
		Beta:      []string{"context-1m-2025-08-07", "context-1m-2025-08-07"},
	}) {
		fmt.Printf("%s=%s\n", h.Name, h.Value)
	}
	// Output:
	// :path=/anthropic/v1/messages?beta=true
	// :authority=acme-ai.services.ai.azure.com
	// x-api-key=the key
	// authorization=
	// api-key=
	// anthropic-version=2023-06-01
	// anthropic-beta=context-1m-2025-08-07
	// anthropic-workspace-id=
	// anthropic-user-profile-id=
	// accept-encoding=identity
}
