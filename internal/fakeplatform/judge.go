package fakeplatform

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rules are what a server checks besides what its platform always checks.
type Rules struct {
	Keys      []string // accepted keys; none accepts every key
	Tokens    []string // accepted tokens of Google or, at foundry, of Entra; there none accepts no token
	AWS       []AWSKey // accepted for SigV4; none accepts no signature
	Models    []string // known models; none knows the reference's at bedrock, mantle and vertex, and every model elsewhere
	Workspace string   // the only one; "" accepts every one
	Region    string   // of AWS; "" accepts every one
	Project   string   // of Google; "" accepts every one
	Location  string   // of Google; "" accepts every one
	Hosting   string   // of foundry: azure, else anthropic
	Version   string   // anthropic_version in place of the platform's own
	BodyLimit int64    // above it 413; 0 is the platform's
	// BearerToo accepts a key as a bearer token (a client's own credential).
	BearerToo bool
	// Strict refuses at every platform what is unknown there: members, betas,
	// versions. bedrock, mantle and vertex always do.
	Strict bool
	// Betas are the only ones accepted; nil is the platform's own list.
	Betas []string
	// Refuse and Allow change which features (finder) the platform has.
	Refuse, Allow []string
	// CountModels are what bedrock counts tokens for; none is every base ID that
	// needs no profile.
	CountModels []string
	Files       map[string]File  // by ID
	Now         func() time.Time // of SigV4; nil is the clock
}

// judge returns why the platform refuses a request, with its answer; "" accepts.
func judge(platform string, rules Rules, r *Request) (string, Answer) {
	checks := []func(string, Rules, *Request) (string, Answer){checkPath, checkKey, checkHeaders, checkFraming, checkFile, checkBody}
	for _, check := range checks {
		if why, a := check(platform, rules, r); why != "" {
			a.Name = "refused: " + why
			return why, a
		}
	}
	return "", Answer{}
}

// front is the answer of what stands before the model: the cloud's own shape.
func front(platform string, status int, code, why string) (string, Answer) {
	switch platform {
	case Foundry:
		if strings.HasSuffix(code, "Exception") { // AWS's name for it
			code = ""
		}
		return why, AzureError(status, cmp.Or(code, strconv.Itoa(status)), why)
	case Bedrock, Mantle:
		return why, BedrockError(status, code, why)
	case Vertex, ClaudeOnGoogle:
		return why, GoogleError(status, why)
	}
	return why, Error(status, why)
}

// inner is the answer of the model's own layer: the Messages envelope, but at
// bedrock, which has one shape.
func inner(platform string, status int, why string) (string, Answer) {
	if platform == Bedrock {
		return front(platform, status, "", why)
	}
	return why, Error(status, why)
}

func checkPath(platform string, rules Rules, r *Request) (string, Answer) {
	c := r.call
	path := r.Path()
	switch {
	case c.op == opUnknown:
		return front(platform, 404, "UnknownOperationException", "Not found: "+path)
	case c.bad != "":
		return front(platform, 400, "", c.bad)
	case c.method() != "" && r.Method != c.method():
		return front(platform, 405, "", "Method not allowed: "+r.Method)
	case c.query != "" && (traitsOf[platform].version != "" || c.query != "beta=true") && c.op != opModels && c.op != opBatches:
		return inner(platform, 400, "unexpected query: "+c.query)
	case rules.Project != "" && c.project != rules.Project:
		return front(platform, 403, "", "Permission denied on resource project "+c.project+".")
	case rules.Location != "" && c.location != rules.Location:
		return front(platform, 404, "", "Not found: location "+c.location)
	case platform == Vertex && !vertexHost(r.Get("host"), c.location):
		return front(platform, 404, "", "Not found: location "+c.location+" at "+r.Get("host"))
	case platform == ClaudeOnGoogle && rules.Workspace != "" && c.workspace != rules.Workspace:
		return front(platform, 404, "", "workspace not found")
	}
	return "", Answer{}
}

func checkHeaders(platform string, rules Rules, r *Request) (string, Answer) {
	t := traitsOf[platform]
	if r.Count("host") != 1 {
		return inner(platform, 400, "not exactly one host")
	}
	if t.version == "" && r.Count("anthropic-version") != 1 {
		return inner(platform, 400, "anthropic-version: header is required")
	}
	if v := r.Get("anthropic-version"); v != "" && (t.strict || rules.Strict) && v != "2023-06-01" && v != "2026-10-21" {
		return inner(platform, 400, "anthropic-version: \""+v+"\" is not a valid version")
	}
	if t.version != "" && r.Count("anthropic-version") != 0 {
		return inner(platform, 400, "anthropic-version: the version is a member of the body")
	}
	if platform == Bedrock && r.Count("anthropic-beta") != 0 {
		return inner(platform, 400, "anthropic-beta: betas are a member of the body")
	}
	if r.Count("anthropic-beta") > 1 || (r.Count("anthropic-beta") == 1 && r.Get("anthropic-beta") == "") {
		return inner(platform, 400, "anthropic-beta: not one list")
	}
	if (platform == Bedrock || platform == Mantle) && r.Count("anthropic-user-profile-id") != 0 {
		return inner(platform, 400, "anthropic-user-profile-id: the user profile is a member of the body")
	}
	if r.Method == http.MethodPost && r.call.op != opBatches && !strings.HasPrefix(strings.ToLower(r.Get("content-type")), "application/json") {
		return inner(platform, 400, "content-type must be application/json")
	}
	if r.Count("content-encoding") != 0 && r.call.op != opBatches {
		return inner(platform, 400, "a content-encoding nobody asked for")
	}
	return checkWorkspace(platform, rules, r)
}

func checkWorkspace(platform string, rules Rules, r *Request) (string, Answer) {
	ws := r.Get("anthropic-workspace-id")
	switch {
	case platform == ClaudeOnAWS && (r.Count("anthropic-workspace-id") != 1 || ws == ""):
		return inner(platform, 400, "anthropic-workspace-id: header is required")
	case platform == ClaudeOnAWS && rules.Workspace != "" && ws != rules.Workspace:
		return inner(platform, 404, "workspace not found")
	case platform != ClaudeOnAWS && platform != Anthropic && r.Count("anthropic-workspace-id") != 0:
		return inner(platform, 400, "anthropic-workspace-id: the header means nothing here")
	}
	return "", Answer{}
}

// checkFraming: what goes through unbuffered (batches) may be chunked.
func checkFraming(platform string, rules Rules, r *Request) (string, Answer) {
	limit := cmp.Or(rules.BodyLimit, traitsOf[platform].body)
	chunked := r.Chunked || r.Count("transfer-encoding") != 0
	switch {
	case r.Method == http.MethodGet || r.call.op == opBatches:
		return "", Answer{}
	case chunked && platform == Vertex:
		return front(platform, 400, "", "Bad Request: a chunked body")
	case chunked:
		return inner(platform, 400, "a chunked body")
	case r.Count("content-length") != 1:
		return inner(platform, 400, "not exactly one content-length")
	case r.Get("content-length") != strconv.FormatInt(r.BodySize, 10):
		return inner(platform, 400, "content-length is not the body's length")
	case r.BodySize > limit && platform == Vertex:
		return front(platform, 413, "", "Request payload size exceeds the limit: "+strconv.FormatInt(limit, 10)+" bytes.")
	case r.BodySize > limit:
		return inner(platform, 413, "Request exceeds the maximum size")
	}
	return "", Answer{}
}

// has reports whether the platform takes an authorization of the way.
func (t traits) has(way string) bool { return slices.Contains(t.ways, way) }
