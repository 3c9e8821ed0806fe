package platform

// anthropic is the first-party API. It takes a model that the table does not
// know as it is: it knows its models best.
var anthropic = Spec{
	Name:       "anthropic",
	Errors:     SchemaMessages,
	BodyLimit:  32 * mib,
	ImageLimit: 10 * mib,

	host:    "api.anthropic.com",
	others:  []string{"/v1/"},
	modelID: asItIs,
}
