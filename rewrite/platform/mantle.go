package platform

// mantle is the Messages API of Amazon Bedrock. It drops headers that it does
// not know, so a user profile goes into the body. Whether it reads the header
// anthropic-beta is not documented; the SDKs send it.
var mantle = Spec{
	Name:       "mantle",
	Errors:     SchemaMessages | SchemaAWS,
	SigV4:      "bedrock-mantle",
	BodyLimit:  20 * mib,
	ImageLimit: 5 * mib,

	host:        "bedrock-mantle.{region}.api.aws",
	prefix:      "/anthropic",
	keyAsBearer: true,
	body:        bodyRules{profile: true},
	modelID:     mantleID,
}

func mantleID(_ Site, model string) (string, bool) {
	r, ok := byName[model]
	if !ok || r.mantle == "" {
		return "", false
	}
	return r.mantle, true
}
