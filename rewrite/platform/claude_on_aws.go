package platform

// claudeOnAWS is Claude Platform on AWS: the first-party API at another door. A
// workspace is bound to its region and goes out with every request. Model IDs
// are the first-party ones, also those that the table does not know.
var claudeOnAWS = Spec{
	Name:            "claude-on-aws",
	HostPattern:     "aws-external-anthropic.{region}.api.aws",
	BodyLimit:       32 * mib,
	ImageLimit:      10 * mib,
	workspaceHeader: true,
	modelID:         asItIs,
}
