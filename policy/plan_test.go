package policy

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

func TestNewPlanSkips(t *testing.T) {
	mib := int64(1 << 20)
	notB := func(target *config.Target) bool { return target.Name != "b" }
	cases := []struct {
		name     string
		prepare  func(r *config.Route)
		request  Request
		rendered func(*config.Target) bool
		a, b     Skip
	}{
		{"none", nil, Request{Model: wren}, nil, SkipNone, SkipNone},
		{"no model", func(r *config.Route) { r.Chain[0].Target.Models = nil }, Request{Model: wren}, nil, SkipNoModel, SkipNone},
		{"the entry's own model", func(r *config.Route) {
			r.Chain[0].Target.Models = []config.ModelRule{{Model: "other", ID: "other-id"}}
			r.Chain[0].Model = "other"
		}, Request{Model: wren}, nil, SkipNone, SkipNone},
		{"body at the limit", func(r *config.Route) { r.Chain[0].Target.Limits.Body = mib }, Request{Model: wren, BodyBytes: mib}, nil, SkipNone, SkipNone},
		{"body above it", func(r *config.Route) { r.Chain[0].Target.Limits.Body = mib }, Request{Model: wren, BodyBytes: mib + 1}, nil, SkipTooLarge, SkipNone},
		{"image at the limit", func(r *config.Route) { r.Chain[1].Target.Limits.Image = mib }, Request{Model: wren, LargestImage: mib}, nil, SkipNone, SkipNone},
		{"image above it", func(r *config.Route) { r.Chain[1].Target.Limits.Image = mib }, Request{Model: wren, LargestImage: mib + 1}, nil, SkipNone, SkipTooLarge},
		{"0 is not checked", nil, Request{Model: wren, BodyBytes: 1 << 40, LargestImage: 1 << 40}, nil, SkipNone, SkipNone},
		{"not rendered", nil, Request{Model: wren}, notB, SkipNone, SkipNotRendered},
		{"no model before not rendered", func(r *config.Route) { r.Chain[1].Target.Models = nil }, Request{Model: wren}, notB, SkipNone, SkipNoModel},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			route, _ := chainOf("a b")
			if c.prepare != nil {
				c.prepare(route)
			}
			p := NewPlan(route, c.request, c.rendered, time.Now())
			if len(p.Places) != 2 || p.Places[0].Skip != c.a || p.Places[1].Skip != c.b {
				t.Fatalf("%+v, want %q %q", p.Places, c.a, c.b)
			}
			for i, place := range p.Places {
				if place.Entry != route.Chain[i] {
					t.Errorf("place %d is another entry", i)
				}
				if (place.Model == "") != (place.Skip == SkipNoModel) {
					t.Errorf("place %d has the model %q", i, place.Model)
				}
			}
		})
	}
}

func TestNewPlanFit(t *testing.T) {
	both := []string{"context_management", "cache_control.ttl"}
	cases := []struct {
		name        string
		portability config.Portability
		fit         Fit // of b; a takes all
		limit       int64
		skip        Skip
		stripped    []string
		refused     []string
	}{
		{name: "as it is"},
		{name: "stripped", fit: Fit{Stripped: both}, stripped: both},
		{name: "stripped, strict", portability: config.PortabilityStrict, fit: Fit{Stripped: both}, skip: SkipFeature("context_management"), refused: both},
		{name: "nothing to strip, strict", portability: config.PortabilityStrict},
		{name: "refused", fit: Fit{Refused: []string{"mcp_servers", "container"}}, skip: SkipFeature("mcp_servers"), refused: []string{"mcp_servers", "container"}},
		{name: "refused, what is stripped does not count", fit: Fit{Refused: []string{"thread"}, Stripped: both}, skip: SkipFeature("thread"), refused: []string{"thread"}},
		{name: "refused, strict: both", portability: config.PortabilityStrict, fit: Fit{Refused: []string{"thread"}, Stripped: both}, skip: SkipFeature("thread"), refused: []string{"thread", "context_management", "cache_control.ttl"}},
		{name: "larger after the edits", fit: Fit{BodyBytes: 11, Stripped: both}, limit: 10, skip: SkipTooLarge},
		{name: "smaller after the edits", fit: Fit{BodyBytes: 10}, limit: 10},
		{name: "not edited", limit: 10, skip: SkipTooLarge},
		{name: "something in it is too large", fit: Fit{TooLarge: true}, skip: SkipTooLarge},
		{name: "refused before too large", fit: Fit{Refused: []string{"thread"}, TooLarge: true}, skip: SkipFeature("thread"), refused: []string{"thread"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			route, _ := chainOf("a b")
			route.Portability = c.portability
			route.Chain[1].Target.Limits.Body = c.limit
			var asked []string
			request := Request{Model: wren, BodyBytes: 12, Fit: func(e *config.Entry, model, id string) Fit {
				asked = append(asked, e.Target.Name+" "+model+" "+id)
				if e.Target.Name == "b" {
					return c.fit
				}
				return Fit{}
			}}
			p := NewPlan(route, request, nil, time.Now())
			if a := p.Places[0]; a.Skip != SkipNone || a.Stripped != nil || a.Refused != nil {
				t.Errorf("a: %+v", a)
			}
			if b := p.Places[1]; b.Skip != c.skip || !slices.Equal(b.Stripped, c.stripped) || !slices.Equal(b.Refused, c.refused) {
				t.Errorf("b: %+v", b)
			}
			if want := []string{"a " + wren + " " + wren, "b " + wren + " " + wren}; !slices.Equal(asked, want) {
				t.Errorf("asked %q, want %q", asked, want)
			}
		})
	}
}

