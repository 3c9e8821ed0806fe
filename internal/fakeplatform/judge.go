package fakeplatform

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The platforms that can be imitated.
const (
	Anthropic   = "anthropic"
	ClaudeOnAWS = "claude-on-aws"
	Foundry     = "foundry"
)

// Rules are what a server checks besides what its platform always checks.
type Rules struct {
	Keys      []string // accepted keys; none accepts every key
	Models    []string // known models; none knows every model
	Workspace string   // claude-on-aws: the only workspace; "" accepts every one
	BodyLimit int64    // above it 413; 0 is 32 MiB and a little
	// BearerToo accepts a key as a bearer token (a client's own credential).
	BearerToo bool
}

// judge returns why the platform refuses a request, with its answer; "" accepts.
func judge(platform string, rules Rules, r *Request) (string, Answer) {
	for _, check := range []func(string, Rules, *Request) (string, Answer){checkPath, checkKey, checkHeaders, checkFraming, checkBody} {
		if why, a := check(platform, rules, r); why != "" {
			a.Name = "refused: " + why
			return why, a
		}
	}
	return "", Answer{}
}

// refuse is the answer of the layer that refuses: Azure's own in front of
// Foundry for what its gateway checks, else the Messages envelope.
func refuse(platform string, status int, code, why string) (string, Answer) {
	if platform == Foundry && code != "" {
		return why, AzureError(status, code, why)
	}
	return why, Error(status, why)
}

func checkPath(platform string, _ Rules, r *Request) (string, Answer) {
	prefix := ""
	if platform == Foundry {
		prefix = "/anthropic"
	}
	path, query, _ := strings.Cut(r.Target, "?")
	rest, ok := strings.CutPrefix(path, prefix)
	messages := rest == "/v1/messages" || rest == "/v1/messages/count_tokens"
	listing := rest == "/v1/models" && platform != Foundry
	switch {
	case !ok || (!messages && !listing):
		return refuse(platform, 404, "404", "Not found: "+path)
	case messages && r.Method != http.MethodPost, listing && r.Method != http.MethodGet:
		return refuse(platform, 405, "405", "Method not allowed: "+r.Method)
	case query != "" && query != "beta=true":
		return refuse(platform, 400, "", "unexpected query: "+query)
	}
	return "", Answer{}
}

func checkKey(platform string, rules Rules, r *Request) (string, Answer) {
	key, auth := r.Get("x-api-key"), r.Get("authorization")
	switch {
	case r.Count("x-api-key")+r.Count("authorization")+r.Count("api-key") > 1:
		return refuse(platform, 401, "401", "more than one credential")
	case r.Count("api-key") == 1:
		return refuse(platform, 401, "401", "api-key is not what a gateway sends")
	case auth != "" && (!rules.BearerToo || platform == Foundry):
		return refuse(platform, 401, "401", "a key must come as x-api-key")
	case auth != "":
		token, ok := strings.CutPrefix(auth, "Bearer ")
		if !ok {
			return refuse(platform, 401, "401", "authorization is not a bearer token")
		}
		key = token
	}
	if key == "" {
		return refuse(platform, 401, "401", "x-api-key header is required")
	}
	if len(rules.Keys) > 0 && !slices.Contains(rules.Keys, key) {
		return refuse(platform, 401, "401", "invalid x-api-key")
	}
	return "", Answer{}
}

func checkHeaders(platform string, rules Rules, r *Request) (string, Answer) {
	switch {
	case r.Count("host") != 1:
		return refuse(platform, 400, "", "not exactly one host")
	case r.Count("anthropic-version") != 1:
		return refuse(platform, 400, "", "anthropic-version: header is required")
	case r.Count("anthropic-beta") > 1 || (r.Count("anthropic-beta") == 1 && r.Get("anthropic-beta") == ""):
		return refuse(platform, 400, "", "anthropic-beta: not one list")
	case r.Method == http.MethodPost && !strings.HasPrefix(strings.ToLower(r.Get("content-type")), "application/json"):
		return refuse(platform, 400, "", "content-type must be application/json")
	case r.Count("content-encoding") != 0:
		return refuse(platform, 400, "", "a content-encoding nobody asked for")
	}
	if platform != ClaudeOnAWS {
		return "", Answer{}
	}
	ws := r.Get("anthropic-workspace-id")
	switch {
	case r.Count("anthropic-workspace-id") != 1 || ws == "":
		return refuse(platform, 400, "", "anthropic-workspace-id: header is required")
	case rules.Workspace != "" && ws != rules.Workspace:
		return refuse(platform, 404, "", "workspace not found")
	}
	return "", Answer{}
}

func checkFraming(platform string, rules Rules, r *Request) (string, Answer) {
	limit := rules.BodyLimit
	if limit == 0 {
		limit = 32<<20 + 1024
	}
	switch {
	case r.Method == http.MethodGet:
		return "", Answer{}
	case r.Chunked || r.Count("transfer-encoding") != 0:
		return refuse(platform, 400, "", "a chunked body")
	case r.Count("content-length") != 1:
		return refuse(platform, 400, "", "not exactly one content-length")
	case r.Get("content-length") != strconv.FormatInt(r.BodySize, 10):
		return refuse(platform, 400, "", "content-length is not the body's length")
	case r.BodySize > limit:
		return refuse(platform, 413, "", "Request exceeds the maximum size")
	}
	return "", Answer{}
}

func checkBody(platform string, rules Rules, r *Request) (string, Answer) {
	switch {
	case r.Method == http.MethodGet:
		return "", Answer{}
	case r.Model == "":
		return refuse(platform, 400, "", "model: Field required")
	case len(rules.Models) > 0 && !slices.Contains(rules.Models, r.Model):
		if platform == Foundry {
			return refuse(platform, 404, "DeploymentNotFound", "The API deployment for this resource does not exist.")
		}
		return refuse(platform, 404, "", "model: "+r.Model)
	}
	return "", Answer{}
}
