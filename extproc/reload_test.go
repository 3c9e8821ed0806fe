package extproc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// What the client is told, by the route's client_headers; a degraded target is
// always told of.
func TestClientHeaderLevels(t *testing.T) {
	degraded := strings.Replace(twoTargets, "keys: [{env: KEY_A}]", "keys: [{env: KEY_A}], degraded: true", 1)
	basic := []string{names.ClientAttempts, names.ClientRequestID, names.ClientServedBy}
	full := []string{names.ClientAttempts, names.ClientModel, names.ClientRequestID, names.ClientServedBy, names.ClientTrail}
	with := func(yaml, level string) string {
		return strings.Replace(yaml, "chain: [a, b]", "chain: [a, b], client_headers: "+level, 1)
	}
	for _, c := range []struct {
		name, yaml string
		want       []string
	}{
		{"default", twoTargets, full},
		{"full", with(twoTargets, "full"), full},
		{"basic", with(twoTargets, "basic"), basic},
		{"none", with(twoTargets, "none"), nil},
		{"none, degraded", with(degraded, "none"), []string{names.ClientDegraded}},
		{"basic, degraded", with(degraded, "basic"), append([]string{basic[0], names.ClientDegraded}, basic[1:]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, c.yaml, func(r *replica) {
				e := r.post(plainBody)
				got := setHeaders(e.final(from(200, "application/json")))
				if diff := cmp.Diff(c.want, sortedKeys(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				e.plan.leave()
			})
		})
	}
}

// The client's name is cut and cleaned for the trail.
func TestClientName(t *testing.T) {
	yaml := twoTargets + "client: {header: x-client-id}\n"
	for _, c := range []struct{ name, value, want string }{
		{"plain", "team-a", "team-a"},
		{"control characters", "a\x01b\x7fc", "a b c"},
		{"long", strings.Repeat("x", 200), strings.Repeat("x", 128)},
		{"long, of characters that are two bytes", strings.Repeat("é", 200), strings.Repeat("é", 128)},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, yaml, func(r *replica) {
				e := r.post(plainBody, "x-client-id", c.value)
				e.served()
				if got := r.record().Client; got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// An exchange keeps the policy that it began with; a target that Envoy has no
// cluster of is left out until it is rendered.
func TestReload(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(plainBody)
		next := loadPolicy(r, strings.ReplaceAll(strings.Replace(twoTargets, "  b: {", "  n: {", 1), "chain: [a, b]", "chain: [n, a]"))
		r.health.Reload(next)
		r.server.Reload(next)
		if !r.server.Stale() || r.server.RenderState() != "differs" {
			t.Errorf("stale %v, %s", r.server.Stale(), r.server.RenderState())
		}
		e.judged(r, overloaded(), overloadedBody)
		if e.attempt(r); e.headers[names.Target] != "crossdoor-target-b" {
			t.Errorf("the old exchange goes to %s", e.headers[names.Target])
		}
		e.served()
		late := r.post(plainBody)
		h := setHeaders(late.final(from(200, "application/json")))
		if h[names.ClientServedBy] != "a" || h[names.ClientTrail] != "n skipped:not_rendered, a ok 0ms" {
			t.Errorf("before it is rendered: %v", h)
		}
		late.plan.leave()
		r.policy = next // what Envoy sends from now on
		first := r.post(plainBody)
		if h := setHeaders(first.final(from(200, "application/json"))); h[names.ClientServedBy] != "n" {
			t.Errorf("once it is rendered: %v", h)
		}
		first.plan.leave()
		if r.server.Stale() || r.server.RenderState() != "matches" {
			t.Errorf("stale %v, %s", r.server.Stale(), r.server.RenderState())
		}
	})
}
