package test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// fitBody is a request with further members.
func fitBody(members string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":64,%s,"messages":[{"role":"user","content":%q}]}`, doorModel, members, promptSecret)
}

// Members that platforms treat differently.
const (
	mcpServers  = `"mcp_servers":[{"type":"url","url":"https://mcp.example","name":"m"}]`
	scopedCache = `"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","scope":"global"}}]`
	tier        = `"service_tier":"auto"`
)

// TestPlatformFits: what is stripped for a platform, what keeps it out, and what
// is said about either.
func TestPlatformFits(t *testing.T) {
	bedrock, mantle, vertex, first := converting, doors[6], doors[8], firstParty
	scope, mcp := header("anthropic-beta", "prompt-caching-scope-2026-01-05"), header("anthropic-beta", "mcp-client-2025-11-20")
	nobody := flow{
		lane: doorLane("nobody", []target{bedrock.target(), mantle.target(), vertex.target()}), call: call{body: fitBody(mcpServers), header: mcp},
		status: 400, outcome: "rejected", kind: "invalid_request_error", skips: "a feature:mcp_servers, b feature:mcp_servers, c feature:mcp_servers",
		more: func(t testing.TB, l *laneRun, a *answer, _ record) {
			_, message, _ := messagesError(a)
			for _, want := range []string{"mcp_servers", "nobody-a", "nobody-b", "nobody-c"} {
				if !strings.Contains(message, want) {
					t.Errorf("%q does not name %s", message, want)
				}
			}
			if strings.Contains(message, "mcp.example") || strings.Contains(message, promptSecret) {
				t.Errorf("%q quotes the request", message)
			}
		},
	}
	somebody := nobody
	somebody.lane = doorLane("somebody", []target{bedrock.target(), first.target()})
	somebody.status, somebody.outcome, somebody.kind, somebody.served = 200, "served", "", "b" // the first one that can
	somebody.skips, somebody.attempts, somebody.more = "a feature:mcp_servers", "b ok serve", nil

	stripped := flow{
		lane: doorLane("stripped", []target{bedrock.target()}), call: call{body: fitBody(scopedCache), header: scope},
		status: 200, served: "a", outcome: "served", attempts: "a ok serve",
		more: func(t testing.TB, l *laneRun, a *answer, r record) {
			if got := a.header.Get("x-crossdoor-degraded"); !strings.Contains(got, "cache_control.scope") || !slices.Contains(r.Degraded, "cache_control.scope") || !strings.Contains(r.line, `"stripped":["cache_control.scope"`) {
				t.Errorf("x-crossdoor-degraded %q, record %s", got, r.line)
			}
			if got := string(l.fakes[0].Requests()[0].Body); strings.Contains(got, `"scope"`) || !strings.Contains(got, `{"type":"ephemeral"}`) {
				t.Errorf("the platform got %s", got)
			}
			l.e.metric(1, "stripped_total", "target", l.targetName(0), "member", "cache_control.scope")
			l.e.metric(1, "degraded_total", "target", l.targetName(0))
		},
	}
	whole := flow{
		lane: doorLane("whole", []target{bedrock.target(), first.target()}, "portability: strict"), call: stripped.call,
		status: 200, served: "b", outcome: "served", skips: "a feature:cache_control.scope", attempts: "b ok serve",
		more: func(t testing.TB, l *laneRun, a *answer, r record) {
			if got := a.header.Get("x-crossdoor-degraded"); got != "" || r.Degraded != nil {
				t.Errorf("x-crossdoor-degraded %q, record %s", got, r.line)
			}
		},
	}
	lossless := flow{
		lane: doorLane("lossless", []target{bedrock.target()}, "portability: strict"), call: call{body: fitBody(tier)},
		status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: whole.more,
	}
	refuse := whole
	refuse.lane = doorLane("refuse", []target{bedrock.target("features: {cache_control.scope: refuse}"), first.target()})
	forModel := whole
	forModel.lane = doorLane("for-model", []target{bedrock.target(fmt.Sprintf("models: {%s: {id: %s, features: {cache_control.scope: refuse}}}", doorModel, bedrock.id)), first.target()})
	wrong := flow{
		lane: doorLane("wrong", []target{bedrock.target(), first.target()}), scripts: [][]fakeplatform.Answer{{fakeplatform.BedrockError(400, "", "invalid beta flag")}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a unsupported_feature failover, b ok serve",
		more: func(_ testing.TB, l *laneRun, _ *answer, _ record) {
			l.e.metric(1, "rewrite_refused_total", "target", l.targetName(0))
		},
	}
	runDoors(t, options{}, nobody, somebody, stripped, whole, lossless, refuse, forModel, wrong)
}

// TestPlatformWithoutCredential: a target whose credential is missing is left
// out, and the others serve.
func TestPlatformWithoutCredential(t *testing.T) {
	e := start(t, options{envoyFirst: true}, doorLane("missing", []target{doors[5].target(), doors[2].target(), firstParty.target()}), doorLane("alone", []target{doors[7].target()}))
	e.environ = slices.DeleteFunc(e.environ, func(v string) bool { return strings.HasPrefix(v, "AWS_ACCESS") || strings.HasPrefix(v, "AWS_SECRET") })
	nowhere := filepath.Join(e.dir, "nowhere")
	e.environ = append(e.environ, "AWS_CONFIG_FILE="+nowhere, "AWS_SHARED_CREDENTIALS_FILE="+nowhere)
	e.service().start()
	e.waitReady()
	l := e.lane("missing")
	for _, q := range questions {
		a := l.send(l.through(q.call))
		if r := l.byID(a.id()); a.status != 200 || r.skips() != "a credential, b credential" || r.summary() != "c ok serve" || r.Outcome != "failed_over" {
			t.Errorf("%s: %d, skips %q, attempts %q, outcome %q", q.name, a.status, r.skips(), r.summary(), r.Outcome)
		}
	}
	alone := e.lane("alone")
	a := alone.send(alone.through(call{}))
	if kind, _, err := messagesError(a); a.status != 529 || kind != "overloaded_error" || err != nil {
		t.Errorf("%d %q (%v)", a.status, kind, err)
	}
	if r := alone.byID(a.id()); r.skips() != "a credential" || r.Outcome != "exhausted" {
		t.Errorf("skips %q, outcome %q", r.skips(), r.Outcome)
	}
}

// TestPlatformTokenFile: a token or key that is rotated is used within ten
// seconds.
func TestPlatformTokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"vertex", "google", "bedrock-key", "mantle-key"}
	var lanes []lane
	for _, d := range doors {
		if !slices.Contains(names, d.name) {
			continue
		}
		file := filepath.Join(dir, d.name)
		renamed(t, file, "sk-secret-old-"+d.name+"\n")
		tg := d.target()
		tg.keyYAML = "{file: " + file + "}"
		if !strings.HasPrefix(d.platform, "v") && d.platform != fakeplatform.ClaudeOnGoogle {
			tg.keyYAML = "[" + tg.keyYAML + "]"
		}
		tg.rules = &fakeplatform.Rules{Keys: []string{"sk-secret-old-" + d.name}}
		l := doorLane(d.name, []target{tg, firstParty.target()})
		l.refused = true
		lanes = append(lanes, l)
	}
	e := startDoors(t, options{}, lanes...)
	for _, name := range names {
		l := e.lane(name)
		if got := servedBy(l, l.through(call{})); got != "200 "+name+"-a" {
			t.Fatalf("with the old key: %s", got)
		}
		l.fakes[0].SetRules(fakeplatform.Rules{Keys: []string{"sk-secret-new-" + name}})
		renamed(t, filepath.Join(dir, name), "sk-secret-new-"+name)
	}
	deadline := time.Now().Add(rereadWithin)
	for _, name := range names {
		l := e.lane(name)
		eventually(t, time.Until(deadline), "the new key of "+name+" is used", func() error {
			if got := servedBy(l, l.through(call{})); got != "200 "+name+"-a" {
				return fmt.Errorf("served by %s", got)
			}
			return nil
		})
	}
}
