package platform

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/rewrite"
)

var update = flag.Bool("update", false, "write the golden files")

// request is one of a client's, with the way in which the attempt authenticates.
type request struct {
	name, path, model, body string
	stream                  bool
	auth                    Auth
	credential              ClientCredential
	version, profile        string
	betas                   []string
	contentType, accept     string
}

const (
	plainBody = `{"model":"claude-opus-5-5","max_tokens":64,"messages":[{"role":"user","content":"Hi"}]}`
	jsonType  = "application/json"
)

// requests go to every platform.
var requests = []request{
	{name: "plain", body: plainBody, contentType: jsonType},
	{name: "stream", stream: true, contentType: jsonType, accept: "application/json",
		body: `{"model":"claude-opus-5-5","max_tokens":64,"messages":[{"role":"user","content":"Hi"}],"stream":true}`},
	{name: "stream first, with blanks", stream: true,
		body: "{\n  \"stream\" : true ,\n  \"model\" : \"claude-opus-5-5\" ,\n  \"max_tokens\" : 6.4e1\n}\n"},
	{name: "no stream, said so", body: `{"model":"claude-opus-5-5","stream":false,"messages":[]}`},
	{name: "alias of a dated model", model: "claude-haiku-4-5", body: `{"max_tokens":1,"model":"claude-haiku-4-5"}`},
	{name: "an unknown model", model: "claude-not-yet-6", body: `{"model":"claude-not-yet-6"}`},
	{name: "betas on two lines, a version, a profile", path: "/v1/messages?beta=true", contentType: "application/json; charset=utf-8",
		version: "2026-10-21", profile: `up_1"\`, body: plainBody,
		betas: []string{" context-1m-2025-08-07 ,context-management-2025-06-27,,", "\tcontext-1m-2025-08-07"}},
	{name: "betas of nothing", betas: []string{" , "}, body: plainBody},
	{name: "members that are there already", profile: "up_2", betas: []string{"context-1m-2025-08-07"},
		body: `{"anthropic_version":"x","anthropic_beta":["y"],"user_profile_id":"z","model":"claude-opus-5-5"}`},
	{name: "count_tokens", path: "/v1/messages/count_tokens?beta=true", stream: true, body: `{"model":"claude-opus-5-5","messages":[{"role":"user","content":"Hi"}],"tools":[]}`},
	{name: "count_tokens, thinking", path: "/v1/messages/count_tokens", model: "claude-haiku-4-5",
		body: `{"model":"claude-haiku-4-5","thinking":{"type":"enabled","budget_tokens":2048},"messages":[]}`},
	{name: "a token", auth: AuthToken, body: plainBody},
	{name: "signed", auth: AuthSigned, body: plainBody},
	{name: "the client's key", auth: AuthPassthrough, credential: ClientCredential{APIKey: "CLIENT"}, body: plainBody},
	{name: "the client's bearer", auth: AuthPassthrough, credential: ClientCredential{Authorization: "Bearer CLIENT"}, body: plainBody},
	{name: "the client's two", auth: AuthPassthrough, credential: ClientCredential{APIKey: "CLIENT", Authorization: "Bearer INGRESS"}, body: plainBody},
	{name: "nothing of the client's", auth: AuthPassthrough, body: plainBody},
	{name: "another path", path: "/v1/files/file_1/content?beta=true", body: plainBody},
}

var sites = map[string]Site{
	"claude-on-aws":    {Region: "us-east-1", Workspace: "wrkspc_01"},
	"claude-on-google": {Project: "acme:p", Workspace: "wrkspc_02"},
	"bedrock":          {Region: "eu-central-1"},
	"mantle":           {Region: "us-east-1"},
	"vertex":           {Project: "acme", Region: "eu"},
	"foundry":          {Resource: "acme-ai"},
}

// call is what a request becomes at a platform; err is why it cannot go there.
func (r request) call(s *Spec) (Call, error) {
	at, path, model := sites[s.Name], or(r.path, "/v1/messages"), or(r.model, "claude-opus-5-5")
	id, ok := ModelID(s.Name, at, model)
	if !ok {
		return Call{}, fmt.Errorf("no ID for %s", model)
	}
	own, err := s.Path(at, path, id, r.stream)
	return Call{
		Operation: OperationOf(path), Path: own, Authority: s.Host(at), Model: id, Stream: r.stream,
		Auth: r.auth, Secret: "SECRET", Credential: r.credential, Workspace: at.Workspace, UserProject: "payer",
		Version: r.version, Betas: r.betas, UserProfile: r.profile, ContentType: r.contentType, Accept: r.accept,
	}, err
}

// sent is the body at a platform; that of a count that travels in another body is
// shown as it is inside.
func (r request) sent(t *testing.T, s *Spec, call Call) []byte {
	t.Helper()
	facts, err := rewrite.Inspect([]byte(r.body))
	if err != nil {
		t.Fatal(err)
	}
	change := s.Change(&facts, call)
	return rewrite.Splice(nil, []byte(r.body), facts.Edits(&change))
}

// TestGolden shows what each platform receives.
func TestGolden(t *testing.T) {
	for _, s := range specs {
		t.Run(s.Name, func(t *testing.T) {
			var out strings.Builder
			for _, r := range requests {
				fmt.Fprintf(&out, "# %s\n", r.name)
				call, err := r.call(s)
				if err != nil {
					fmt.Fprintf(&out, "  %v\n\n", err)
					continue
				}
				fmt.Fprintf(&out, "> %s\n", r.sent(t, s, call))
				for _, h := range s.Headers(call) {
					if h.Value == "" {
						fmt.Fprintf(&out, "- %s\n", h.Name)
					} else {
						fmt.Fprintf(&out, "+ %s: %s\n", h.Name, h.Value)
					}
				}
				out.WriteString("\n")
			}
			golden(t, filepath.Join("testdata", s.Name+".golden"), out.String())
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

// Whatever was sent to one platform, another's headers leave nothing of it; and
// no platform sees two credentials, or what is another's.
func TestEveryListHasTheSameNames(t *testing.T) {
	var want []string
	for _, s := range specs {
		for _, r := range requests {
			call, err := r.call(s)
			if err != nil {
				continue
			}
			list := s.Headers(call)
			var names []string
			credentials := 0
			for _, h := range list {
				names = append(names, h.Name)
				if h.Value != "" && slices.Contains([]string{"x-api-key", "authorization", "api-key"}, h.Name) {
					credentials++
				}
			}
			if want == nil {
				want = names
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s, %s: %v, want %v", s.Name, r.name, names, want)
			}
			if credentials > 1 {
				t.Errorf("%s, %s: %d credentials", s.Name, r.name, credentials)
			}
			if again := s.Headers(call); !slices.Equal(again, list) {
				t.Errorf("%s, %s: the same call gives other headers", s.Name, r.name)
			}
		}
	}
	for _, name := range []string{"authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"} {
		if list := anthropic.Headers(Call{}); !Set(list, name, "signature") || list[slices.Index(want, name)].Value != "signature" {
			t.Errorf("a signature cannot set %s", name)
		}
	}
	if Set(anthropic.Headers(Call{}), "x-amz-target", "x") {
		t.Error("a header is set that nobody removes")
	}
}