// TestFitIsAskedOfModelsThatAreThere: a place without an ID is out already, and
// an entry's own model counts.
func TestFitIsAskedOfModelsThatAreThere(t *testing.T) {
	route, _ := chainOf("a b c")
	route.Chain[0].Target.Models = nil
	route.Chain[1].Model = "claude-lark-2"
	route.Chain[1].Target.Models = []config.ModelRule{{Model: "claude-lark-2", ID: "lark-at-b"}}
	var asked []string
	fit := func(e *config.Entry, model, id string) Fit {
		asked = append(asked, e.Target.Name+" "+model+" "+id)
		return Fit{}
	}
	NewPlan(route, Request{Model: wren, Fit: fit}, nil, time.Now())
	if want := []string{"b claude-lark-2 lark-at-b", "c " + wren + " " + wren}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestRefusals(t *testing.T) {
	route, _ := chainOf("a b a c")
	fits := map[string]Fit{"a": {Refused: []string{"thread", "mcp_servers"}}, "b": {Refused: []string{"mcp_servers"}}, "c": {Stripped: []string{"x"}}}
	plan := NewPlan(route, Request{Model: wren, Fit: func(e *config.Entry, _, _ string) Fit { return fits[e.Target.Name] }}, nil, time.Now())
	want := []Refusal{{"thread", []string{"a"}}, {"mcp_servers", []string{"a", "b"}}}
	if got := plan.Refusals(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A chain's order and length stay, whatever is left out.
func TestNewPlanModels(t *testing.T) {
	route, p := chainOf("a b a")
	p.Target("b").Models = []config.ModelRule{{Model: wren, ID: "wren-at-b"}, {Model: "*", ID: "rest-at-b"}}
	route.Chain[2].Model = "claude-lark-2"
	p.Target("a").Models = []config.ModelRule{{Model: "claude-lark-2", ID: "lark-at-a"}, {Model: "*", ID: "rest-at-a"}}
	plan := NewPlan(route, Request{Model: wren}, nil, time.Now())
	for i, want := range []string{"rest-at-a", "wren-at-b", "lark-at-a"} {
		if got := plan.Places[i].Model; got != want {
			t.Errorf("place %d: %s, want %s", i, got, want)
		}
	}
}

func TestPlanDeadline(t *testing.T) {
	cases := []struct {
		name   string
		client time.Duration // x-stainless-timeout
		want   time.Duration
	}{
		{"the route's", 0, 10 * time.Minute},
		{"a client that waits longer", time.Hour, 10 * time.Minute},
		{"a client that waits as long", 10 * time.Minute, 10*time.Minute - clientMargin},
		{"a client that waits less", time.Minute, time.Minute - clientMargin},
		{"a margin more than the route", 10*time.Minute + clientMargin, 10 * time.Minute},
		{"a client without patience", time.Millisecond, 0},
		{"less than nothing says nothing", -time.Second, 10 * time.Minute},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				route, _ := chainOf("a")
				now := time.Now()
				p := NewPlan(route, Request{Model: wren, Timeout: c.client}, nil, now)
				if p.Start != now || p.Deadline.Sub(now) != c.want {
					t.Errorf("deadline after %v, want %v", p.Deadline.Sub(now), c.want)
				}
			})
		})
	}
}

