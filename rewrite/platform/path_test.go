package platform

import (
	"errors"
	"testing"
)

func TestPath(t *testing.T) {
	arn := "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/a1b2"
	for _, c := range []struct {
		platform, path, model string
		stream                bool
		want                  string
		err                   error
	}{
		{"anthropic", "/v1/messages", "m", true, "/v1/messages", nil},
		{"anthropic", "/v1/messages?beta=true&x=%2F", "m", false, "/v1/messages?beta=true&x=%2F", nil},
		{"anthropic", "/v1/messages/batches", "", false, "/v1/messages/batches", nil},
		{"anthropic", "/v1/organizations/x", "", false, "", ErrNoPath},
		{"claude-on-aws", "/v1/files?limit=1", "", false, "/v1/files?limit=1", nil},
		{"claude-on-google", "/v1/messages?beta=true", "m", true, "/v1/projects/acme%3Ap/locations/global/workspaces/wrkspc_02/invoke/v1/messages?beta=true", nil},
		{"claude-on-google", "/v1/complete", "", false, "", ErrNoPath},
		{"mantle", "/v1/messages/count_tokens?beta=true", "m", false, "/anthropic/v1/messages/count_tokens?beta=true", nil},
		{"mantle", "/v1/models", "", false, "", ErrNoPath},
		{"foundry", "/v1/messages", "my deployment;x", true, "/anthropic/v1/messages", nil},
		{"foundry", "/v1/files/file_1", "", false, "/anthropic/v1/files/file_1", nil},
		{"foundry", "/v1/messages/batches", "", false, "", ErrNoPath},

		{"bedrock", "/v1/messages", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", false, "/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke", nil},
		{"bedrock", "/v1/messages?beta=true", "anthropic.claude-opus-5-5", true, "/model/anthropic.claude-opus-5-5/invoke-with-response-stream", nil},
		{"bedrock", "/v1/messages?x=1", arn, true, "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2/invoke-with-response-stream", nil},
		{"bedrock", "/v1/messages/count_tokens?beta=true", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", true, "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/count-tokens", nil},
		{"bedrock", "/v1/messages/count_tokens", "us-gov.anthropic.claude-sonnet-5-5", false, "/model/anthropic.claude-sonnet-5-5/count-tokens", nil},
		{"bedrock", "/v1/messages/count_tokens", arn, false, "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2/count-tokens", nil},
		{"bedrock", "/v1/models", "m", false, "", ErrNoPath},

		{"vertex", "/v1/messages?beta=true", "claude-haiku-4-5@20251001", false, "/v1/projects/acme/locations/eu/publishers/anthropic/models/claude-haiku-4-5@20251001:rawPredict", nil},
		{"vertex", "/v1/messages", "claude-opus-5-5", true, "/v1/projects/acme/locations/eu/publishers/anthropic/models/claude-opus-5-5:streamRawPredict", nil},
		{"vertex", "/v1/messages", "a/b:c", false, "/v1/projects/acme/locations/eu/publishers/anthropic/models/a%2Fb%3Ac:rawPredict", nil},
		{"vertex", "/v1/messages/count_tokens?beta=true", "claude-opus-5-5", true, "/v1/projects/acme/locations/eu/publishers/anthropic/models/count-tokens:rawPredict", nil},
		{"vertex", "/v1/files", "", false, "", ErrNoPath},
	} {
		s, _ := Get(c.platform)
		got, err := s.Path(sites[c.platform], c.path, c.model, c.stream)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s %s of %q, stream %v: %q, %v; want %q, %v", c.platform, c.path, c.model, c.stream, got, err, c.want, c.err)
		}
	}
}

func TestModelsThatNoPathMayHold(t *testing.T) {
	for _, id := range []string{
		"", ".", "..", ";x", "a;x", "a/../b", "../a", "a/./b", "a//b", "/a", "a/", "a b", "a?b", "a#b", "a%2e", "a\\b", "a\x00", "a\nb", "ä", "a\x7f",
	} {
		for _, s := range []*Spec{&bedrock, &vertex} {
			if err := s.CheckModel(id); !errors.Is(err, ErrModelID) {
				t.Errorf("%s: CheckModel(%q): %v", s.Name, id, err)
			}
			if path, err := s.Path(sites[s.Name], "/v1/messages", id, false); !errors.Is(err, ErrModelID) {
				t.Errorf("%s: %q became %q, %v", s.Name, id, path, err)
			}
		}
		if err := foundry.CheckModel(id); err != nil {
			t.Errorf("foundry takes the model in the body: %v", err)
		}
	}
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		platform, path string
		at             Site
		want           bool
	}{
		{"anthropic", "/v1/models", Site{}, true},
		{"anthropic", "/v1/messages/batches/msgbatch_1/results?x=1", Site{}, true},
		{"anthropic", "/v1/organizations", Site{}, false},
		{"anthropic", "/v1/organizations?x", Site{}, false},
		{"anthropic", "/v1/user_profiles/up_1", Site{}, false},
		{"anthropic", "/v1/organizationsx", Site{}, true},
		{"anthropic", "/v1/files/../organizations/x", Site{}, false},
		{"anthropic", "/v1/./organizations", Site{}, false},
		{"anthropic", "/v1//organizations", Site{}, false},
		{"anthropic", "/v1/%6frganizations", Site{}, false},
		{"anthropic", "/v1/files/..", Site{}, false},
		{"anthropic", "/v1/files\\..\\x", Site{}, false},
		{"anthropic", "/v1/files;/../x", Site{}, false},
		{"anthropic", "/v1/files#x", Site{}, false},
		{"anthropic", "/v1/files\x00", Site{}, false},
		{"anthropic", "/v1/", Site{}, false},
		{"anthropic", "/v1", Site{}, false},
		{"anthropic", "/", Site{}, false},
		{"anthropic", "", Site{}, false},
		{"anthropic", "*", Site{}, false},
		{"anthropic", "/v2/messages", Site{}, false},
		{"claude-on-google", "/v1/models/x", Site{}, true},
		{"claude-on-google", "/v1/complete", Site{}, false},
		{"claude-on-google", "/v1/organizations", Site{}, false},
		{"foundry", "/v1/skills", Site{}, true},
		{"foundry", "/v1/skillsets", Site{}, false},
		{"foundry", "/v1/models", Site{}, false},
		{"foundry", "/v1/files", Site{Hosting: HostingAzure}, false},
		{"foundry", "/v1/messages", Site{Hosting: HostingAzure}, true},
		{"foundry", "/v1/messages/count_tokens?beta=true", Site{Hosting: HostingAzure}, true},
		{"bedrock", "/v1/messages/count_tokens", Site{}, true},
		{"bedrock", "/v1/messages/batches", Site{}, false},
		{"mantle", "/v1/files", Site{}, false},
		{"vertex", "/v1/models", Site{}, false},
	} {
		s, _ := Get(c.platform)
		if got := s.Serves(c.at, c.path); got != c.want {
			t.Errorf("%s at %+v, %q: %v, want %v", c.platform, c.at, c.path, got, c.want)
		}
	}
}
