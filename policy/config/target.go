package config

import (
	"cmp"
	"regexp"
	"slices"
	"time"
)

func (c *compiler) target(f FileTarget) {
	path := join("targets", f.Name)
	usable := c.ok(path)
	if !nameForm.MatchString(f.Name) {
		c.failKey(path, "the name of a target %s", nameRule)
	}
	t := &Target{
		Name: f.Name, Platform: f.Platform,
		CAFile: f.CAFile, ConnectTimeout: time.Duration(f.ConnectTimeout),
		Region: f.Region, Project: f.Project, Workspace: f.Workspace, Resource: f.Resource,
		FetchFiles: f.FetchFiles, Degraded: f.Degraded, MaxConcurrency: f.MaxConcurrency,
	}
	c.targets[f.Name] = t
	c.names = append(c.names, f.Name)
	c.policy.Targets = append(c.policy.Targets, t)
	if !usable {
		return
	}
	if p, known := fronts[f.Platform]; known && c.ok(join(path, "platform")) {
		c.platform(path, f, p, t)
	}
	t.ForwardHeaders = c.forward(join(path, "forward_headers"), f)
	t.Features = c.features(join(path, "features"), f.Features, nil)
	t.Models = c.models(join(path, "models"), f.Models, t.Features)
	t.Labels = c.labels(join(path, "labels"), f.Labels)
}

// platform compiles what depends on the target's platform.
func (c *compiler) platform(path string, f FileTarget, p front, t *Target) {
	c.places(path, f, p)
	t.Endpoint = c.endpoint(path, f, p)
	if p.prefix != nil {
		t.PathPrefix = p.prefix(f)
	}
	switch f.Platform {
	case PlatformClaudeOnGoogle:
		t.Location = locationOf(f)
	case PlatformBedrock:
		t.Profile = cmp.Or(Profile(f.Profile), ProfileGeo)
	case PlatformFoundry:
		t.Hosting = cmp.Or(Hosting(f.Hosting), HostingAnthropic)
	}
	t.Auth, t.Keys = c.credentials(path, f, p)
	t.Limits = c.targetLimits(join(path, "limits"), f.Limits, p)
	t.builtin = c.builtin(t, p)
	c.fetchFiles(join(path, "fetch_files"), t, p)
}

// builtin resolves models by the built-in table and the platform's rule for
// those that are not in it.
func (c *compiler) builtin(t *Target, p front) func(string) (string, bool) {
	lookup, at := c.catalog.ModelID, t.modelPlace()
	return func(model string) (string, bool) {
		if lookup != nil {
			if id, ok := lookup(t.Platform, at, model); ok {
				return id, true
			}
		}
		return model, p.anyID
	}
}

func (t *Target) modelPlace() ModelPlace {
	return ModelPlace{Region: t.Region, Profile: t.Profile, Hosting: t.Hosting}
}

// wherePlaces are the members that say where at a platform, in the file's order.
// words are those with a list of values: they have no form.
var wherePlaces = []struct {
	name  string
	value func(FileTarget) string
	form  *regexp.Regexp
	rule  string
}{
	{"region", func(f FileTarget) string { return f.Region }, hostLabel, "must be letters, digits and -: it becomes part of a host or header"},
	{"profile", func(f FileTarget) string { return f.Profile }, nil, ""},
	{"project", func(f FileTarget) string { return f.Project }, projectForm, "must be the ID or number of a project: it becomes part of a path"},
	{"location", func(f FileTarget) string { return f.Location }, hostLabel, "must be letters, digits and -: it becomes part of a path"},
	{"workspace", func(f FileTarget) string { return f.Workspace }, workspaceForm, "must be letters, digits, _ and -: it becomes part of a header or path"},
	{"resource", func(f FileTarget) string { return f.Resource }, hostLabel, "must be letters, digits and -: it becomes part of a host or header"},
	{"hosting", func(f FileTarget) string { return f.Hosting }, nil, ""},
}

var (
	// A label of a host name.
	hostLabel = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	// A project's ID may have a domain before it, as in example.com:acme.
	projectForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.:]{0,126}[a-z0-9])?$`)
	// One segment of a path, and a header's value.
	workspaceForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
)

// places checks the members that say where at the platform.
func (c *compiler) places(path string, f FileTarget, p front) {
	for _, m := range wherePlaces {
		at, value := join(path, m.name), m.value(f)
		hint := ""
		needed := slices.Contains(p.needs, m.name)
		if m.name == "resource" && slices.Contains(p.takes, m.name) && !c.has(join(path, "url")) {
			needed, hint = true, ", or url"
		}
		switch {
		case !c.ok(at):
		case needed && !c.has(at):
			c.missing(path, m.name, "platform %s needs it%s", f.Platform, hint)
		case value == "" && !needed:
		case !needed && !slices.Contains(p.takes, m.name):
			c.failKey(at, "platform %s has no %s", f.Platform, m.name)
		case m.form != nil && !m.form.MatchString(value):
			c.fail(at, "%s", m.rule)
		}
	}
}

// targetLimits fills in the platform's own.
func (c *compiler) targetLimits(path string, f FileTargetLimits, p front) TargetLimits {
	l := TargetLimits{Body: int64(f.Body), Image: int64(f.Image), InputTokens: int64(f.InputTokens)}
	if !c.has(join(path, "body")) {
		l.Body = p.body
	}
	if !c.has(join(path, "image")) {
		l.Image = p.image
	}
	return l
}

// fetchFiles refuses what has no files, and what would give one client's files
// to another.
func (c *compiler) fetchFiles(path string, t *Target, p front) {
	switch {
	case !t.FetchFiles || !c.ok(path):
	case !p.files:
		c.fail(path, "platform %s has no files", t.Platform)
	case t.Hosting == HostingAzure:
		c.fail(path, "deployments with hosting: azure have no files")
	case t.Passthrough():
		c.fail(path, "files are fetched with the target's own key: it cannot be passthrough")
	}
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
