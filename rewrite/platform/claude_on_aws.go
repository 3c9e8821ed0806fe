package platform

// claudeOnAWS is Claude Platform on AWS: the first-party API at another door. A
// workspace is bound to its region and goes out with every request. Model IDs
// are the first-party ones, also those that the table does not know.
var claudeOnAWS = Spec{
	Name:       "claude-on-aws",
	Errors:     SchemaMessages | SchemaAWS,
	SigV4:      "aws-external-anthropic",
	BodyLimit:  32 * mib,
	ImageLimit: 10 * mib,

	host:            "aws-external-anthropic.{region}.api.aws",
	others:          []string{"/v1/"},
	workspaceHeader: true,
	modelID:         asItIs,
}
