package platform

import "strings"

// Spec is one platform.
type Spec struct {
	Name string // as in the policy's `platform`
	// PathPrefix comes before the client's path.
	PathPrefix string
	// HostPattern is the host of the platform, with {region} and {resource} for
	// what the target says.
	HostPattern string
	// BodyLimit and ImageLimit are bytes: of a request body, and of one decoded
	// base64 image.
	BodyLimit  int64
	ImageLimit int64

	// workspaceHeader: the target's workspace goes out as anthropic-workspace-id.
	workspaceHeader bool
	// refusedBetas are the beta tokens that the platform is known to refuse.
	refusedBetas map[string]beta
	// modelID finds the platform's ID.
	modelID func(model string) (string, bool)
}

// beta says what the loss of a refused token means.
type beta uint8

const (
	betaMatters beta = iota + 1
	betaNoOp         // the token changes nothing any more: dropping it is lossless
)

const mib = 1 << 20

// Get is the platform with this name.
func Get(name string) (*Spec, bool) {
	for _, s := range [...]*Spec{&anthropic, &claudeOnAWS, &foundry} {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// Host is the platform's host for a region and a resource; a platform that has
// no use for one ignores it.
func (s *Spec) Host(region, resource string) string {
	return strings.NewReplacer("{region}", region, "{resource}", resource).Replace(s.HostPattern)
}
