package test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// letter names the targets of a lane.
func letter(i int) string { return string(rune('a' + i)) }

func (l *laneRun) targetName(i int) string { return l.name + "-" + letter(i) }

// model is what the lane's requests ask for.
func (l *laneRun) model() string {
	if l.models != "" {
		first, _, _ := strings.Cut(l.models, ", ")
		return first
	}
	return l.name
}

// modelList is the route's list in YAML.
func (l *laneRun) modelList() string {
	if l.models == "" {
		return fmt.Sprintf("[%q]", l.name)
	}
	return `["` + strings.ReplaceAll(l.models, ", ", `", "`) + `"]`
}

// workspace is what claude-on-aws targets of the lane are configured with.
func (l *laneRun) workspace() string { return "wrkspc_" + strings.ReplaceAll(l.name, "-", "") }

// addLane starts the lane's fake platforms and makes its secrets.
func (e *env) addLane(spec lane) {
	e.t.Helper()
	l := &laneRun{lane: spec, e: e, sent: &atomic.Int64{}}
	if e.lanes[l.name] != nil {
		e.t.Fatalf("two lanes %q", l.name)
	}
	e.lanes[l.name] = l
	e.order = append(e.order, l)
	for i, tg := range l.targets {
		var keys []string
		for k := range max(1, tg.keys) {
			key := fmt.Sprintf("sk-secret-%s-%s-%d-Zq7", l.name, letter(i), k)
			keys = append(keys, key)
			e.environ = append(e.environ, l.keyEnv(i, k)+"="+key)
		}
		l.keys = append(l.keys, keys)
		l.fakes = append(l.fakes, e.fake(l, tg, keys))
	}
}

// awsKey is what signs for targets with SigV4; the services have it in their
// environment.
func (e *env) awsKey() fakeplatform.AWSKey {
	const id = "AKIDEXAMPLE"
	const secret = "sk-secret-aws-Zq7"
	if !slices.Contains(e.environ, "AWS_ACCESS_KEY_ID="+id) {
		e.environ = append(e.environ, "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_EC2_METADATA_DISABLED=true")
	}
	return fakeplatform.AWSKey{ID: id, Secret: secret}
}

func (e *env) fake(l *laneRun, tg target, keys []string) *fakeplatform.Server {
	e.t.Helper()
	if tg.url != "" {
		return nil
	}
	platform := tg.platform
	if platform == "" {
		platform = fakeplatform.Anthropic
	}
	var s *fakeplatform.Server
	var err error
	if tg.tls != nil {
		s, err = fakeplatform.NewTLS(platform, e.ca, tg.tls...)
	} else {
		s, err = fakeplatform.New(platform)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	rules := fakeplatform.Rules{Keys: keys}
	if tg.sigv4 {
		rules = fakeplatform.Rules{AWS: []fakeplatform.AWSKey{e.awsKey()}}
	}
	if platform == fakeplatform.ClaudeOnAWS {
		rules.Workspace = l.workspace()
	}
	if tg.rules != nil {
		rules = *tg.rules
	}
	rules.Files = tg.files
	s.SetRules(rules)
	return s
}

func (l *laneRun) keyEnv(i, k int) string {
	return fmt.Sprintf("KEY_%s_%s_%d", strings.ToUpper(strings.ReplaceAll(l.name, "-", "_")), strings.ToUpper(letter(i)), k)
}

// policyText is the environment's policy. All replicas have the same: each
// writes its trail where it runs.
func (e *env) policyText() string {
	var b strings.Builder
	b.WriteString("version: 1\n")
	for _, line := range e.opts.top {
		b.WriteString(line + "\n")
	}
	if e.opts.trail != "" {
		b.WriteString("trail: " + e.opts.trail + "\n")
	} else {
		b.WriteString("trail: {recent: 1000, file: trail.jsonl}\n")
	}
	b.WriteString("targets:\n")
	for _, l := range e.order {
		for i := range l.targets {
			l.writeTarget(&b, i)
		}
	}
	b.WriteString("routes:\n")
	for _, l := range e.order {
		l.writeRoute(&b)
	}
	return b.String()
}

func (l *laneRun) writeTarget(b *strings.Builder, i int) {
	tg := l.targets[i]
	fmt.Fprintf(b, "  %s:\n", l.targetName(i))
	line := func(format string, args ...any) { fmt.Fprintf(b, "    "+format+"\n", args...) }
	switch tg.platform {
	case fakeplatform.ClaudeOnAWS:
		line("platform: claude-on-aws")
		line("region: us-east-1")
		line("workspace: %s", l.workspace())
		line("auth: %s", tg.auth())
	case fakeplatform.Foundry:
		line("platform: foundry")
		line("resource: acme")
		line("auth: key")
	case fakeplatform.Bedrock, fakeplatform.Mantle:
		line("platform: %s", tg.platform)
		line("region: eu-central-1")
		line("auth: %s", tg.auth())
	case fakeplatform.Vertex:
		line("platform: vertex")
		line("project: acme")
		line("region: eu")
		line("token: %s", cmp.Or(tg.keyYAML, "{env: "+l.keyEnv(i, 0)+"}"))
	case fakeplatform.ClaudeOnGoogle:
		line("platform: claude-on-google")
		line("project: acme")
		line("location: global")
		line("workspace: %s", l.workspace())
		line("token: %s", cmp.Or(tg.keyYAML, "{env: "+l.keyEnv(i, 0)+"}"))
	default:
		line("platform: anthropic")
	}
	switch {
	case tg.url != "":
		line("url: %s", tg.url)
		if strings.HasPrefix(tg.url, "http://") {
			line("plaintext: true")
		}
	case tg.tls != nil:
		line("url: https://localhost:%d", l.fakes[i].Port())
		if !tg.noCA {
			line("ca_file: %s/ca.pem", l.e.dir)
		}
	default:
		line("url: %s", l.fakes[i].URL())
		line("plaintext: true")
	}
	switch {
	case tg.sigv4, tg.platform == fakeplatform.Vertex, tg.platform == fakeplatform.ClaudeOnGoogle: // no keys
	case tg.keyYAML != "":
		line("keys: %s", tg.keyYAML)
	default:
		line("keys:")
		for k := range l.keys[i] {
			line("  - env: %s", l.keyEnv(i, k))
		}
	}
	for _, y := range tg.yaml {
		line("%s", y)
	}
}

// auth is how a target of AWS's authenticates.
func (tg target) auth() string {
	if tg.sigv4 {
		return "sigv4"
	}
	return "key"
}

func (l *laneRun) writeRoute(b *strings.Builder) {
	chain := l.chain
	if chain == "" {
		var names []string
		for i := range l.targets {
			names = append(names, l.targetName(i))
		}
		chain = "[" + strings.Join(names, ", ") + "]"
	}
	fmt.Fprintf(b, "  - name: %s\n    models: %s\n    chain: %s\n", l.name, l.modelList(), strings.ReplaceAll(chain, "@", l.name+"-"))
	for _, y := range l.route {
		b.WriteString("    " + y + "\n")
	}
}