func TestPlanTimeouts(t *testing.T) {
	const s, m = time.Second, time.Minute
	cases := []struct {
		name    string
		entry   config.Entry
		route   config.Timeouts
		request Request
		attempt time.Duration
		first   time.Duration
		hold    time.Duration
	}{
		{"auto, nothing asked", config.Entry{}, config.Timeouts{Total: 10 * m, Hold: 20 * s}, Request{}, 60 * s, 60 * s, 20 * s},
		{"auto by tokens", config.Entry{}, config.Timeouts{Total: 10 * m, Hold: 20 * s}, Request{MaxTokens: 4000}, 160 * s, 60 * s, 20 * s},
		{"auto, a fraction of a second", config.Entry{}, config.Timeouts{Total: 10 * m, Hold: 20 * s}, Request{MaxTokens: 1}, 60*s + 25*time.Millisecond, 60 * s, 20 * s},
		{"auto ends at 8 minutes", config.Entry{}, config.Timeouts{Total: 10 * m, Hold: 20 * s}, Request{MaxTokens: 1 << 62}, 8 * m, 60 * s, 20 * s},
		{"auto by the body", config.Entry{}, config.Timeouts{Total: 10 * m, Hold: 20 * s}, Request{BodyBytes: 4 << 20}, 60 * s, 120 * s, 20 * s},
		{"auto by a body of 32 MiB ends at idle", config.Entry{}, config.Timeouts{Total: 10 * m, Hold: 20 * s}, Request{BodyBytes: 32 << 20}, 60 * s, 5 * m, 20 * s},
		{"half of a total that is written", config.Entry{}, config.Timeouts{Total: 40 * s, TotalWritten: true, Hold: 20 * s}, Request{}, 20 * s, 20 * s, 20 * s},
		{"a written total beyond auto", config.Entry{}, config.Timeouts{Total: 30 * m, TotalWritten: true, Hold: 20 * s}, Request{MaxTokens: 1 << 30}, 8 * m, 60 * s, 20 * s},
		{"half of a default total does not count", config.Entry{}, config.Timeouts{Total: 40 * s, Hold: 20 * s}, Request{}, 60 * s, 60 * s, 20 * s},
		{"the route's", config.Entry{}, config.Timeouts{Attempt: 7 * s, FirstToken: 9 * s, Total: 10 * s, TotalWritten: true, Hold: 5 * s}, Request{MaxTokens: 4000}, 7 * s, 9 * s, 5 * s},
		{"the entry's before the route's", config.Entry{Attempt: 3 * s, FirstToken: 2 * s}, config.Timeouts{Attempt: 7 * s, FirstToken: 9 * s, Total: 10 * m, Hold: 5 * s}, Request{}, 3 * s, 2 * s, 2 * s},
		{"hold as long as the first token", config.Entry{FirstToken: 5 * s}, config.Timeouts{Total: 10 * m, Hold: 5 * s}, Request{}, 60 * s, 5 * s, 5 * s},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			route, _ := chainOf("a")
			route.Timeouts = c.route
			route.Timeouts.Idle = 5 * m
			c.entry.Target = route.Chain[0].Target
			route.Chain[0] = &c.entry
			c.request.Model = wren
			p := NewPlan(route, c.request, nil, time.Now())
			if got := p.AttemptTimeout(0); got != c.attempt {
				t.Errorf("attempt %v, want %v", got, c.attempt)
			}
			if got := p.FirstToken(0); got != c.first {
				t.Errorf("first token %v, want %v", got, c.first)
			}
			if got := p.Hold(0); got != c.hold {
				t.Errorf("hold %v, want %v", got, c.hold)
			}
			if got := p.Timeout(0); got != c.attempt {
				t.Errorf("per-try timeout of a plain answer %v, want %v", got, c.attempt)
			}
			c.request.Stream = true
			if got := NewPlan(route, c.request, nil, time.Now()).Timeout(0); got != c.first {
				t.Errorf("per-try timeout of a stream %v, want %v", got, c.first)
			}
		})
	}
}
