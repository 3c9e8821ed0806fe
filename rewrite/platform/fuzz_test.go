package platform

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzPath: whatever the ID, it is refused or becomes one segment that means it.
func FuzzPath(f *testing.F) {
	for _, id := range []string{
		"anthropic.claude-opus-5-5", "anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5@20251001",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5", "..", ";x", "a%2fb", "",
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		for _, s := range []*Spec{&bedrock, &vertex} {
			path, err := s.Path(sites[s.Name], "/v1/messages", id, true)
			if (err == nil) != (s.CheckModel(id) == nil) {
				t.Fatalf("%s: %q is a path (%v) or an ID, not both", s.Name, id, err)
			}
			if err != nil {
				continue
			}
			before, after, _ := strings.Cut(s.own.stream, "{model}")
			rest, ok := strings.CutPrefix(path, fill(before, sites[s.Name], ""))
			segment, ok2 := strings.CutSuffix(rest, after)
			plain, err := url.PathUnescape(segment)
			if !ok || !ok2 || err != nil || plain != id || strings.ContainsAny(segment, "/?#;:\\ ") || segment == "." || segment == ".." {
				t.Errorf("%s: %q became %q", s.Name, id, path)
			}
		}
	})
}

// FuzzCanonical: a name of any kind leads to an ID of the table or to none.
func FuzzCanonical(f *testing.F) {
	for _, model := range []string{"claude-haiku-4-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5@20251001", "-v:@/"} {
		f.Add(model)
	}
	f.Fuzz(func(t *testing.T, model string) {
		id := Canonical(model)
		if id != "" && (!Known(id) || Canonical(id) != id || !strings.Contains(model, "claude-")) {
			t.Errorf("%q is %q", model, id)
		}
	})
}

// FuzzServes: a path that is served means what it says, to whoever reads it.
func FuzzServes(f *testing.F) {
	for _, path := range []string{"/v1/models", "/v1/files/../organizations", "/v1/%6frganizations", "/v1/files?x=/../", "//v1"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !anthropic.Serves(Site{}, path) {
			return
		}
		bare, _, _ := strings.Cut(path, "?")
		if cleaned, err := url.JoinPath("/", bare); err != nil || cleaned != bare {
			t.Errorf("%q is %q, %v", bare, cleaned, err)
		}
		if strings.HasPrefix(bare, "/v1/organizations/") || bare == "/v1/organizations" {
			t.Errorf("%q is served", path)
		}
	})
}
