package platform

import (
	"slices"
	"testing"
)

func TestGet(t *testing.T) {
	names := Names()
	if !slices.Equal(names, []string{"anthropic", "claude-on-aws", "claude-on-google", "bedrock", "mantle", "vertex", "foundry"}) {
		t.Errorf("platforms: %v", names)
	}
	for _, name := range names {
		if s, ok := Get(name); !ok || s.Name != name {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if _, ok := Get("openai"); ok {
		t.Error("a platform that is not built")
	}
}

func TestHost(t *testing.T) {
	for _, c := range []struct {
		platform string
		at       Site
		want     string
	}{
		{"anthropic", Site{}, "api.anthropic.com"},
		{"anthropic", Site{Region: "us"}, "api.anthropic.com"},
		{"claude-on-aws", Site{Region: "us-east-1"}, "aws-external-anthropic.us-east-1.api.aws"},
		{"claude-on-google", Site{Project: "p", Location: "us"}, "claude.googleapis.com"},
		{"bedrock", Site{Region: "eu-central-1"}, "bedrock-runtime.eu-central-1.amazonaws.com"},
		{"bedrock", Site{Region: "us-gov-west-1"}, "bedrock-runtime.us-gov-west-1.amazonaws.com"},
		{"mantle", Site{Region: "ap-southeast-4"}, "bedrock-mantle.ap-southeast-4.api.aws"},
		{"vertex", Site{Region: "global"}, "aiplatform.googleapis.com"},
		{"vertex", Site{Region: "us"}, "aiplatform.us.rep.googleapis.com"},
		{"vertex", Site{Region: "eu"}, "aiplatform.eu.rep.googleapis.com"},
		{"vertex", Site{Region: "europe-west1"}, "europe-west1-aiplatform.googleapis.com"},
		{"foundry", Site{Resource: "acme-ai"}, "acme-ai.services.ai.azure.com"},
	} {
		s, _ := Get(c.platform)
		if got := s.Host(c.at); got != c.want {
			t.Errorf("%s at %+v: %s, want %s", c.platform, c.at, got, c.want)
		}
	}
}

// What a caller has to know of each platform.
func TestFacts(t *testing.T) {
	for _, c := range []struct {
		platform    string
		stream      Framing
		errors      Schema
		sigv4       string
		scope       string
		body, image int64
	}{
		{"anthropic", SSE, SchemaMessages, "", "", 32 << 20, 10 << 20},
		{"claude-on-aws", SSE, SchemaMessages | SchemaAWS, "aws-external-anthropic", "", 32 << 20, 10 << 20},
		{"claude-on-google", SSE, SchemaMessages | SchemaGoogle, "", "https://www.googleapis.com/auth/cloud-platform", 32 << 20, 10 << 20},
		{"bedrock", EventStream, SchemaAWS, "bedrock", "", 20 << 20, 5 << 20},
		{"mantle", SSE, SchemaMessages | SchemaAWS, "bedrock-mantle", "", 20 << 20, 5 << 20},
		{"vertex", SSE, SchemaMessages | SchemaGoogle, "", "https://www.googleapis.com/auth/cloud-platform", 30 << 20, 5 << 20},
		{"foundry", SSE, SchemaMessages | SchemaAzure, "", "https://ai.azure.com/.default", 32 << 20, 10 << 20},
	} {
		s, _ := Get(c.platform)
		if s.Stream != c.stream || s.Errors != c.errors || s.SigV4 != c.sigv4 || s.Scope != c.scope || s.BodyLimit != c.body || s.ImageLimit != c.image {
			t.Errorf("%+v, want %+v", *s, c)
		}
	}
	if bedrock.Errors.Has(SchemaMessages) || !vertex.Errors.Has(SchemaMessages) {
		t.Error("Has")
	}
}
