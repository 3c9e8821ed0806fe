package platform

import (
	"slices"
	"strings"
)

// bedrock is InvokeModel of Amazon Bedrock: the model in the path, streams in
// AWS's framing. anthropic_version is the old one whatever version the client
// speaks: the new one is refused by the models with an ARN version. Countries
// that AWS runs as partitions of their own (China) have no Claude; GovCloud's
// regions have the same hosts as all others.
var bedrock = Spec{
	Name:       "bedrock",
	Stream:     EventStream,
	Errors:     SchemaAWS,
	SigV4:      "bedrock",
	BodyLimit:  20 * mib,
	ImageLimit: 5 * mib,

	host: "bedrock-runtime.{region}.amazonaws.com",
	own: ownPaths{ //nolint:gosec // paths, no credentials
		messages:    "/model/{model}/invoke",
		stream:      "/model/{model}/invoke-with-response-stream",
		countTokens: "/model/{model}/count-tokens",
		countID:     withoutProfile,
	},
	keyAsBearer:  true,
	contentType:  "application/json",
	accept:       "application/json",
	acceptStream: "application/vnd.amazon.eventstream",
	body: bodyRules{
		version: "bedrock-2023-05-31", noModel: true, noStream: true, betas: true, profile: true, wrapCount: true,
	},
	modelID: bedrockID,
}

// profilePrefixes are those that an inference profile's ID may begin with.
var profilePrefixes = []string{"global", "us", "eu", "jp", "au", "apac", "us-gov"}

// geographies says which inference profiles keep a request in the geography of
// its region: the narrowest first. A region that is not listed has none, since a
// profile of another geography is never taken without being asked for: what
// Canada, South America, Africa, the Middle East or New Zealand may use is in
// another country's geography, and the isolated and sovereign partitions
// (us-iso*, eu-isoe-*, eusc-*), whose names begin like these, are apart.
var geographies = []struct {
	regions  []string
	prefixes []string
}{
	// GovCloud is a partition of its own: what runs there stays there.
	{[]string{"us-gov-east-1", "us-gov-west-1"}, []string{"us-gov"}},
	{[]string{"us-east-1", "us-east-2", "us-west-1", "us-west-2"}, []string{"us"}},
	// AWS's Europe: London and Zurich are in it, as their names say.
	{[]string{"eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3"}, []string{"eu"}},
	// Tokyo and Osaka: in Japan where the model has that, else in Asia-Pacific, of
	// which Japan is a part.
	{[]string{"ap-northeast-1", "ap-northeast-3"}, []string{"jp", "apac"}},
	// Sydney and Melbourne, likewise.
	{[]string{"ap-southeast-2", "ap-southeast-4"}, []string{"au", "apac"}},
	// Seoul, Mumbai, Hyderabad, Singapore.
	{[]string{"ap-northeast-2", "ap-south-1", "ap-south-2", "ap-southeast-1"}, []string{"apac"}},
}

// bedrockID is the base ID, or one of its inference profiles. A profile that the
// table does not list for the model does not exist.
func bedrockID(at Site, model string) (string, bool) {
	r, ok := byName[model]
	if !ok || r.bedrock == "" {
		return "", false
	}
	var prefixes []string
	switch at.Profile {
	case ProfileNone:
		return r.bedrock, true
	case ProfileGlobal:
		prefixes = []string{"global"}
	case ProfileGeo, "":
		prefixes = geography(at.Region)
	}
	for _, prefix := range prefixes {
		if slices.Contains(r.profiles, prefix) {
			return prefix + "." + r.bedrock, true
		}
	}
	return "", false
}

func geography(region string) []string {
	for _, g := range geographies {
		if slices.Contains(g.regions, region) {
			return g.prefixes
		}
	}
	return nil
}

// withoutProfile is the base ID of an inference profile. CountTokens takes base
// IDs only, also of models that can be invoked through a profile only
// (Boise-State-Development/agentcore-public-stack#430, pydantic/pydantic-ai#4001).
func withoutProfile(id string) string {
	prefix, base, ok := strings.Cut(id, ".")
	if ok && slices.Contains(profilePrefixes, prefix) {
		return base
	}
	return id
}
