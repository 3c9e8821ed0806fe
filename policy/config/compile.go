package config

import (
	"regexp"
	"time"
)

// compiler turns a File into a Policy. It goes on after an error with what it
// has: the result is used only when the document has no error.
type compiler struct {
	*document

	catalog Catalog
	policy  *Policy
	targets map[string]*Target
	names   []string
}

func compile(d *document, f *File, catalog Catalog) *Policy {
	c := &compiler{document: d, catalog: catalog, policy: &Policy{}, targets: map[string]*Target{}}
	c.limits(f.Limits)
	c.breaker(f.Breaker)
	c.client(f.Client)
	c.policy.Guard = Guard(f.Guard)
	c.policy.Trail = Trail{Recent: f.Trail.Recent, File: f.Trail.File}
	if c.has("targets") && c.ok("targets") && len(f.Targets) == 0 {
		c.fail("targets", "is empty: a policy has at least one target")
	}
	if c.has("routes") && c.ok("routes") && len(f.Routes) == 0 {
		c.fail("routes", "is empty: a policy has at least one route")
	}
	for _, t := range f.Targets {
		c.target(t)
	}
	c.down(f.OnServiceDown)
	c.others(f.OtherPaths)
	first := map[string]string{}
	for i, r := range f.Routes {
		path := index("routes", i)
		c.route(path, r)
		at := join(path, "name")
		if other, twice := first[r.Name]; twice && c.ok(at) {
			c.fail(at, "%s is already the name of %s", show(r.Name), other)
		} else if c.has(at) {
			first[r.Name] = path
		}
	}
	return c.policy
}

var nameForm = regexp.MustCompile(namePattern)

// namePattern is the contract's rule for names of targets and routes.
const namePattern = `^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$`

const nameRule = "must be 1 to 50 of a-z, 0-9 and -, with no - at either end"

func (c *compiler) limits(l FileLimits) {
	c.policy.Limits = Limits{Body: int64(l.Body), Memory: int64(l.Memory), Hold: int64(l.Hold), BodyTime: time.Duration(l.BodyTime)}
}

func (c *compiler) breaker(b FileBreaker) {
	c.policy.Breaker = Breaker{
		Failures: b.Failures, Window: time.Duration(b.Window),
		MaxWindow: time.Duration(b.MaxWindow), LongWindow: time.Duration(b.LongWindow),
	}
	c.fit("breaker.max_window", "breaker.window", &c.policy.Breaker.MaxWindow, &c.policy.Breaker.Window)
}

// longer reports that one duration is below another. Of two members the file may
// write only one: then that one breaks the rule, else the one that must be long.
func (c *compiler) longer(big, small string, bigValue, smallValue time.Duration) {
	switch {
	case bigValue >= smallValue || !c.ok(big, small):
	case c.has(big):
		c.fail(big, "is %s, below %s (%s)", durationText(bigValue), lastPart(small), durationText(smallValue))
	case c.has(small):
		c.fail(small, "is %s, above %s (%s by default)", durationText(smallValue), lastPart(big), durationText(bigValue))
	}
}

// fit is longer where the default of the member that is not written gives way.
func (c *compiler) fit(big, small string, bigValue, smallValue *time.Duration) {
	switch {
	case *bigValue >= *smallValue:
	case c.has(big) && c.has(small):
		c.longer(big, small, *bigValue, *smallValue)
	case c.has(big):
		*smallValue = *bigValue
	default:
		*bigValue = *smallValue
	}
}

// lastPart is the last part of a path.
func lastPart(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}
	return path
}

func (c *compiler) client(f FileClient) {
	const path = "client.header"
	if f.Header == "" || !c.ok(path) {
		return
	}
	c.policy.ClientHeader = c.header(path, f.Header)
	if isCredentialHeader(c.policy.ClientHeader) {
		c.fail(path, "%s carries a credential, and the client's name is in the trail: choose another header", show(f.Header))
	}
}

func (c *compiler) down(f FileDown) {
	const path = "on_service_down.direct"
	if !c.has(path) {
		if c.has("on_service_down") && f.Mode == "" && c.clean("on_service_down") {
			c.missing("on_service_down", "direct", "write reject, or {direct: TARGET}")
		}
		return
	}
	t := c.reference(path, f.Direct)
	if t == nil || !c.ok(join(join("targets", t.Name), "keys")) {
		return
	}
	if len(t.Keys) != 1 || !t.Passthrough() {
		c.fail(path, "the only key of target %q must be passthrough: nobody adds a key while the service is down", t.Name)
		return
	}
	c.policy.Direct = t
}

// reference is the target of that name, or nil with the error reported.
func (c *compiler) reference(path, name string) *Target {
	if !c.ok(path) || !c.has(path) {
		return nil
	}
	t, ok := c.targets[name]
	if !ok {
		c.fail(path, "unknown target %s%s", show(name), suggest(name, c.names))
	}
	return t
}
