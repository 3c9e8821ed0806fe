package config

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// cloudPolicy has a target of every platform, and members that goodPolicy has
// not.
const cloudPolicy = `version: 1
targets:
  anthropic: {platform: anthropic, keys: [{env: A_KEY}], fetch_files: true}
  aws: {platform: claude-on-aws, region: us-east-1, workspace: wrkspc_01}
  aws-key: {platform: claude-on-aws, region: us-east-1, workspace: wrkspc_01, keys: [{env: A_KEY}]}
  google: {platform: claude-on-google, project: acme, workspace: wrkspc_02, fetch_files: true}
  google-eu: {platform: claude-on-google, project: "example.com:acme", location: eu, workspace: wrkspc_02, auth: adc, token: {file: /token}}
  bedrock: {platform: bedrock, region: eu-central-1}
  bedrock-key: {platform: bedrock, region: us-west-2, profile: global, keys: [{env: B_KEY}, {file: /b}]}
  bedrock-none: {platform: bedrock, region: us-west-2, profile: none, auth: sigv4, url: "http://127.0.0.1:9", plaintext: true}
  mantle: {platform: mantle, region: us-east-1, auth: sigv4, limits: {body: 0}}
  mantle-key: {platform: mantle, region: us-east-1, auth: key, keys: [{env: B_KEY}]}
  vertex: {platform: vertex, project: acme, region: eu}
  vertex-global: {platform: vertex, project: "123456", region: global, token: {env: G_TOKEN}}
  vertex-region: {platform: vertex, project: acme, region: europe-west1, limits: {image: 1MiB}}
  foundry: {platform: foundry, resource: acme-ai, auth: entra}
  foundry-azure: {platform: foundry, resource: acme-ai, hosting: azure, keys: [passthrough]}
routes:
  - name: r
    models: [claude-opus-5-5]
    chain: [anthropic, aws, google, bedrock, bedrock-none, vertex, foundry]
    portability: strict
guard: scan
other_paths:
  target: google
  allow: [POST /v1/messages/batches, "GET /v1/messages/batches/*", "GET /v1/files*", DELETE /v1/files/, "GET /v1/models/*"]
`

