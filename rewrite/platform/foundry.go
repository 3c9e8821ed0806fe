package platform

// foundry is Microsoft Foundry. It knows models by deployment: the names here
// are the defaults, a target's `models` has the others. Its body limit is not
// documented; that of the API behind it is taken. Microsoft writes another scope
// (cognitiveservices.azure.com) than the SDKs, whose is this one.
var foundry = Spec{
	Name:       "foundry",
	Errors:     SchemaMessages | SchemaAzure,
	Scope:      "https://ai.azure.com/.default",
	BodyLimit:  32 * mib,
	ImageLimit: 10 * mib,

	host:    "{resource}.services.ai.azure.com",
	prefix:  "/anthropic",
	others:  []string{"/v1/files", "/v1/skills"},
	modelID: deployment,
}

// deployment is the default name. What Anthropic alone hosts has none on Azure.
func deployment(at Site, model string) (string, bool) {
	r, ok := byName[model]
	if !ok || r.foundry == "" || (at.Hosting == HostingAzure && r.foundryHosting == HostingAnthropic) {
		return "", false
	}
	return r.foundry, true
}
