package platform

import (
	"errors"
	"slices"
	"strings"
)

// ownPaths are a platform's paths where they are not the first-party ones, with
// {project}, {region}, {model}. All are set or none.
type ownPaths struct {
	messages    string
	stream      string
	countTokens string
	// countID is the ID that counts; nil is the model's.
	countID func(id string) string
}

// Operation is what a request asks for, by its path.
type Operation uint8

// The operations. Other is whatever first-party path is neither.
const (
	Other Operation = iota
	Messages
	CountTokens
)

// OperationOf is the operation of a client's :path; a query does not matter.
func OperationOf(path string) Operation {
	bare, _, _ := strings.Cut(path, "?")
	switch bare {
	case "/v1/messages":
		return Messages
	case "/v1/messages/count_tokens":
		return CountTokens
	}
	return Other
}

// Why there is no path.
var (
	// ErrModelID is an ID that cannot stand in a path.
	ErrModelID = errors.New("the model ID is empty, or has characters that cannot be part of a path")
	// ErrNoPath is a path that the platform does not have.
	ErrNoPath = errors.New("the platform has no such path")
)

// CheckModel reports, with ErrModelID, an ID that no path of the platform may
// hold. A platform that takes the model in the body takes any.
func (s *Spec) CheckModel(id string) error {
	if s.own.messages != "" && !segment(id) {
		return ErrModelID
	}
	return nil
}

// Path is the platform's :path for a client's. model is the platform's ID;
// stream says that a Messages request asks for a stream. A first-party path
// keeps its query, whatever it is; a platform's own has none, since a query
// there is only a marker that first-party paths know (beta=true). The error is
// ErrModelID or ErrNoPath.
func (s *Spec) Path(at Site, path, model string, stream bool) (string, error) {
	op := OperationOf(path)
	if op == Other && !s.Serves(at, path) {
		return "", ErrNoPath
	}
	if s.own.messages == "" {
		return fill(s.prefix, at, "") + path, nil
	}
	pattern := s.own.messages
	switch {
	case op == CountTokens:
		pattern = s.own.countTokens
		if s.own.countID != nil {
			model = s.own.countID(model)
		}
	case stream:
		pattern = s.own.stream
	}
	if strings.Contains(pattern, "{model}") && !segment(model) {
		return "", ErrModelID
	}
	return fill(pattern, at, model), nil
}

// neverServed are first-party paths that are of an organisation, not of its
// requests: no platform's credential goes there (contract, `other_paths`).
var neverServed = []string{"/v1/organizations", "/v1/user_profiles"}

// Serves reports whether the platform has a path at all, besides what its
// target's policy allows. A query does not matter. Paths with empty, `.` or `..`
// segments, or with escapes, are nobody's: they may mean another one.
func (s *Spec) Serves(at Site, path string) bool {
	if OperationOf(path) != Other {
		return true
	}
	bare, _, _ := strings.Cut(path, "?")
	if at.Hosting == HostingAzure || !clean(bare) || under(bare, neverServed) || under(bare, s.notOthers) {
		return false
	}
	return under(bare, s.others)
}

// under reports whether path is one of the paths or below one. A path that ends
// in a slash stands for what is below it only.
func under(path string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		rest, ok := strings.CutPrefix(path, p)
		return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(p, "/"))
	})
}

// clean reports whether a path has only characters that IDs, ARNs and paths of
// the API are made of, and only segments that are names: nothing that a proxy or
// the platform could take for something else, however it is escaped.
func clean(path string) bool {
	for i := range len(path) {
		if c := path[i]; !unreserved(c) && c != '/' && c != ':' && c != '@' {
			return false
		}
	}
	if path == "" || path[0] != '/' {
		return false
	}
	for piece := range strings.SplitSeq(path[1:], "/") {
		if piece == "" || piece == "." || piece == ".." {
			return false
		}
	}
	return true
}

// fill puts the site and the model into a pattern, each as one segment.
func fill(pattern string, at Site, model string) string {
	if !strings.Contains(pattern, "{") {
		return pattern
	}
	location := at.Location
	if location == "" {
		location = "global"
	}
	return strings.NewReplacer(
		"{project}", escape(at.Project), "{location}", escape(location), "{region}", escape(at.Region),
		"{workspace}", escape(at.Workspace), "{model}", escape(model),
	).Replace(pattern)
}

// segment reports whether an ID may become a segment of a path.
func segment(id string) bool { return clean("/" + id) }

// escape percent-encodes text as one segment. The at sign of Vertex's IDs stays
// as it is: it is legal there, and the SDKs leave it.
func escape(text string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; unreserved(c) || c == '@' {
			out.WriteByte(c)
		} else {
			out.WriteByte('%')
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		}
	}
	return out.String()
}

// unreserved is RFC 3986's set: characters that need no escape anywhere.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}