func TestPlatforms(t *testing.T) {
	p := load(t, cloudPolicy)
	host := func(h string) Endpoint { return Endpoint{Host: h, Port: 443, TLS: true} }
	limits := func(body, image int64) TargetLimits { return TargetLimits{Body: body << 20, Image: image << 20} }
	tests := map[string]Target{
		"anthropic": {Endpoint: host("api.anthropic.com"), Auth: AuthKey, Keys: []Key{{KeyEnv, "A_KEY"}}, FetchFiles: true, Limits: limits(32, 10)},
		"aws": {
			Endpoint: host("aws-external-anthropic.us-east-1.api.aws"), Region: "us-east-1", Workspace: "wrkspc_01",
			Auth: AuthSigV4, Keys: []Key{{Source: KeyAWS}}, Limits: limits(32, 10),
		},
		"aws-key": {
			Endpoint: host("aws-external-anthropic.us-east-1.api.aws"), Region: "us-east-1", Workspace: "wrkspc_01",
			Auth: AuthKey, Keys: []Key{{KeyEnv, "A_KEY"}}, Limits: limits(32, 10),
		},
		"google": {
			Endpoint: host("claude.googleapis.com"), PathPrefix: "/v1/projects/acme/locations/global/workspaces/wrkspc_02/invoke",
			Project: "acme", Location: "global", Workspace: "wrkspc_02",
			Auth: AuthADC, Keys: []Key{{Source: KeyGoogle}}, FetchFiles: true, Limits: limits(32, 10),
		},
		"google-eu": {
			Endpoint: host("claude.googleapis.com"), PathPrefix: "/v1/projects/example.com:acme/locations/eu/workspaces/wrkspc_02/invoke",
			Project: "example.com:acme", Location: "eu", Workspace: "wrkspc_02",
			Auth: AuthADC, Keys: []Key{{KeyFile, "/token"}}, Limits: limits(32, 10),
		},
		"bedrock": {
			Endpoint: host("bedrock-runtime.eu-central-1.amazonaws.com"), Region: "eu-central-1", Profile: ProfileGeo,
			Auth: AuthSigV4, Keys: []Key{{Source: KeyAWS}}, Limits: limits(20, 5),
		},
		"bedrock-key": {
			Endpoint: host("bedrock-runtime.us-west-2.amazonaws.com"), Region: "us-west-2", Profile: ProfileGlobal,
			Auth: AuthKey, Keys: []Key{{KeyEnv, "B_KEY"}, {KeyFile, "/b"}}, Limits: limits(20, 5),
		},
		"bedrock-none": {
			Endpoint: Endpoint{Host: "127.0.0.1", Port: 9}, Region: "us-west-2", Profile: ProfileNone,
			Auth: AuthSigV4, Keys: []Key{{Source: KeyAWS}}, Limits: limits(20, 5),
		},
		"mantle": {
			Endpoint: host("bedrock-mantle.us-east-1.api.aws"), PathPrefix: "/anthropic", Region: "us-east-1",
			Auth: AuthSigV4, Keys: []Key{{Source: KeyAWS}}, Limits: limits(0, 5),
		},
		"mantle-key": {
			Endpoint: host("bedrock-mantle.us-east-1.api.aws"), PathPrefix: "/anthropic", Region: "us-east-1",
			Auth: AuthKey, Keys: []Key{{KeyEnv, "B_KEY"}}, Limits: limits(20, 5),
		},
		"vertex": {
			Endpoint: host("aiplatform.eu.rep.googleapis.com"), Project: "acme", Region: "eu",
			Auth: AuthADC, Keys: []Key{{Source: KeyGoogle}}, Limits: limits(30, 5),
		},
		"vertex-global": {
			Endpoint: host("aiplatform.googleapis.com"), Project: "123456", Region: "global",
			Auth: AuthADC, Keys: []Key{{KeyEnv, "G_TOKEN"}}, Limits: limits(30, 5),
		},
		"vertex-region": {
			Endpoint: host("europe-west1-aiplatform.googleapis.com"), Project: "acme", Region: "europe-west1",
			Auth: AuthADC, Keys: []Key{{Source: KeyGoogle}}, Limits: limits(30, 1),
		},
		"foundry": {
			Endpoint: host("acme-ai.services.ai.azure.com"), PathPrefix: "/anthropic", Resource: "acme-ai", Hosting: HostingAnthropic,
			Auth: AuthEntra, Keys: []Key{{Source: KeyEntra}}, Limits: limits(32, 10),
		},
		"foundry-azure": {
			Endpoint: host("acme-ai.services.ai.azure.com"), PathPrefix: "/anthropic", Resource: "acme-ai", Hosting: HostingAzure,
			Auth: AuthKey, Keys: []Key{{Source: KeyPassthrough}}, Limits: limits(32, 10),
		},
	}
	if len(tests) != len(p.Targets) {
		t.Errorf("%d of %d targets are looked at", len(tests), len(p.Targets))
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			ignored := cmpopts.IgnoreFields(Target{}, "Name", "Platform", "ConnectTimeout", "builtin")
			if diff := cmp.Diff(want, *p.Target(name), ignored); diff != "" {
				t.Error(diff)
			}
		})
	}
	if p.Guard != GuardScan || p.Routes[0].Portability != PortabilityStrict {
		t.Errorf("guard %q, portability %q", p.Guard, p.Routes[0].Portability)
	}
}

