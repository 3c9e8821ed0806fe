package fakeplatform

import (
	"net/http"
	"net/url"
	"strings"
)

// operation is what a path asks for.
type operation uint8

const (
	opUnknown operation = iota
	opMessages
	opCount
	opModels
	opModel
	opBatches
	opFile
	opFileContent
)

// call is a request target taken apart.
type call struct {
	op     operation
	model  string // of the path, decoded
	stream bool   // by the path
	query  string
	// project, location and workspace as far as the path has them.
	project, location, workspace string
	id                           string // of a file
	bad                          string // why the path's model cannot be read
}

// method is what the operation is asked for with; "" is any.
func (c call) method() string {
	switch c.op {
	case opMessages, opCount:
		return http.MethodPost
	case opModels, opModel, opFile, opFileContent:
		return http.MethodGet
	}
	return ""
}

func parseCall(platform, target string) call {
	path, query, _ := strings.Cut(target, "?")
	var c call
	switch platform {
	case Bedrock:
		c = bedrockCall(path)
	case Vertex:
		c = vertexCall(path)
	case ClaudeOnGoogle:
		c = googleCall(path)
	case Foundry, Mantle:
		if rest, ok := strings.CutPrefix(path, "/anthropic"); ok {
			c = firstPartyCall(rest)
		}
		if c.op == opModels || c.op == opModel || c.op == opBatches || platform == Mantle && (c.op == opFile || c.op == opFileContent) {
			c = call{}
		}
	default:
		c = firstPartyCall(path)
	}
	c.query = query
	return c
}

func firstPartyCall(path string) call {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return call{}
	}
	parts := strings.Split(rest, "/")
	switch {
	case rest == "messages":
		return call{op: opMessages}
	case rest == "messages/count_tokens":
		return call{op: opCount}
	case rest == "messages/batches", len(parts) <= 4 && strings.HasPrefix(rest, "messages/batches/"):
		return call{op: opBatches}
	case rest == "models":
		return call{op: opModels}
	case len(parts) == 2 && parts[0] == "models":
		return call{op: opModel, model: parts[1]}
	case len(parts) == 2 && parts[0] == "files":
		return call{op: opFile, id: parts[1]}
	case len(parts) == 3 && parts[0] == "files" && parts[2] == "content":
		return call{op: opFileContent, id: parts[1]}
	}
	return call{}
}

// bedrockCall reads /model/{id}/{operation}; the ID is one segment.
func bedrockCall(path string) call {
	parts := strings.Split(path, "/")
	if len(parts) != 4 || parts[1] != "model" {
		return call{}
	}
	var c call
	switch parts[3] {
	case "invoke":
		c.op = opMessages
	case "invoke-with-response-stream":
		c.op, c.stream = opMessages, true
	case "count-tokens":
		c.op = opCount
	default:
		return call{}
	}
	c.model, c.bad = segment(parts[2], ":")
	return c
}

// vertexCall reads the path of a publisher's model; the specifier after the last
// colon must not be encoded.
func vertexCall(path string) call {
	parts := strings.Split(path, "/")
	if len(parts) != 10 || parts[1] != "v1" || parts[2] != "projects" || parts[4] != "locations" || parts[6] != "publishers" || parts[7] != "anthropic" || parts[8] != "models" {
		return call{}
	}
	c := call{project: parts[3], location: parts[5]}
	model, specifier, _ := strings.Cut(parts[9], ":")
	switch {
	case model == "count-tokens" && specifier == "rawPredict":
		c.op = opCount
		return c
	case specifier == "rawPredict":
		c.op = opMessages
	case specifier == "streamRawPredict":
		c.op, c.stream = opMessages, true
	default:
		return call{}
	}
	c.model, c.bad = segment(model, "@")
	return c
}

// googleCall reads a first-party path below its workspace.
func googleCall(path string) call {
	parts := strings.SplitN(path, "/", 10)
	if len(parts) != 10 || parts[1] != "v1" || parts[2] != "projects" || parts[4] != "locations" || parts[6] != "workspaces" || parts[8] != "invoke" {
		return call{}
	}
	c := firstPartyCall("/" + parts[9])
	c.project, c.location, c.workspace = parts[3], parts[5], parts[7]
	return c
}

// segment decodes one path segment. raw are the characters that may stand
// unencoded besides the unreserved ones.
func segment(s, raw string) (string, string) {
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~%"+raw, c) >= 0
		if !plain {
			return s, "a character of the model in the path is not encoded"
		}
	}
	model, err := url.PathUnescape(s)
	switch {
	case err != nil:
		return s, "the model in the path is not well encoded"
	case model == "" || model == "." || model == "..":
		return model, "the path has no model"
	}
	return model, ""
}
