package policy_test

import (
	"fmt"
	"time"

	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
)

// One request over a chain of two: the first target is overloaded, the second
// one serves.
func ExampleExchange() {
	every := []config.ModelRule{{Model: "*", ID: "claude-wren-1"}}
	target := func(name string) *config.Target {
		return &config.Target{Name: name, Platform: config.PlatformAnthropic, Models: every, Keys: []config.Key{{Name: name}}}
	}
	p := &config.Policy{Targets: []*config.Target{target("first"), target("second")}}
	route := &config.Route{
		Chain: []*config.Entry{{Target: p.Targets[0]}, {Target: p.Targets[1]}}, MaxAttempts: 6,
		Timeouts: config.Timeouts{Total: time.Minute},
	}
	health := policy.NewHealth(p, nil, policy.Observer{})
	hasKey := func(*config.Target, int) bool { return true }

	now := time.Now()
	x := policy.NewExchange(policy.NewPlan(route, policy.Request{Model: "claude-wren-1"}, nil, now), health, hasKey)
	a, _ := x.Next(now)
	fmt.Println("attempt", a.N, "at", x.Plan.Places[a.Place].Entry.Target.Name)
	outcome := policy.Classify(policy.Answer{Status: 529, Platform: config.PlatformAnthropic}, now)
	decision, _ := x.Fail(a.N, outcome, now)
	fmt.Println(outcome.Kind, "->", decision.Verb)

	a, _ = x.Next(now)
	fmt.Println("attempt", a.N, "at", x.Plan.Places[a.Place].Entry.Target.Name)
	fmt.Println(x.Commit(a.N, now), x.Finish(a.N, policy.OutcomeOf(config.KindOK, ""), now))
	x.End(policy.OutcomeOf(config.KindClientGone, ""), now)
	fmt.Println("now", x.State())
	// Output:
	// attempt 1 at first
	// overloaded -> failover
	// attempt 2 at second
	// <nil> <nil>
	// now ended
}
