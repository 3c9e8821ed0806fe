package config

import (
	"regexp"
	"slices"
	"strings"
)

// headerForm is RFC 9110's token without `*`, which people write as a glob.
var headerForm = regexp.MustCompile("^[!#$%&'+.^_`|~0-9A-Za-z-]{1,128}$")

// header is the lower-case name, reported when no client could send it or when
// the guard removes it before anything looks at it.
func (c *compiler) header(path, name string) string {
	lower := strings.ToLower(name)
	switch {
	case !headerForm.MatchString(name):
		c.fail(path, "is no name of a header: no blanks, colons or *")
	case strings.HasPrefix(lower, "x-crossdoor-"), strings.HasPrefix(lower, "x-envoy-"):
		c.fail(path, "%s is removed from what clients send", show(name))
	}
	return lower
}

// Headers that are credentials or hold one.
var credentialHeaders = []string{"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "x-goog-api-key", "x-amz-security-token"}

func isCredentialHeader(lower string) bool { return slices.Contains(credentialHeaders, lower) }

// Headers that Crossdoor or Envoy sets on every attempt, or that belong to one
// connection (RFC 9110 section 7.6.1).
var ownHeaders = []string{
	"host", "content-length", "content-encoding", "accept-encoding", "x-request-id",
	"x-amz-date", "x-amz-content-sha256",
	"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
}

// forward checks forward_headers: contract section 11 has what no platform ever
// receives.
func (c *compiler) forward(path string, f FileTarget) []string {
	var list []string
	for i, name := range f.ForwardHeaders {
		at := index(path, i)
		if !c.ok(at) {
			continue
		}
		lower := c.header(at, name)
		switch {
		case !c.ok(at):
		case isCredentialHeader(lower):
			c.fail(at, "%s carries the client's credential: use keys: [passthrough] to send that on", show(name))
		case slices.Contains(ownHeaders, lower), strings.HasPrefix(lower, "x-forwarded-"):
			c.fail(at, "%s never reaches a platform from a client", show(name))
		case lower == "anthropic-workspace-id" && f.Platform == PlatformClaudeOnAWS:
			c.fail(at, "%s is set from the target's workspace", show(name))
		case slices.Contains(list, lower):
			c.fail(at, "%s is there twice", show(name))
		}
		list = append(list, lower)
	}
	return list
}

// match compiles the header rules of a route.
func (c *compiler) match(path string, list []FileHeader) []HeaderMatch {
	var rules []HeaderMatch
	seen := map[string]bool{}
	for _, f := range list {
		at := join(path, f.Name)
		prefix, present := join(at, "prefix"), join(at, "present")
		if !c.clean(at) {
			continue
		}
		m := HeaderMatch{Name: strings.ToLower(f.Name), Exact: f.Exact, Prefix: f.Prefix, Present: f.Present}
		mapping := c.has(prefix) || c.has(present)
		switch {
		case !headerForm.MatchString(f.Name):
			c.failKey(at, "is no name of a header: no blanks, colons or *")
		case strings.HasPrefix(m.Name, "x-crossdoor-"), strings.HasPrefix(m.Name, "x-envoy-"):
			c.failKey(at, "this header is removed from what clients send, so that the route would never match")
		case seen[m.Name]:
			c.failKey(at, "is there twice: the case of a header's name does not count")
		case c.has(prefix) && c.has(present):
			c.fail(present, "a header has either prefix or present")
		case c.has(prefix) && f.Prefix == "":
			c.fail(prefix, "is empty: write {present: true} for any value")
		case c.has(present) && !f.Present:
			c.fail(present, "must be true: a route cannot ask for a header's absence")
		case !mapping && c.isMapping[at]:
			c.missing(at, "prefix", "write a text for the exact value, {prefix: …} or {present: true}")
		}
		seen[m.Name] = true
		rules = append(rules, m)
	}
	return rules
}
