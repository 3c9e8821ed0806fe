package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goodPolicy is the contract's block with what this build has, each later
// member at its off value.
const goodPolicy = `version: 1
limits:
  body: 32MiB              # request body; larger gets 413
  memory: 1GiB
  body_time: 60s
  hold: 8MiB
targets:
  anthropic:
    platform: anthropic
    url: https://api.anthropic.com
    alternate_urls: []
    ca_file: ""
    plaintext: false
    keys:
      - env: ANTHROPIC_API_KEY
      - {file: /run/secrets/anthropic-b, standby: false}
    forward_headers: []
    models: {}
    features: {}
    connect_timeout: 3s
    limits: {body: 32MiB, image: 10MiB, input_tokens: 0}
    labels: {operator: anthropic, region: us}
    degraded: false
    max_concurrency: 0
  claude-aws:   {platform: claude-on-aws, region: us-east-1, workspace: wrkspc_01, auth: key, keys: [{env: AWS_KEY}]}
  foundry:      {platform: foundry, resource: acme-ai, auth: key, hosting: anthropic, keys: [{env: FOUNDRY_KEY}]}
  local:
    platform: foundry
    url: http://127.0.0.1:8000
    plaintext: true
    api: messages
    models: {"claude-h*": haiku, claude-haiku-5-5: {id: haiku-55, features: {}}, "*": any}
    context: 0
    degraded: true
    tools: allow
    not_for: []
    keys: [passthrough]
    forward_headers: [X-Trace]
    limits: {body: 0}
routes:
  - name: interactive
    models: ["claude-*"]
    headers: {X-Team: kyc, x-tier: {prefix: go}, x-any: {present: true}}
    chain:
      - anthropic
      - claude-aws
      - {target: anthropic, model: claude-haiku-5-5}
      - {target: foundry, timeouts: {attempt: 30s, first_token: 10s}}
      - local
    order: priority
    require: {}
    actions:
      overloaded: retry
    clients: authenticated
    same_target_retries: 0
    max_attempts: 6
    timeouts:
      attempt: auto
      first_token: auto
      hold: 25s
      idle: 5m
      total: 9m30s
    backoff: {base: 250ms, max: 8s}
    retry_after: {default: 5s, max: 5m}
    portability: strip
    single_target: {}
    settle: {}
    on_exhausted: error
    output: {}
    client_headers: full
breaker:
  failures: 5
  window: 15s
  max_window: 5m
  long_window: 1m
client: {header: X-Client-Id}
require: {}
budget: {}
ramp: {}
guard: plan
on_service_down: {direct: local}
other_paths: reject
trail: {recent: 10000, file: "", store: none, keep: 30d, max_size: 2GiB}
state: {}
`

const minimalPolicy = `version: 1
targets:
  a: {platform: anthropic, keys: [{env: A_KEY}]}
routes:
  - name: r
    models: ["claude-*"]
    chain: [a]
`

