package extproc

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// field is one header, to set (or, with an empty value where it says so, to
// remove).
type field = wire.HeaderField

// clientRequest is what a request's headers said: the original that every
// attempt derives from. It is never edited.
type clientRequest struct {
	method, path  string
	headers       []field     // all but the pseudo-headers
	contentLength int64       // -1 when the client did not say
	own           [][2]string // of changeable, once it was asked or carried here
}

// readClient copies the headers out of the message, whose bytes are reused: all
// into one string, of which every name and value is a part.
func readClient(req *wire.Request) clientRequest {
	var text strings.Builder
	size := 0
	for _, h := range req.Headers {
		size += len(h.Name) + len(h.Value)
	}
	text.Grow(size)
	for _, h := range req.Headers {
		text.Write(h.Name)
		text.Write(h.Value)
	}
	rest := text.String()
	next := func(n int) (part string) {
		part, rest = rest[:n], rest[n:]
		return part
	}
	c := clientRequest{contentLength: -1, headers: make([]field, 0, len(req.Headers))}
	for _, h := range req.Headers {
		c.take(next(len(h.Name)), next(len(h.Value)))
	}
	return c
}

func (c *clientRequest) take(name, value string) {
	switch name {
	case "":
	case ":method":
		c.method = value
	case ":path":
		c.path = value
	case "content-length":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			c.contentLength = n
		}
	default:
		if name[0] != ':' {
			c.headers = append(c.headers, field{Name: name, Value: value})
		}
	}
}

// get is a header's first value.
func (c *clientRequest) get(name string) (string, bool) {
	for i := range c.headers {
		if c.headers[i].Name == name {
			return c.headers[i].Value, true
		}
	}
	return "", false
}

func (c *clientRequest) value(name string) string {
	v, _ := c.get(name)
	return v
}

// all is every line of a header.
func (c *clientRequest) all(name string) []string {
	var out []string
	for i := range c.headers {
		if c.headers[i].Name == name {
			out = append(out, c.headers[i].Value)
		}
	}
	return out
}

// list is a header that is a list, of one line or several (RFC 9110, section 5.3).
func (c *clientRequest) list(name string) string {
	if c.count(name) < 2 {
		return c.value(name)
	}
	return strings.Join(c.all(name), ", ")
}

// count is the number of a header's lines.
func (c *clientRequest) count(name string) (n int) {
	for i := range c.headers {
		if c.headers[i].Name == name {
			n++
		}
	}
	return n
}

// barePath is the path without its query.
func (c *clientRequest) barePath() string {
	path, _, _ := strings.Cut(c.path, "?")
	return path
}

// timeout is what the client says it waits: x-stainless-timeout, in seconds
// (official SDKs); 0 when it does not say or what it says is no such number.
func (c *clientRequest) timeout() time.Duration {
	s, err := strconv.ParseFloat(strings.TrimSpace(c.value("x-stainless-timeout")), 64)
	if err != nil || !(s > 0) || s > float64(24*time.Hour/time.Second) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// credential is what the client authenticates with; a passthrough target sends
// it on in the header it came in.
func (c *clientRequest) credential() platform.ClientCredential {
	return platform.ClientCredential{APIKey: c.value("x-api-key"), Authorization: c.value("authorization")}
}

func (c *clientRequest) hasCredential() bool {
	cred := c.credential()
	return cred.APIKey != "" || cred.Authorization != ""
}

// name is who the client is, by the policy's header.
func (c *clientRequest) name(p *config.Policy) string {
	if p.ClientHeader == "" {
		return ""
	}
	return trail.CutClient(c.value(p.ClientHeader))
}

// unwanted lists the client's headers that no platform may see: all but the
// allow-list (contract, section 11), what some target forwards, and what the
// strip filter deals with on every attempt.
func (c *clientRequest) unwanted(forwarded []string) []string {
	var out []string
	for i := range c.headers {
		name := c.headers[i].Name
		switch {
		case platform.AllowedClientHeader(name), slices.Contains(forwarded, name), slices.Contains(out, name):
		case strings.HasPrefix(name, names.Prefix), strings.HasPrefix(name, names.EnvoyPrefix),
			strings.HasPrefix(name, "x-forwarded-"), name == "x-request-id", name == "host":
		default:
			out = append(out, name)
		}
	}
	return out
}

// changedByAttempts are the client's headers whose value differs by platform,
// credentials aside.
var changedByAttempts = []string{"accept", "anthropic-beta", "anthropic-user-profile-id", "anthropic-version", "content-type"}

// changeable are the client's own values of the headers that attempts change
// and that a later attempt may need: a replica that joins sees the last
// attempt's. None is a secret.
func (c *clientRequest) changeable() [][2]string {
	if c.own == nil {
		c.own = make([][2]string, 0, len(changedByAttempts))
		for _, f := range c.headers {
			if slices.Contains(changedByAttempts, f.Name) {
				c.own = append(c.own, [2]string{f.Name, f.Value})
			}
		}
	}
	return c.own
}

// sawAttempt takes the headers of an attempt, with the client's own values in
// the place of the attempt's.
func (c *clientRequest) sawAttempt(headers []field, own [][2]string) {
	c.own = own
	if headers == nil {
		return
	}
	c.headers = slices.DeleteFunc(headers, func(f field) bool { return slices.Contains(changedByAttempts, f.Name) })
	for _, f := range own {
		c.headers = append(c.headers, field{Name: f[0], Value: f[1]})
	}
}
