package policy_test

import (
	"fmt"
	"time"

	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
)

// One attempt: admitted, judged, reported. A 429 ejects the key for the time
// that the platform asked for.
func ExampleHealth() {
	target := &config.Target{
		Name: "anthropic", Platform: config.PlatformAnthropic,
		Keys: []config.Key{{Source: config.KeyEnv, Name: "ANTHROPIC_API_KEY"}},
	}
	health := policy.NewHealth(&config.Policy{Targets: []*config.Target{target}}, nil, policy.Observer{
		Opened: func(e policy.Event) { fmt.Println("ejected:", e.Scope, e.Key, e.Kind, e.Window) },
	})

	attempt, _ := health.Admit(target, "claude-wren-1", nil, nil)
	outcome := policy.Classify(policy.Answer{
		Status: 429, Local: "-;via_upstream", Platform: target.Platform,
		Header: func(name string) string { return map[string]string{"retry-after": "20"}[name] },
	}, time.Now())
	outcome.Cooldown = policy.Cooldown(outcome, config.RetryAfter{Default: 5 * time.Second, Max: 5 * time.Minute})
	attempt.Report(outcome)

	fmt.Println("next:", health.Look(target, "claude-wren-1", nil).Skip)
	// Output:
	// ejected: key_model env:ANTHROPIC_API_KEY rate_limit 20s
	// next: ejected
}