// TestModelPlaces: the table is asked for the target's own place.
func TestModelPlaces(t *testing.T) {
	p := load(t, cloudPolicy)
	for target, want := range map[string]string{
		"anthropic": "claude-opus-5-5", "bedrock": "geo.anthropic.claude-opus-5-5", "bedrock-key": "global.anthropic.claude-opus-5-5",
		"bedrock-none": "none.anthropic.claude-opus-5-5", "mantle": "", "vertex": "claude-opus-5-5",
	} {
		if id, _ := p.Target(target).ModelID("claude-opus-5-5"); want != "" && id != want {
			t.Errorf("%s: %q, want %q", target, id, want)
		}
	}
	for target, want := range map[string]bool{
		"anthropic": true, "aws": true, "google": true, "bedrock": false, "mantle": false, "vertex": false, "foundry": false, "foundry-azure": false,
	} {
		if _, ok := p.Target(target).ModelID("brand-new"); ok != want {
			t.Errorf("%s takes a model that is in no table: %v", target, ok)
		}
	}
}

func TestKeyPlaces(t *testing.T) {
	for want, key := range map[string]Key{
		"env:A": {KeyEnv, "A"}, "file:/a": {KeyFile, "/a"}, "passthrough": {Source: KeyPassthrough},
		"sigv4": {Source: KeyAWS}, "adc": {Source: KeyGoogle}, "entra": {Source: KeyEntra},
	} {
		if got := key.Place(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFeatures(t *testing.T) {
	p := load(t, strings.Replace(minimalPolicy, "keys: [{env: A_KEY}]", `keys: [{env: A_KEY}],
    features: {cache_control.ttl: strip, output_config.effort: refuse},
    models: {exact: {id: x, features: {mcp_servers: keep, output_config.effort: keep}}, "exac?": {id: y, features: {cache_control.ttl: keep}}, plain: z}`, 1))
	a := p.Targets[0]
	target := map[string]FeatureAction{"cache_control.ttl": FeatureStrip, "output_config.effort": FeatureRefuse}
	for model, want := range map[string]map[string]FeatureAction{
		"other": target,
		"plain": target,
		"exact": {"cache_control.ttl": FeatureStrip, "output_config.effort": FeatureKeep, "mcp_servers": FeatureKeep},
		"exacy": {"cache_control.ttl": FeatureKeep, "output_config.effort": FeatureRefuse},
	} {
		if got := a.FeaturesFor(model); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
	if got := load(t, minimalPolicy).Targets[0].FeaturesFor("any"); got != nil {
		t.Errorf("without features: %v", got)
	}
}

// TestFeaturesWithoutTable: without a table every name is taken.
func TestFeaturesWithoutTable(t *testing.T) {
	text := strings.Replace(minimalPolicy, "keys:", "features: {anything: strip}, keys:", 1)
	if _, err := Load("f", []byte(text), Catalog{}); err != nil {
		t.Error(err)
	}
}

func TestOtherPaths(t *testing.T) {
	p := load(t, cloudPolicy)
	want := &OtherPaths{Target: p.Target("google"), Allow: []PathRule{
		{"POST", "/v1/messages/batches", false},
		{"GET", "/v1/messages/batches/", true},
		{"GET", "/v1/files", true},
		{"DELETE", "/v1/files/", false},
		{"GET", "/v1/models/", true},
	}}
	if !reflect.DeepEqual(p.OtherPaths, want) {
		t.Errorf("%+v, want %+v", p.OtherPaths, want)
	}
	if load(t, goodPolicy).OtherPaths != nil {
		t.Error("reject is a target")
	}
}

func TestOtherPathsAllows(t *testing.T) {
	some := load(t, cloudPolicy).OtherPaths
	all := &OtherPaths{Allow: []PathRule{{"GET", "/", true}, {"POST", "/v1/messages", true}}}
	tests := []struct {
		name         string
		rules        *OtherPaths
		method, path string
		want         bool
	}{
		{"exact", some, "POST", "/v1/messages/batches", true},
		{"with a query", some, "POST", "/v1/messages/batches?beta=true&x=%2F", true},
		{"another method", some, "GET", "/v1/messages/batches", false},
		{"the method's case", some, "post", "/v1/messages/batches", false},
		{"longer than exact", some, "POST", "/v1/messages/batches/x", false},
		{"prefix", some, "GET", "/v1/messages/batches/msgbatch_01/results", true},
		{"prefix without the rest", some, "GET", "/v1/messages/batches/", true},
		{"inside a segment", some, "GET", "/v1/files2", true},
		{"not named", some, "GET", "/v1/skills", false},
		{"one model", some, "GET", "/v1/models/claude-opus-5-5", true},
		{"an escape", some, "GET", "/v1/files/%2e%2e/organizations", false},
		{"dots", some, "GET", "/v1/files/../organizations", false},
		{"one dot", some, "GET", "/v1/files/./x", false},
		{"dots in a name", some, "GET", "/v1/files/a..b", true},
		{"an empty segment", some, "GET", "/v1/files//x", false},
		{"a backslash", some, "GET", `/v1/files/..\organizations`, false},
		{"no slash", some, "GET", "v1/files", false},
		{"no path", some, "GET", "", false},
		{"organisations", all, "GET", "/v1/organizations", false},
		{"below organisations", all, "GET", "/v1/organizations/me", false},
		{"organisations in capitals", all, "GET", "/V1/Organizations/me", false},
		{"organisations with a query", all, "GET", "/v1/organizations?x", false},
		{"user profiles", all, "GET", "/v1/user_profiles/x", false},
		{"a name that begins alike", all, "GET", "/v1/organizations2", true},
		{"what is planned", all, "POST", "/v1/messages", false},
		{"what is planned, with a slash", all, "POST", "/v1/messages/", false},
		{"what is planned, besides", all, "POST", "/v1/messages/count_tokens", false},
		{"what the service answers", all, "GET", "/v1/models", false},
		{"the rest", all, "GET", "/v1/skills", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.rules.Allows(tt.method, tt.path); got != tt.want {
				t.Errorf("%s %s: %v", tt.method, tt.path, got)
			}
		})
	}
}

func TestCloudHashes(t *testing.T) {
	base := load(t, cloudPolicy)
	tests := []struct {
		name, from, to string
		render         bool
	}{
		{"region", "region: eu-central-1", "region: eu-west-1", true},
		{"a location with a host of its own", "region: europe-west1", "region: europe-west4", true},
		{"workspace of the target of other paths", "project: acme, workspace: wrkspc_02", "project: acme, workspace: wrkspc_03", true},
		{"workspace of another target", "location: eu, workspace: wrkspc_02", "location: eu, workspace: wrkspc_03", false},
		{"target of other paths", "target: google", "target: anthropic", true},
		{"what is allowed", "DELETE /v1/files/", "DELETE /v1/files/x", true},
		{"no other paths", "other_paths:\n", "client: {}\nx-other:\n", true},
		{"profile", "profile: global", "profile: geo", false},
		{"auth", "workspace: wrkspc_01}", "workspace: wrkspc_01, auth: key, keys: [{env: A_KEY}]}", false},
		{"guard", "guard: scan", "guard: plan", false},
		{"portability", "portability: strict", "portability: strip", false},
		{"fetch_files", "keys: [{env: A_KEY}], fetch_files: true", "keys: [{env: A_KEY}]", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(cloudPolicy, tt.from, tt.to, 1)
			if head, _, cut := strings.Cut(text, "x-other:"); cut {
				text = head
			}
			if text == cloudPolicy {
				t.Fatal("the case changes nothing")
			}
			if got := load(t, text).RenderHash != base.RenderHash; got != tt.render {
				t.Errorf("needs a new render: %v, want %v", got, tt.render)
			}
		})
	}
}

// TestNeverPaths: what is never sent on is the caller's copy, and no rule names
// it.
func TestNeverPaths(t *testing.T) {
	NeverPaths()[0] = "x"
	for _, p := range NeverPaths() {
		if _, problem := parsePathRule("GET " + p); problem == "" {
			t.Errorf("%s may be allowed", p)
		}
	}
}
