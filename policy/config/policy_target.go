package config

import (
	"net"
	"strconv"
	"time"
)

// The platforms that this build speaks to.
const (
	PlatformAnthropic      = "anthropic"
	PlatformClaudeOnAWS    = "claude-on-aws"
	PlatformClaudeOnGoogle = "claude-on-google"
	PlatformBedrock        = "bedrock"
	PlatformMantle         = "mantle"
	PlatformVertex         = "vertex"
	PlatformFoundry        = "foundry"
)

// Auth is how a target's requests are authenticated.
type Auth string

// The auth values: a static key, AWS signatures, Google's and Azure's access
// tokens.
const (
	AuthKey   Auth = "key"
	AuthSigV4 Auth = "sigv4"
	AuthADC   Auth = "adc"
	AuthEntra Auth = "entra"
)

// Profile says which inference profiles of Bedrock may be used.
type Profile string

// The profiles: of the region's geography, worldwide, none.
const (
	ProfileGeo    Profile = "geo"
	ProfileGlobal Profile = "global"
	ProfileNone   Profile = "none"
)

// Hosting says who hosts a Foundry deployment.
type Hosting string

// The hosting values.
const (
	HostingAnthropic Hosting = "anthropic"
	HostingAzure     Hosting = "azure"
)

// FeatureAction is what a policy says about a feature, over the built-in table.
type FeatureAction string

// The feature actions: as it is, without it, not to this target.
const (
	FeatureKeep   FeatureAction = "keep"
	FeatureStrip  FeatureAction = "strip"
	FeatureRefuse FeatureAction = "refuse"
)

// Target is one configured way to reach models. Its address is stable for the
// life of a Policy: compare targets by pointer, name them by Name.
type Target struct {
	Name     string
	Platform string
	Endpoint Endpoint
	// PathPrefix comes before the client's path, e.g. "/anthropic"; "" also where
	// the platform has paths of its own.
	PathPrefix     string
	CAFile         string // "" is the system's bundle
	ConnectTimeout time.Duration

	// Where at the platform; "" what it does not have.
	Region    string
	Profile   Profile
	Project   string
	Location  string
	Workspace string
	Resource  string
	Hosting   Hosting

	Auth Auth
	// Keys has at least one. What the platform's own chain of credentials gives
	// (KeyAWS, KeyGoogle, KeyEntra) is one key; so is a token in place of ADC
	// (KeyEnv or KeyFile, with AuthADC).
	Keys           []Key
	ForwardHeaders []string // lower case, in the file's order
	Models         []ModelRule
	// Features is over the built-in table, by the feature's name; use FeaturesFor.
	Features map[string]FeatureAction
	// FetchFiles lets files of this target's workspace be sent to other targets.
	FetchFiles     bool
	Limits         TargetLimits
	Labels         map[string]string
	Degraded       bool
	MaxConcurrency int // 0 is no limit

	// builtin resolves a model that Models does not name.
	builtin func(model string) (string, bool)
}

// Endpoint is where a target listens.
type Endpoint struct {
	Host string
	Port int
	TLS  bool
}

// Authority is the host header: the port only when it is not the scheme's own.
func (e Endpoint) Authority() string {
	if (e.TLS && e.Port == 443) || (!e.TLS && e.Port == 80) {
		if ip := net.ParseIP(e.Host); ip != nil && ip.To4() == nil {
			return "[" + e.Host + "]"
		}
		return e.Host
	}
	return net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
}

// URL is scheme, host and port, without a path.
func (e Endpoint) URL() string {
	if e.TLS {
		return "https://" + e.Authority()
	}
	return "http://" + e.Authority()
}

// TargetLimits are checked while planning; 0 is not checked.
type TargetLimits struct {
	Body        int64
	Image       int64
	InputTokens int64
}

// KeySource says where a key's value is.
type KeySource uint8

// The key sources. A passthrough key is the client's own credential; the last
// three stand for what AWS's, Google's and Azure's chains of credentials give.
const (
	KeyEnv KeySource = iota
	KeyFile
	KeyPassthrough
	KeyAWS
	KeyGoogle
	KeyEntra
)

// Key is the place of one credential, never its value.
type Key struct {
	Source KeySource
	Name   string // variable name or path; "" for the other sources
}

// Place is how trail, logs and metrics name the key.
func (k Key) Place() string {
	switch k.Source {
	case KeyFile:
		return "file:" + k.Name
	case KeyPassthrough:
		return "passthrough"
	case KeyAWS:
		return string(AuthSigV4)
	case KeyGoogle:
		return string(AuthADC)
	case KeyEntra:
		return string(AuthEntra)
	case KeyEnv:
	}
	return "env:" + k.Name
}

// Passthrough reports whether the target sends the client's own credential.
func (t *Target) Passthrough() bool {
	for _, k := range t.Keys {
		if k.Source == KeyPassthrough {
			return true
		}
	}
	return false
}

// ModelRule maps a client's model, or a glob over it, to the platform's ID.
type ModelRule struct {
	Model string
	ID    string
	// Features are the target's with this model's own over them.
	Features map[string]FeatureAction
}

// ModelID is the ID that this target's platform knows the client's model by:
// its own rules first (exact, then globs in the file's order), then the
// built-in table. ok is false when the target has no ID for the model.
func (t *Target) ModelID(model string) (id string, ok bool) {
	if r := t.rule(model); r != nil {
		return r.ID, true
	}
	if t.builtin == nil {
		return "", false
	}
	return t.builtin(model)
}

// FeaturesFor is what the policy says about features for the client's model,
// over the built-in table. The map is the policy's: it is only read.
func (t *Target) FeaturesFor(model string) map[string]FeatureAction {
	if r := t.rule(model); r != nil {
		return r.Features
	}
	return t.Features
}

func (t *Target) rule(model string) *ModelRule {
	for i := range t.Models {
		if t.Models[i].Model == model {
			return &t.Models[i]
		}
	}
	for i := range t.Models {
		if Glob(t.Models[i].Model, model) {
			return &t.Models[i]
		}
	}
	return nil
}
