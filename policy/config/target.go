package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// front is what this package knows of a platform: where it is and what a target
// of it must say. How it is spoken to is not the policy's matter.
type front struct {
	prefix string // before the client's path
	url    func(FileTarget) string
	needs  []string // required members
	takes  []string // further members that only some platforms have
	anyID  bool     // a model that is in no table is taken as it is
}

// Hosts and prefixes: the platforms' own documents. Sizes are in the tags of
// FileTargetLimits, since these platforms share them.
var fronts = map[string]front{
	PlatformAnthropic: {
		url:   func(FileTarget) string { return "https://api.anthropic.com" },
		anyID: true,
	},
	PlatformClaudeOnAWS: {
		url:   func(t FileTarget) string { return "https://aws-external-anthropic." + t.Region + ".api.aws" },
		needs: []string{"region", "workspace"},
		takes: []string{"region", "workspace"},
		anyID: true,
	},
	PlatformFoundry: {
		prefix: "/anthropic",
		url:    func(t FileTarget) string { return "https://" + t.Resource + ".services.ai.azure.com" },
		takes:  []string{"resource"},
	},
}

// maxKeys bounds the keys of a target, and with them the series of the breaker
// metric.
const maxKeys = 32

func (c *compiler) target(f FileTarget) {
	path := join("targets", f.Name)
	usable := c.ok(path)
	if !nameForm.MatchString(f.Name) {
		c.failKey(path, "the name of a target %s", nameRule)
	}
	t := &Target{
		Name: f.Name, Platform: f.Platform,
		PathPrefix: fronts[f.Platform].prefix,
		CAFile:     f.CAFile, ConnectTimeout: time.Duration(f.ConnectTimeout),
		Region: f.Region, Workspace: f.Workspace, Resource: f.Resource,
		Limits:   TargetLimits{Body: int64(f.Limits.Body), Image: int64(f.Limits.Image), InputTokens: int64(f.Limits.InputTokens)},
		Degraded: f.Degraded, MaxConcurrency: f.MaxConcurrency,
		builtin: c.builtin(f.Platform),
	}
	c.targets[f.Name] = t
	c.names = append(c.names, f.Name)
	c.policy.Targets = append(c.policy.Targets, t)
	if !usable {
		return
	}
	if p, known := fronts[f.Platform]; known && c.ok(join(path, "platform")) {
		c.places(path, f, p)
		t.Endpoint = c.endpoint(path, f, p)
	}
	t.Keys = c.keysOf(join(path, "keys"), path, f.Keys)
	t.ForwardHeaders = c.forward(join(path, "forward_headers"), f)
	t.Models = c.models(join(path, "models"), f.Models)
	t.Labels = c.labels(join(path, "labels"), f.Labels)
}

func (c *compiler) builtin(platform string) func(string) (string, bool) {
	p, lookup := fronts[platform], c.catalog.ModelID
	return func(model string) (string, bool) {
		if lookup != nil {
			if id, ok := lookup(platform, model); ok {
				return id, true
			}
		}
		return model, p.anyID
	}
}

var (
	// A label of a host name: region and resource become one.
	hostLabel = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	// The workspace goes into a header.
	workspaceForm = regexp.MustCompile(`^[!-~]{1,256}$`)
)

// places checks the members that say where at the platform.
func (c *compiler) places(path string, f FileTarget, p front) {
	values := map[string]string{"region": f.Region, "workspace": f.Workspace, "resource": f.Resource}
	for _, name := range []string{"region", "workspace", "resource"} {
		at, value := join(path, name), values[name]
		form, rule := hostLabel, "must be letters, digits and -"
		if name == "workspace" {
			form, rule = workspaceForm, "must be printable ASCII without blanks"
		}
		needed := slices.Contains(p.needs, name) || (name == "resource" && slices.Contains(p.takes, name) && !c.has(join(path, "url")))
		switch {
		case !c.ok(at):
		case needed && !c.has(at):
			hint := ""
			if name == "resource" {
				hint = ", or url"
			}
			c.missing(path, name, "platform %s needs it%s", f.Platform, hint)
		case value == "" && !needed:
		case !slices.Contains(p.takes, name):
			c.failKey(at, "platform %s has no %s", f.Platform, name)
		case !form.MatchString(value):
			c.fail(at, "%s: it becomes part of a host or header", rule)
		}
	}
}

