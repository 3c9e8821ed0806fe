package platform

import (
	"slices"
	"strings"

	"github.com/crossdoor/crossdoor/rewrite"
)

// The headers that platforms set, in the order in which Headers lists them.
const (
	headerPath           = ":path"
	headerAuthority      = ":authority"
	headerAPIKey         = "x-api-key"
	headerAuthorization  = "authorization"
	headerAzureKey       = "api-key"
	headerAmzDate        = "x-amz-date"
	headerAmzToken       = "x-amz-security-token" //nolint:gosec // a name, no credential
	headerAmzHash        = "x-amz-content-sha256"
	headerUserProject    = "x-goog-user-project"
	headerVersion        = "anthropic-version"
	headerBeta           = "anthropic-beta"
	headerWorkspace      = "anthropic-workspace-id"
	headerUserProfile    = "anthropic-user-profile-id"
	headerContentType    = "content-type"
	headerAccept         = "accept"
	headerAcceptEncoding = "accept-encoding"
)

// DefaultVersion is the anthropic-version of a client that sends none: what it
// expects is what there was before it had a choice.
const DefaultVersion = "2023-06-01"

// Auth is how an attempt authenticates.
type Auth uint8

// The ways. A key goes where the platform wants keys. A token is Google's or
// Entra's: always a bearer. Signed is SigV4: the signer's headers are put in
// with Set afterwards. Passthrough sends the client's own credential.
const (
	AuthKey Auth = iota
	AuthToken
	AuthSigned
	AuthPassthrough
)

// Call is what the headers of one attempt, and the changes to its body, are made
// from. What the client did not send is "".
type Call struct {
	Operation Operation
	Path      string // the platform's, by Spec.Path
	Authority string // the target's host, with its port where it is not the scheme's
	Model     string // the platform's ID
	Stream    bool   // the client asks for a stream

	Auth       Auth
	Secret     string // of AuthKey and AuthToken
	Credential ClientCredential
	Workspace  string // the target's
	// UserProject is the Google Cloud project that pays; "" leaves it to Google.
	UserProject string

	Version     string   // the client's anthropic-version
	Betas       []string // tokens that the platform takes: rewrite.Fit has them
	UserProfile string   // the client's anthropic-user-profile-id
	ContentType string   // the client's content-type
	Accept      string   // the client's accept
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
	apiKey, authorization := s.credential(c)
	var version, betas, profile, workspace, project string
	if s.body.version == "" {
		version = or(c.Version, DefaultVersion)
	}
	if !s.body.betas {
		betas = strings.Join(rewrite.Tokens(c.Betas), ",")
	}
	if !s.body.profile {
		profile = c.UserProfile
	}
	if s.workspaceHeader {
		workspace = c.Workspace
	}
	if s.userProject {
		project = c.UserProject
	}
	accept := s.accept
	if c.Operation == Messages && c.Stream {
		accept = s.acceptStream
	}
	return []Header{
		{headerPath, c.Path},
		{headerAuthority, c.Authority},
		{headerAPIKey, apiKey},
		{headerAuthorization, authorization},
		{headerAzureKey, ""},
		{headerAmzDate, ""},
		{headerAmzToken, ""},
		{headerAmzHash, ""},
		{headerUserProject, project},
		{headerVersion, version},
		{headerBeta, betas},
		{headerWorkspace, workspace},
		{headerUserProfile, profile},
		{headerContentType, or(s.contentType, c.ContentType)},
		{headerAccept, or(accept, c.Accept)},
		{headerAcceptEncoding, "identity"},
	}
}

// Set gives a header of the list its value and reports whether the list has it:
// a signature may only have headers that every other attempt removes.
func Set(list []Header, name, value string) bool {
	for i := range list {
		if list[i].Name == name {
			list[i].Value = value
			return true
		}
	}
	return false
}

func or(value, instead string) string {
	if value == "" {
		return instead
	}
	return value
}

// credential is one of the two, never both. The client's own goes out in the
// header it came in; of a client that sent both, the key is the platform's: the
// other may well be meant for the ingress.
func (s *Spec) credential(c Call) (apiKey, authorization string) {
	switch {
	case c.Auth == AuthSigned:
		return "", ""
	case c.Auth == AuthPassthrough && c.Credential.APIKey != "":
		return c.Credential.APIKey, ""
	case c.Auth == AuthPassthrough:
		return "", c.Credential.Authorization
	case c.Secret == "":
		return "", ""
	case c.Auth == AuthToken || s.keyAsBearer:
		return "", "Bearer " + c.Secret
	}
	return c.Secret, ""
}

// allowed are the client's headers that a platform receives, besides what
// Headers sets and x-stainless-*.
var allowed = []string{
	headerContentType, headerAccept, "user-agent", headerVersion, headerBeta, headerUserProfile,
	"anthropic-dangerous-direct-browser-access",
}

// AllowedClientHeader reports whether a platform receives the client's header of
// this name, which is in lower case. All else is removed, except what a target's
// forward_headers names. (Policy reference, fine print.)
func AllowedClientHeader(name string) bool {
	return slices.Contains(allowed, name) || strings.HasPrefix(name, "x-stainless-")
}
