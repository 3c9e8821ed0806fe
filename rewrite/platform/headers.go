package platform

import (
	"slices"
	"strings"
)

// The headers that platforms set, in the order in which Headers lists them.
const (
	headerPath           = ":path"
	headerAuthority      = ":authority"
	headerAPIKey         = "x-api-key"
	headerAuthorization  = "authorization"
	headerAzureKey       = "api-key"
	headerVersion        = "anthropic-version"
	headerBeta           = "anthropic-beta"
	headerWorkspace      = "anthropic-workspace-id"
	headerUserProfile    = "anthropic-user-profile-id"
	headerAcceptEncoding = "accept-encoding"
)

// DefaultVersion is the anthropic-version of a client that sends none: what it
// expects is what there was before it had a choice.
const DefaultVersion = "2023-06-01"

// Call is what the headers of one attempt are made from.
type Call struct {
	Path      string // the client's :path, query included
	Authority string // the target's host, with its port where it is not the scheme's
	Key       string // the target's key; not used with Passthrough
	// Passthrough sends Credential, the client's own.
	Passthrough bool
	Credential  ClientCredential
	Workspace   string   // the target's
	Version     string   // the client's anthropic-version; "" is absent
	Beta        []string // the client's anthropic-beta lines as they came
	UserProfile string   // the client's anthropic-user-profile-id; "" is absent
}

// ClientCredential is what the client sent, by header: each may be empty.
type ClientCredential struct {
	APIKey        string // x-api-key
	Authorization string // authorization, scheme included
}

// Header is one header of an attempt, its name in lower case: set to Value, or
// removed when Value is empty.
type Header struct{ Name, Value string }

// Headers is every header that any platform sets, each with this platform's
// value or to be removed. The list has the same names in the same order for
// every platform and call; the slice is the caller's. It carries secrets.
func (s *Spec) Headers(c Call) []Header {
	apiKey, authorization := c.credential()
	version := c.Version
	if version == "" {
		version = DefaultVersion
	}
	workspace := ""
	if s.workspaceHeader {
		workspace = c.Workspace
	}
	return []Header{
		{headerPath, s.PathPrefix + c.Path},
		{headerAuthority, c.Authority},
		{headerAPIKey, apiKey},
		{headerAuthorization, authorization},
		{headerAzureKey, ""},
		{headerVersion, version},
		{headerBeta, strings.Join(s.keptBetas(c.Beta), ",")},
		{headerWorkspace, workspace},
		{headerUserProfile, c.UserProfile},
		{headerAcceptEncoding, "identity"},
	}
}

// credential is one of the two, never both: a key of ours goes out as x-api-key,
// the client's own in the header it came in. Of a client that sent both, the key
// is the platform's: the other may well be meant for the ingress.
func (c Call) credential() (apiKey, authorization string) {
	switch {
	case !c.Passthrough:
		return c.Key, ""
	case c.Credential.APIKey != "":
		return c.Credential.APIKey, ""
	}
	return "", c.Credential.Authorization
}

// keptBetas are the tokens of all lines, in order, each once, without those that
// the platform refuses.
func (s *Spec) keptBetas(lines []string) []string {
	return slices.DeleteFunc(tokens(lines), func(token string) bool { return s.refusedBetas[token] != 0 })
}

// StrippedBetas are the tokens of the client's anthropic-beta lines that this
// platform is not sent although they change behaviour. Tokens that are dropped
// without loss are not among them.
func (s *Spec) StrippedBetas(lines []string) []string {
	if len(s.refusedBetas) == 0 {
		return nil
	}
	return slices.DeleteFunc(tokens(lines), func(token string) bool { return s.refusedBetas[token] != betaMatters })
}

func tokens(lines []string) (all []string) {
	for _, line := range lines {
		for token := range strings.SplitSeq(line, ",") {
			token = strings.Trim(token, " \t")
			if token != "" && !slices.Contains(all, token) {
				all = append(all, token)
			}
		}
	}
	return all
}

// allowed are the client's headers that a platform receives, besides what
// Headers sets and x-stainless-*.
var allowed = []string{
	"content-type", "accept", "user-agent", headerVersion, headerBeta, headerUserProfile,
	"anthropic-dangerous-direct-browser-access",
}

// AllowedClientHeader reports whether a platform receives the client's header of
// this name, which is in lower case. All else is removed, except what a target's
// forward_headers names. (Policy reference, fine print.)
func AllowedClientHeader(name string) bool {
	return slices.Contains(allowed, name) || strings.HasPrefix(name, "x-stainless-")
}
