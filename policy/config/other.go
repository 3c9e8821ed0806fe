package config

import (
	"regexp"
	"slices"
	"strings"
)

// maxAllow bounds the routes that Envoy gets for other paths.
const maxAllow = 64

var (
	otherMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	// What no platform's path needs is left out: an escape or an empty segment
	// could spell a path that is not allowed.
	otherPathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.:@~-]+)+/?$`)
	handledPaths  = []string{"/v1/messages", "/v1/messages/count_tokens", "/v1/models"}
	// Organisations and their users are no matter of somebody who may use a model.
	neverPaths = []string{"/v1/organizations", "/v1/user_profiles"}
)

// others compiles other_paths.
func (c *compiler) others(f FileOther) {
	const path, target, allow = "other_paths", "other_paths.target", "other_paths.allow"
	if !c.has(path) || f.Mode != "" || !c.ok(path) {
		return
	}
	switch {
	case c.has(target):
	case c.has(allow):
		c.missing(path, "target", "it is where these requests go")
	case c.clean(path):
		c.missing(path, "target", "write reject, or {target: TARGET, allow: [\"METHOD /path\"]}")
		return
	}
	t := c.otherTarget(target, f.Target)
	rules := c.allowed(path, allow, f.Allow)
	if t != nil {
		c.policy.OtherPaths = &OtherPaths{Target: t, Allow: rules}
	}
}

// otherTarget is a target that takes first-party paths with bodies that nobody
// has seen as a whole.
func (c *compiler) otherTarget(path, name string) *Target {
	t := c.reference(path, name)
	if t == nil {
		return nil
	}
	at := join("targets", t.Name)
	if !c.ok(at, join(at, "platform"), join(at, "auth")) || !c.clean(join(at, "keys")) {
		return nil
	}
	switch {
	case !fronts[t.Platform].firstParty:
		c.fail(path, "platform %s of target %q has no other paths", t.Platform, t.Name)
	case t.Auth == AuthSigV4:
		c.fail(path, "target %q signs whole bodies (auth: sigv4), and other paths are not buffered: give it keys", t.Name)
	case t.Passthrough() && len(t.Keys) > 1:
		c.fail(path, "target %q mixes passthrough and own keys: other paths need one or the other", t.Name)
	default:
		return t
	}
	return nil
}

// allowed compiles the list of methods and paths.
func (c *compiler) allowed(parent, path string, list []string) []PathRule {
	if !c.has(path) {
		if c.ok(path) {
			c.missing(parent, "allow", "it lists what may go there, as in [\"POST /v1/messages/batches\"]")
		}
		return nil
	}
	if c.ok(path) && (len(list) == 0 || len(list) > maxAllow) {
		c.fail(path, "must be 1 to %d methods and paths", maxAllow)
	}
	var rules []PathRule
	for i, text := range list {
		at := index(path, i)
		if !c.ok(at) {
			continue
		}
		rule, problem := parsePathRule(text)
		switch {
		case problem != "":
			c.fail(at, "%s", problem)
		case slices.Contains(rules, rule):
			c.fail(at, "%s is there twice", show(text))
		}
		rules = append(rules, rule)
	}
	return rules
}

func parsePathRule(text string) (r PathRule, problem string) {
	method, path, both := strings.Cut(text, " ")
	r = PathRule{Method: method, Path: path}
	r.Path, r.Prefix = strings.CutSuffix(path, "*")
	switch {
	case !both:
		return r, `must be a method and a path, as in "POST /v1/messages/batches"`
	case !slices.Contains(otherMethods, method):
		return r, "must begin with a method: " + strings.Join(otherMethods, ", ")
	case strings.Contains(r.Path, "*"):
		return r, "* stands for the rest of the path: it may only be at the end"
	case !otherPathForm.MatchString(r.Path) && (r.Path != "/" || !r.Prefix):
		return r, "must have a path of plain segments, as in /v1/files/*: no blanks, no ?, no #, no %"
	case dotted(r.Path):
		return r, "must have a path without . and .. segments"
	}
	for _, p := range neverPaths {
		if within(r.Path, p) {
			return r, p + " is never sent on"
		}
	}
	if slices.Contains(handledPaths, strings.TrimSuffix(r.Path, "/")) && !r.Prefix {
		return r, "is planned like any request for a model: it never goes on as it is"
	}
	return r, ""
}

// within reports whether path is folder or below it. No platform says that case
// counts in its paths.
func within(path, folder string) bool {
	path = strings.ToLower(path)
	rest, inside := strings.CutPrefix(path, folder)
	return inside && (rest == "" || rest[0] == '/')
}

// NeverPaths are the folders that no rule of other_paths reaches into, also one
// that begins above them.
func NeverPaths() []string { return slices.Clone(neverPaths) }

// Allows reports whether a request goes on as it is. path is the client's, with
// or without a query. A path that could be read in two ways (escapes, empty or
// dotted segments) does not; nor does one that is planned.
func (o *OtherPaths) Allows(method, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	if !otherPathForm.MatchString(path) || dotted(path) || slices.Contains(handledPaths, strings.TrimSuffix(path, "/")) ||
		slices.ContainsFunc(neverPaths, func(p string) bool { return within(path, p) }) {
		return false
	}
	return slices.ContainsFunc(o.Allow, func(r PathRule) bool { return r.Method == method && r.takes(path) })
}

func (r PathRule) takes(path string) bool {
	if r.Prefix {
		return strings.HasPrefix(path, r.Path)
	}
	return path == r.Path
}

// dotted reports whether a path has a . or .. segment.
func dotted(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
}
