package platform

// foundry is Microsoft Foundry. It knows models by deployment: the names here
// are the defaults, a target's `models` has the others. Its body limit is not
// documented; that of the API behind it is taken.
var foundry = Spec{
	Name:        "foundry",
	PathPrefix:  "/anthropic",
	HostPattern: "{resource}.services.ai.azure.com",
	BodyLimit:   32 * mib,
	ImageLimit:  10 * mib,
	modelID:     deployment,
	refusedBetas: map[string]beta{
		"advisor-tool-2026-03-01":                betaMatters,
		"compact-2026-01-12":                     betaMatters,
		"fast-mode-2026-02-01":                   betaMatters,
		"fine-grained-tool-streaming-2025-05-14": betaMatters,
		"output-128k-2025-02-19":                 betaNoOp,
		"thinking-binding-controls-2026-08-01":   betaMatters,
		"token-efficient-tools-2025-02-19":       betaNoOp,
	},
}