// endpoint is where the target listens, from url or the platform.
func (c *compiler) endpoint(path string, f FileTarget, p front) Endpoint {
	at, plain, ca := join(path, "url"), join(path, "plaintext"), join(path, "ca_file")
	if !c.ok(at, plain, join(path, "region"), join(path, "resource")) {
		return Endpoint{}
	}
	text := p.url(f)
	if c.has(at) {
		text = f.URL
	}
	e, problem := parseEndpoint(text)
	switch {
	case problem != "":
		c.fail(at, "%s", problem)
	case e.TLS && f.Plaintext:
		c.fail(plain, "plaintext is for http:// urls; this target is reached by https://")
	case !e.TLS && !f.Plaintext:
		c.fail(at, "http:// sends keys and prompts unencrypted: write https://, or plaintext: true inside a mesh")
	case !e.TLS && f.CAFile != "":
		c.fail(ca, "has no meaning with plaintext: true: there is no certificate to check")
	}
	return e
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$`)

// parseEndpoint never repeats the url: it may hold a password.
func parseEndpoint(text string) (e Endpoint, problem string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "":
		return e, "is no url: write it as https://host or https://host:port"
	case u.Scheme != "http" && u.Scheme != "https":
		return e, "must begin with https:// (or http:// with plaintext: true)"
	case u.User != nil:
		return e, "has a user or password in it: keys belong into keys: [{env: NAME}] or keys: [{file: PATH}]"
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return e, "must be scheme, host and port only: the platform's path is added"
	}
	e = Endpoint{Host: strings.ToLower(u.Hostname()), Port: 80, TLS: u.Scheme == "https"}
	if e.TLS {
		e.Port = 443
	}
	ip, ipErr := netip.ParseAddr(e.Host)
	if (ipErr != nil && !hostForm.MatchString(e.Host)) || len(e.Host) > 253 || ip.Zone() != "" {
		return e, "has no host that can be reached: write it as https://host or https://host:port"
	}
	if port := u.Port(); port != "" {
		e.Port, err = strconv.Atoi(port)
		if err != nil || e.Port < 1 || e.Port > 65535 {
			return e, "has a port that is not 1 to 65535"
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return e, "has a colon but no port"
	}
	return e, ""
}

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// keysOf never repeats a value: people put keys where names belong.
func (c *compiler) keysOf(path, parent string, list []FileKey) []Key {
	if !c.has(path) {
		if c.ok(path, join(parent, "platform"), join(parent, "auth")) {
			c.missing(parent, "keys", "write keys: [{env: NAME}], keys: [{file: PATH}] or keys: [passthrough]")
		}
		return nil
	}
	if !c.ok(path) {
		return nil
	}
	if len(list) == 0 || len(list) > maxKeys {
		c.fail(path, "must be 1 to %d keys", maxKeys)
	}
	var keys []Key
	first := map[Key]int{}
	for i, f := range list {
		at := index(path, i)
		k, ok := c.key(at, f)
		if !ok {
			continue
		}
		if other, twice := first[k]; twice {
			c.fail(at, "is the same key as %s", index("keys", other))
		} else {
			first[k] = i
		}
		keys = append(keys, k)
	}
	return keys
}

func (c *compiler) key(path string, f FileKey) (Key, bool) {
	env, file := join(path, "env"), join(path, "file")
	switch {
	case !c.ok(path, env, file):
		return Key{}, false
	case f.Passthrough != "":
		return Key{Source: KeyPassthrough}, true
	case c.has(env) && c.has(file):
		c.fail(file, "a key has either env or file: write two keys")
	case !c.has(env) && !c.has(file):
		if c.clean(path) {
			c.missing(path, "env", "write {env: NAME}, {file: PATH} or passthrough")
		}
	case c.has(env) && !envForm.MatchString(f.Env):
		c.fail(env, "must be the name of an environment variable (letters, digits and _), never the key itself")
	case c.has(file) && f.File == "":
		c.fail(file, "must be the path of a file that holds the key")
	case c.has(env):
		return Key{Source: KeyEnv, Name: f.Env}, true
	default:
		return Key{Source: KeyFile, Name: f.File}, true
	}
	return Key{}, false
}

func (c *compiler) labels(path string, list []FileLabel) map[string]string {
	if len(list) == 0 {
		return nil
	}
	labels := make(map[string]string, len(list))
	for _, l := range list {
		if l.Name == "" {
			c.failKey(join(path, l.Name), "a label has a name")
		}
		labels[l.Name] = l.Value
	}
	return labels
}

func forwardedHeaders(targets []*Target) []string {
	var out []string
	for _, t := range targets {
		out = append(out, t.ForwardHeaders...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
