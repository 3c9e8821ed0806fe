package platform

// vertex is Claude on Vertex AI, the one that Google manages: the model in the
// path, except where tokens are counted. The member stream stays: it must agree
// with the path.
var vertex = Spec{
	Name:       "vertex",
	Errors:     SchemaMessages | SchemaGoogle,
	Scope:      googleScope,
	BodyLimit:  30 * mib,
	ImageLimit: 5 * mib,

	host: "{region}-aiplatform.googleapis.com",
	hostsAt: map[string]string{
		"global": "aiplatform.googleapis.com",
		"us":     "aiplatform.us.rep.googleapis.com",
		"eu":     "aiplatform.eu.rep.googleapis.com",
	},
	own: ownPaths{
		messages:    vertexModels + "{model}:rawPredict",
		stream:      vertexModels + "{model}:streamRawPredict",
		countTokens: vertexModels + "count-tokens:rawPredict",
	},
	keyAsBearer: true,
	userProject: true,
	contentType: "application/json",
	body:        bodyRules{version: "vertex-2023-10-16", noModel: true, countModel: true},
	modelID:     vertexID,
}

const vertexModels = "/v1/projects/{project}/locations/{region}/publishers/anthropic/models/"

func vertexID(_ Site, model string) (string, bool) {
	r, ok := byName[model]
	if !ok || r.vertex == "" {
		return "", false
	}
	return r.vertex, true
}