func load(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Load("crossdoor.yaml", []byte(text), testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefaults(t *testing.T) {
	p := load(t, minimalPolicy)
	a := p.Targets[0]
	want := Policy{
		Limits:  Limits{Body: 32 << 20, Memory: 1 << 30, Hold: 8 << 20, BodyTime: time.Minute},
		Breaker: Breaker{Failures: 5, Window: 15 * time.Second, MaxWindow: 5 * time.Minute, LongWindow: time.Minute},
		Trail:   Trail{Recent: 10000},
		Targets: []*Target{{
			Name: "a", Platform: PlatformAnthropic,
			Endpoint:       Endpoint{Host: "api.anthropic.com", Port: 443, TLS: true},
			ConnectTimeout: 3 * time.Second,
			Auth:           AuthKey,
			Keys:           []Key{{Source: KeyEnv, Name: "A_KEY"}},
			Limits:         TargetLimits{Body: 32 << 20, Image: 10 << 20},
		}},
		Routes: []*Route{{
			Name: "r", Models: []string{"claude-*"}, Chain: []*Entry{{Target: a}}, MaxAttempts: 6,
			Timeouts:      Timeouts{Hold: 25 * time.Second, Idle: 5 * time.Minute, Total: 9*time.Minute + 30*time.Second},
			Backoff:       Backoff{Base: 250 * time.Millisecond, Max: 8 * time.Second},
			RetryAfter:    RetryAfter{Default: 5 * time.Second, Max: 5 * time.Minute},
			Portability:   PortabilityStrip,
			ClientHeaders: ClientHeadersFull,
		}},
		Guard: GuardPlan,
		Hash:  p.Hash, RenderHash: p.RenderHash,
	}
	if diff := cmp.Diff(want, *p, cmp.FilterPath(func(path cmp.Path) bool { return path.Last().String() == ".builtin" }, cmp.Ignore()), cmp.AllowUnexported(Target{})); diff != "" {
		t.Error(diff)
	}
}

// TestDefaultsParse: a default or bound in a tag that does not parse would be a
// silent zero.
func TestDefaultsParse(t *testing.T) {
	for _, typ := range fileTypes() {
		for i := range typ.NumField() {
			m := memberOf(typ.Field(i), i)
			for _, text := range []string{m.def, m.min, m.max} {
				if text == "" {
					continue
				}
				if problem := setScalar(reflect.New(m.typ).Elem(), text); problem != "" {
					t.Errorf("%s.%s: %q %s", typ.Name(), m.name, text, problem)
				}
			}
		}
	}
}

func TestContractBlock(t *testing.T) {
	p := load(t, goodPolicy)
	foundry, local := p.Target("foundry"), p.Target("local")
	r := p.Routes[0]
	tests := []struct {
		name      string
		got, want any
	}{
		{"order of targets", []string{p.Targets[0].Name, p.Targets[1].Name, p.Targets[2].Name, p.Targets[3].Name}, []string{"anthropic", "claude-aws", "foundry", "local"}},
		{"keys", p.Targets[0].Keys, []Key{{KeyEnv, "ANTHROPIC_API_KEY"}, {KeyFile, "/run/secrets/anthropic-b"}}},
		{"labels", p.Targets[0].Labels, map[string]string{"operator": "anthropic", "region": "us"}},
		{"url of claude-on-aws", p.Targets[1].Endpoint, Endpoint{"aws-external-anthropic.us-east-1.api.aws", 443, true}},
		{"workspace", p.Targets[1].Workspace, "wrkspc_01"},
		{"url of foundry", foundry.Endpoint, Endpoint{"acme-ai.services.ai.azure.com", 443, true}},
		{"path of foundry", foundry.PathPrefix, "/anthropic"},
		{"path of anthropic", p.Targets[0].PathPrefix, ""},
		{"plaintext url", local.Endpoint, Endpoint{"127.0.0.1", 8000, false}},
		{"a limit of 0", local.Limits, TargetLimits{Image: 10 << 20}},
		{"models in the file's order", local.Models, []ModelRule{{Model: "claude-h*", ID: "haiku"}, {Model: "claude-haiku-5-5", ID: "haiku-55"}, {Model: "*", ID: "any"}}},
		{"forward_headers are lower case", local.ForwardHeaders, []string{"x-trace"}},
		{"direct", p.Direct, local},
		{"client header is lower case", p.ClientHeader, "x-client-id"},
		{"route headers", r.Headers, []HeaderMatch{{Name: "x-team", Exact: "kyc"}, {Name: "x-tier", Prefix: "go"}, {Name: "x-any", Present: true}}},
		{"chain", r.Chain, []*Entry{{Target: p.Targets[0]}, {Target: p.Targets[1]}, {Target: p.Targets[0], Model: "claude-haiku-5-5"}, {Target: foundry, Attempt: 30 * time.Second, FirstToken: 10 * time.Second}, {Target: local}}},
		{"actions", r.Actions, map[Kind]Action{KindOverloaded: ActionRetry}},
		{"clients", r.Authenticated, true},
		{"written timeouts", []bool{r.Timeouts.HoldWritten, r.Timeouts.TotalWritten}, []bool{true, true}},
		{"hash", len(p.Hash), 12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !reflect.DeepEqual(tt.got, tt.want) {
				t.Errorf("got %+v, want %+v", tt.got, tt.want)
			}
		})
	}
}

func TestModelID(t *testing.T) {
	p := load(t, goodPolicy)
	tests := []struct {
		target, model, id string
		ok                bool
	}{
		{"anthropic", "claude-opus-5-5", "claude-opus-5-5", true},
		{"anthropic", "brand-new", "brand-new", true},
		{"claude-aws", "brand-new", "brand-new", true},
		{"foundry", "claude-opus-5-5", "claude-opus-5-5", true},
		{"foundry", "claude-sonnet-5-5", "claude-sonnet-5-5", false},
		{"local", "claude-haiku-5-5", "haiku-55", true},
		{"local", "claude-haiku-4-5", "haiku", true},
		{"local", "x", "any", true},
	}
	for _, tt := range tests {
		t.Run(tt.target+"/"+tt.model, func(t *testing.T) {
			id, ok := p.Target(tt.target).ModelID(tt.model)
			if ok != tt.ok || (ok && id != tt.id) {
				t.Errorf("%q %v, want %q %v", id, ok, tt.id, tt.ok)
			}
		})
	}
}

// TestWithoutCatalog: nothing is built in; first-party targets take any model.
func TestWithoutCatalog(t *testing.T) {
	p, err := Load("f", []byte(strings.Replace(minimalPolicy, `"claude-*"`, "claude-opus-5-5", 1)), Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := p.Targets[0].ModelID("claude-opus-5-5"); !ok || id != "claude-opus-5-5" {
		t.Errorf("%q %v", id, ok)
	}
}

func TestAccepted(t *testing.T) {
	tests := []struct{ name, from, to string }{
		{"a, b, a", "[a]", "[a, {target: a, model: claude-haiku-5-5}, a]"},
		{"an exact model at a first-party target", `["claude-*"]`, "[anything-new]"},
		{"an IPv6 host", "platform: anthropic,", "platform: anthropic, url: 'https://[::1]:8443',"},
		{"a url besides a resource", "platform: anthropic,", "platform: foundry, resource: acme, url: 'https://h.example',"},
		{"a mixed chain behind an ingress that checks", "[{env: A_KEY}]}", "[{env: A_KEY}]}\n  p: {platform: anthropic, keys: [passthrough]}"},
		{"hold equal to first_token", "[a]", "[a]\n    timeouts: {hold: 2s, first_token: 2s, idle: 2s, total: 3s}"},
		{"a short total with auto", "[a]", "[a]\n    timeouts: {total: 2s}"},
		{"an entry below a written hold", "[a]", "[{target: a, timeouts: {first_token: 10s}}]\n    timeouts: {hold: 25s}"},
		{"on_service_down as a word", "version: 1", "version: 1\non_service_down: reject"},
		{"an empty client", "version: 1", "version: 1\nclient: {}"},
		{"a document start", "version: 1", "---\nversion: 1"},
		{"a plain number of bytes", "version: 1", "version: 1\nlimits: {body: 1024}"},
		{"memory below body", "version: 1", "version: 1\nlimits: {memory: 1MiB}"},
		{"no records in memory", "version: 1", "version: 1\ntrail: {recent: 0, file: trail.jsonl}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(minimalPolicy, tt.from, tt.to, 1)
			if text == minimalPolicy {
				t.Fatal("the case changes nothing")
			}
			load(t, text)
		})
	}
}

// TestDefaultHold: without a written hold it is no longer than first_token.
func TestDefaultHold(t *testing.T) {
	p := load(t, strings.Replace(minimalPolicy, "[a]", "[a]\n    timeouts: {first_token: 10s}", 1))
	if got := p.Routes[0].Timeouts; got.Hold != 10*time.Second || got.HoldWritten {
		t.Errorf("%+v", got)
	}
}

// TestDefaultsGiveWay: what is written wins over the default of its partner.
func TestDefaultsGiveWay(t *testing.T) {
	p := load(t, strings.Replace(minimalPolicy, "[a]", "[a]\n    backoff: {max: 100ms}\n    retry_after: {default: 6m}", 1)+"breaker: {window: 10m}\n")
	r := p.Routes[0]
	if r.Backoff != (Backoff{100 * time.Millisecond, 100 * time.Millisecond}) {
		t.Errorf("%+v", r.Backoff)
	}
	if r.RetryAfter != (RetryAfter{6 * time.Minute, 6 * time.Minute}) {
		t.Errorf("%+v", r.RetryAfter)
	}
	if p.Breaker.Window != 10*time.Minute || p.Breaker.MaxWindow != 10*time.Minute {
		t.Errorf("%+v", p.Breaker)
	}
}

func TestHashes(t *testing.T) {
	base := load(t, goodPolicy)
	tests := []struct {
		name, from, to string
		render         bool
	}{
		{"a comment", "# request body; larger gets 413", "", false},
		{"order of the chain", "- anthropic\n      - claude-aws", "- claude-aws\n      - anthropic", false},
		{"an action", "overloaded: retry", "overloaded: stop", false},
		{"a key", "env: FOUNDRY_KEY", "env: OTHER_KEY", false},
		{"breaker", "failures: 5", "failures: 6", false},
		{"url", "http://127.0.0.1:8000", "http://127.0.0.1:8001", true},
		{"resource", "acme-ai", "acme-2", true},
		{"connect_timeout", "connect_timeout: 3s", "connect_timeout: 4s", true},
		{"ca_file", `ca_file: ""`, "ca_file: /ca.pem", true},
		{"new target", "  local:\n", "  other: {platform: anthropic, keys: [{env: A_KEY}]}\n  local:\n", true},
		{"idle", "idle: 5m", "idle: 9m", true},
		{"limits.body", "{body: 32MiB, image", "{body: 31MiB, image", false},
		{"limits of the service", "  body: 32MiB ", "  body: 31MiB ", true},
		{"on_service_down", "on_service_down: {direct: local}", "on_service_down: reject", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := load(t, strings.Replace(goodPolicy, tt.from, tt.to, 1))
			if p.Hash == base.Hash {
				t.Error("the hash of the file is the same")
			}
			if got := p.RenderHash != base.RenderHash; got != tt.render {
				t.Errorf("needs a new render: %v, want %v", got, tt.render)
			}
		})
	}
}

func ExampleLoad() {
	_, err := Load("crossdoor.yaml", []byte(`version: 1
targets:
  anthropic: {platform: anthropic, keys: [{env: ANTHROPIC_API_KEY}]}
routes:
  - name: all
    models: ["*"]
    chain: [antropic]
    timeout: {total: 5m}
`), Catalog{})
	fmt.Println(err)
	// Output:
	// crossdoor.yaml:7:13: routes[0].chain[0]: unknown target "antropic" (did you mean "anthropic"?)
	// crossdoor.yaml:8:5: routes[0].timeout: unknown member (did you mean "timeouts"?)
}
