package platform

import "strings"

// Spec is one platform. What the functions of this package make of a request
// follows from it; what a caller has to know is exported.
type Spec struct {
	Name string // as in the policy's `platform`
	// Stream is how the platform frames a stream.
	Stream Framing
	// Errors are the schemas in which its error bodies come.
	Errors Schema
	// SigV4 is the service name in signatures; "" where nothing is signed.
	SigV4 string
	// Scope is that of its access tokens; "" where it takes none.
	Scope string
	// BodyLimit and ImageLimit are bytes: of a request body as it is sent there,
	// and of one image as base64 text.
	BodyLimit  int64
	ImageLimit int64

	host      string            // with {region}, {resource}
	hostsAt   map[string]string // regions that have a host of their own form
	prefix    string            // before a first-party path, with {project}, {location}, {workspace}
	own       ownPaths          // in place of first-party paths
	others    []string          // how further first-party paths begin that it has
	notOthers []string          // of those, how the ones begin that it has not

	keyAsBearer     bool   // a key goes out as a bearer token
	workspaceHeader bool   // the target's workspace goes out as anthropic-workspace-id
	userProject     bool   // the project that pays goes out as x-goog-user-project
	contentType     string // what the platform insists on; "" leaves the client's
	accept          string // of an answer that is no stream; "" leaves the client's
	acceptStream    string // of a stream

	body bodyRules
	// modelID finds the platform's ID.
	modelID func(at Site, model string) (string, bool)
}

// bodyRules is what every request body must have changed, whatever is in it.
type bodyRules struct {
	version    string // member anthropic_version, and no header of that name
	noModel    bool   // the model is in the path
	noStream   bool   // so is whether it is a stream
	betas      bool   // betas are the member anthropic_beta, and no header
	profile    bool   // the user profile is the member user_profile_id, and no header
	countModel bool   // a count keeps the model all the same
	wrapCount  bool   // a count's body travels inside another one: WrapCount
}

// Framing is how a platform frames a stream.
type Framing uint8

// The framings: server-sent events, as the client expects them, and AWS's.
const (
	SSE Framing = iota
	EventStream
)

// Schema is a set of schemas for error bodies.
type Schema uint8

// The schemas. Where a platform has more than one, its front end speaks the
// cloud's and the model's layer the first-party one.
const (
	SchemaMessages Schema = 1 << iota // {"type":"error","error":{"type","message"}}
	SchemaAWS                         // {"message"}, the type in x-amzn-errortype, code or __type
	SchemaGoogle                      // {"error":{"code":429,"message","status"}}, also in an array of one
	SchemaAzure                       // {"error":{"code":"401","message"}} or {"statusCode","message"}
)

// Has reports whether the set has one of the schemas of other.
func (s Schema) Has(other Schema) bool { return s&other != 0 }

// Site is where a target is at its platform, as the policy says it; "" is what
// the platform has not.
type Site struct {
	Region    string // AWS region, or Vertex AI location
	Project   string
	Location  string // claude-on-google; "" is global
	Workspace string
	Resource  string
	Profile   string // ProfileGeo, ProfileGlobal or ProfileNone; "" is ProfileGeo
	Hosting   string // HostingAnthropic or HostingAzure; "" is HostingAnthropic
}

// The profiles and hostings of a Site, in the policy's words.
const (
	ProfileGeo    = "geo"
	ProfileGlobal = "global"
	ProfileNone   = "none"

	HostingAnthropic = "anthropic"
	HostingAzure     = "azure"
)

// mib is what the platforms' documents call a MB, as the policy's defaults do.
const mib = 1 << 20

// specs are the platforms in the order of the documentation.
var specs = [...]*Spec{&anthropic, &claudeOnAWS, &claudeOnGoogle, &bedrock, &mantle, &vertex, &foundry}

// Get is the platform with this name.
func Get(name string) (*Spec, bool) {
	for _, s := range specs {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// Names are the platforms' names, in the order of the documentation. The slice
// is the caller's.
func Names() []string {
	names := make([]string, 0, len(specs))
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// Host is the platform's host for a site, without a port. What makes it up must
// be labels of a host name: the policy checks that.
func (s *Spec) Host(at Site) string {
	if host, ok := s.hostsAt[at.Region]; ok {
		return host
	}
	return strings.NewReplacer("{region}", at.Region, "{resource}", at.Resource).Replace(s.host)
}
