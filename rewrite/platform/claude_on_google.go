package platform

// claudeOnGoogle is Claude Platform on Google Cloud, the one that Anthropic
// manages: first-party paths below the workspace's own. Its body limit is not
// documented; that of the API behind it is taken.
var claudeOnGoogle = Spec{
	Name:       "claude-on-google",
	Errors:     SchemaMessages | SchemaGoogle,
	Scope:      googleScope,
	BodyLimit:  32 * mib,
	ImageLimit: 10 * mib,

	host:        "claude.googleapis.com",
	prefix:      "/v1/projects/{project}/locations/{location}/workspaces/{workspace}/invoke",
	others:      []string{"/v1/"},
	notOthers:   []string{"/v1/complete"},
	keyAsBearer: true,
	userProject: true,
	modelID:     asItIs,
}

const googleScope = "https://www.googleapis.com/auth/cloud-platform"
