package platform_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// The same request at another platform: every header is set or removed.
func Example() {
	spec, _ := platform.Get("bedrock")
	at := platform.Site{Region: "eu-central-1", Profile: platform.ProfileGeo}
	model, _ := platform.ModelID(spec.Name, at, "claude-haiku-4-5")
	path, err := spec.Path(at, "/v1/messages?beta=true", model, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range spec.Headers(platform.Call{
		Operation: platform.Messages,
		Path:      path,
		Authority: spec.Host(at),
		Model:     model,
		Stream:    true,
		Secret:    "the key",
	}) {
		fmt.Printf("%s=%s\n", h.Name, h.Value)
	}
	// Output:
	// :path=/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream
	// :authority=bedrock-runtime.eu-central-1.amazonaws.com
	// x-api-key=
	// authorization=Bearer the key
	// api-key=
	// x-amz-date=
	// x-amz-security-token=
	// x-amz-content-sha256=
	// x-goog-user-project=
	// anthropic-version=
	// anthropic-beta=
	// anthropic-workspace-id=
	// anthropic-user-profile-id=
	// content-type=application/json
	// accept=application/vnd.amazon.eventstream
	// accept-encoding=identity
}

// A profile of another geography is never taken by itself.
func ExampleModelID() {
	for _, at := range []platform.Site{
		{Region: "us-east-1"},
		{Region: "eu-central-1"},
		{Region: "ca-central-1"},
		{Region: "ca-central-1", Profile: platform.ProfileGlobal},
	} {
		id, ok := platform.ModelID("bedrock", at, "claude-opus-5-5")
		fmt.Printf("%s %q %v\n", at.Region, id, ok)
	}
	// Output:
	// us-east-1 "us.anthropic.claude-opus-5-5" true
	// eu-central-1 "eu.anthropic.claude-opus-5-5" true
	// ca-central-1 "" false
	// ca-central-1 "global.anthropic.claude-opus-5-5" true
}

func ExampleCanonical() {
	for _, model := range []string{
		"claude-haiku-4-5",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0",
		"claude-haiku-4-5@20251001",
		"arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0",
		"gpt-oss",
	} {
		fmt.Printf("%q\n", platform.Canonical(model))
	}
	// Output:
	// "claude-haiku-4-5-20251001"
	// "claude-haiku-4-5-20251001"
	// "claude-haiku-4-5-20251001"
	// "claude-haiku-4-5-20251001"
	// ""
}
