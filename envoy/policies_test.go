package envoy_test

import (
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// policies are the ones that goldens and runs are made of, by name.
func policies() map[string]*config.Policy {
	return map[string]*config.Policy{
		"one-target": onePolicy(),
		"failover":   failoverPolicy(),
		"direct":     directPolicy(),
		"mtls":       onePolicy(),
	}
}

// onePolicy is the smallest: the contract's defaults and a target in plaintext.
func onePolicy() *config.Policy {
	local := &config.Target{
		Name: "local", Platform: config.PlatformAnthropic, ConnectTimeout: 3 * time.Second,
		Endpoint: config.Endpoint{Host: "127.0.0.1", Port: 8000},
		Keys:     []config.Key{{Source: config.KeyEnv, Name: "LOCAL_KEY"}},
	}
	return policyOf("aaaaaaaaaaaa", []*config.Target{local}, routeOf("all", local))
}

// failoverPolicy has every kind of address, a retry that waits, and idle times
// that differ.
func failoverPolicy() *config.Policy {
	anthropic := &config.Target{
		Name: "anthropic", Platform: config.PlatformAnthropic, ConnectTimeout: 3 * time.Second,
		Endpoint: config.Endpoint{Host: "api.anthropic.com", Port: 443, TLS: true},
		Keys:     []config.Key{{Source: config.KeyEnv, Name: "ANTHROPIC_API_KEY"}},
	}
	aws := &config.Target{
		Name: "claude-aws", Platform: config.PlatformClaudeOnAWS, ConnectTimeout: 1500 * time.Millisecond,
		Endpoint: config.Endpoint{Host: "aws-external-anthropic.us-east-1.api.aws", Port: 443, TLS: true},
		Region:   "us-east-1", Keys: []config.Key{{Source: config.KeyFile, Name: "/run/secrets/aws"}},
	}
	four := &config.Target{
		Name: "gateway-v4", Platform: config.PlatformAnthropic, ConnectTimeout: 3 * time.Second, CAFile: "/etc/ssl/certs/ca-certificates.crt",
		Endpoint: config.Endpoint{Host: "192.0.2.7", Port: 8443, TLS: true},
	}
	six := &config.Target{
		Name: "gateway-v6", Platform: config.PlatformAnthropic, ConnectTimeout: 3 * time.Second,
		Endpoint: config.Endpoint{Host: "2001:db8::7", Port: 443, TLS: true},
	}
	mesh := &config.Target{
		Name: "mesh", Platform: config.PlatformAnthropic, ConnectTimeout: 3 * time.Second,
		Endpoint: config.Endpoint{Host: "gateway.internal", Port: 8080},
	}
	interactive := routeOf("interactive", anthropic, aws, four)
	interactive.SameTargetRetries = 2
	interactive.Chain[1].Attempt = 20 * time.Minute
	interactive.Timeouts.Total = 25 * time.Minute
	interactive.Actions = map[config.Kind]config.Action{config.KindRateLimit: config.ActionRetry}
	batch := routeOf("batch", six, mesh)
	batch.Timeouts.Idle = 2500 * time.Millisecond
	batch.Timeouts.Attempt = 2 * time.Second
	p := policyOf("bbbbbbbbbbbb", []*config.Target{anthropic, aws, four, six, mesh}, interactive, batch)
	p.Limits.Body = 256 << 10
	p.Limits.BodyTime = 90 * time.Second
	return p
}

// directPolicy sends what cannot be planned to a target whose paths differ.
func directPolicy() *config.Policy {
	foundry := &config.Target{
		Name: "foundry", Platform: config.PlatformFoundry, ConnectTimeout: 3 * time.Second, PathPrefix: "/anthropic",
		Endpoint: config.Endpoint{Host: "acme-ai.services.ai.azure.com", Port: 443, TLS: true},
		Keys:     []config.Key{{Source: config.KeyPassthrough}}, ForwardHeaders: []string{"x-acme-team"},
	}
	p := policyOf("cccccccccccc", []*config.Target{foundry}, routeOf("all", foundry))
	p.Direct = foundry
	return p
}

func policyOf(hash string, targets []*config.Target, routes ...*config.Route) *config.Policy {
	return &config.Policy{
		Hash: hash, RenderHash: hash, Targets: targets, Routes: routes,
		Limits: config.Limits{Body: 32 << 20, Memory: 1 << 30, Hold: 8 << 20, BodyTime: time.Minute},
	}
}

func routeOf(name string, targets ...*config.Target) *config.Route {
	r := &config.Route{
		Name: name, Models: []string{"*"}, MaxAttempts: 6,
		Timeouts:   config.Timeouts{Hold: 25 * time.Second, Idle: 5 * time.Minute, Total: 9*time.Minute + 30*time.Second},
		Backoff:    config.Backoff{Base: 250 * time.Millisecond, Max: 8 * time.Second},
		RetryAfter: config.RetryAfter{Default: 5 * time.Second, Max: 5 * time.Minute},
	}
	for _, t := range targets {
		r.Chain = append(r.Chain, &config.Entry{Target: t})
	}
	return r
}
