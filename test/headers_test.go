package test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// hostile is what no platform may see, whatever a client sends.
func hostile() http.Header {
	return header(
		"Authorization", "Bearer sk-client-bearer", "X-Api-Key", "sk-client-key", "Api-Key", "sk-client-azure", "Anthropic-Workspace-Id", "wrkspc_client",
		"Cookie", "session=sk-client-cookie", "X-Crossdoor-Target", "crossdoor-target-evil", "X-Crossdoor-Id", "01EVIL", "X-Crossdoor-Retry", "1",
		"X-Crossdoor-Prepared", "yes", "X-Crossdoor-Length", "3", "X-Crossdoor-Timeout-Ms", "1", "X-Crossdoor-Node", "10.0.0.1:1", "X-Crossdoor-Look", "convert", "X-Crossdoor-Idle", "1s",
		"X-Envoy-Upstream-Rq-Timeout-Ms", "1", "X-Envoy-Upstream-Rq-Per-Try-Timeout-Ms", "1", "X-Envoy-Max-Retries", "0", "X-Envoy-Retry-On", "5xx",
		"X-Envoy-Hedge-On-Per-Try-Timeout", "true", "X-Envoy-Attempt-Count", "7", "X-Envoy-Expected-Rq-Timeout-Ms", "1", "X-Envoy-Original-Path", "/x", "X-Envoy-Internal", "true", "X-Envoy-Decorator-Operation", "x",
		"X-Forwarded-For", "10.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil", "X-Forwarded-Client-Cert", "By=spiffe://x", "Forwarded", "for=1.1.1.1", "Via", "1.1 x",
		"X-Request-Id", "11111111-1111-1111-1111-111111111111", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "a=b", "B3", "1", "X-B3-Traceid", "1",
		"X-Amz-Security-Token", "t", "X-Amz-Date", "d", "X-Goog-User-Project", "p", "X-Custom", "1", "X-Istio-Attributes", "a", "Proxy-Authorization", "Basic sk-client-proxy", "Te", "trailers",
		"Accept", "application/json", "User-Agent", "client/1.0", "Anthropic-Beta", "one-2026-01-01, two-2026-01-01", "Anthropic-User-Profile-Id", "prof_1", "Anthropic-Dangerous-Direct-Browser-Access", "true",
		"X-Stainless-Lang", "go", "X-Stainless-Retry-Count", "0", "Accept-Encoding", "gzip, br", "X-Team", "kyc", "Origin", "https://x", "Referer", "https://x", "Range", "bytes=0-1",
	)
}

// wantHeaders is the whole header list of a platform, sorted.
func wantHeaders(l *laneRun, i int, r fakeplatform.Request, extra ...string) []string {
	out := append([]string{
		"host: " + l.fakes[i].Addr(), "content-type: application/json", "content-length: " + strconv.FormatInt(r.BodySize, 10), "accept-encoding: identity",
		"accept: application/json", "user-agent: client/1.0", "anthropic-version: 2023-06-01", "anthropic-beta: one-2026-01-01,two-2026-01-01",
		"anthropic-user-profile-id: prof_1", "anthropic-dangerous-direct-browser-access: true", "x-stainless-lang: go", "x-stainless-retry-count: 0", "x-api-key: " + l.keys[i][0],
	}, extra...)
	if platformOf(l.targets[i]) == fakeplatform.ClaudeOnAWS {
		out = append(out, "anthropic-workspace-id: "+l.workspace())
	}
	slices.Sort(out)
	return out
}

func gotHeaders(r fakeplatform.Request) []string {
	var out []string
	for _, f := range r.Header {
		v := f.Value
		if strings.EqualFold(f.Name, "anthropic-beta") {
			v = strings.ReplaceAll(v, ", ", ",")
		}
		out = append(out, strings.ToLower(f.Name)+": "+v)
	}
	slices.Sort(out)
	return out
}

// TestFullHeaderList: nothing of the client's, of ours, of Envoy's or of another
// target's reaches a platform on any attempt.
func TestFullHeaderList(t *testing.T) {
	busy := fakeplatform.Error(529, "x")
	var flows []flow
	for _, c := range []struct {
		name string
		call call
	}{{"json", call{}}, {"sse", call{stream: true}}, {"h2", call{h2: true}}, {"chunked", call{chunked: true}}} {
		cl := c.call
		cl.header = hostile()
		if c.call.h2 {
			for _, n := range []string{"Te", "Proxy-Authorization"} {
				delete(cl.header, n)
			}
		}
		flows = append(flows, flow{
			lane: lane{name: c.name, targets: three(c.name), chain: "[@a, @b, @c, @a]"}, call: cl, scripts: [][]fakeplatform.Answer{{busy}, {busy}, {busy}},
			status: 200, served: "a", outcome: "failed_over", attempts: "a overloaded failover, b overloaded failover, c overloaded failover, a ok serve",
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				for i, f := range l.fakes {
					for _, r := range f.Requests() {
						got, want := gotHeaders(r), wantHeaders(l, i, r)
						if !slices.Equal(got, want) {
							t.Errorf("target %s, request %d:\n got %q\nwant %q", letter(i), r.N, got, want)
						}
					}
				}
			},
		})
	}
	flows = append(flows, flow{
		lane: lane{name: "forwarded", targets: []target{{yaml: []string{"forward_headers: [x-team, x-custom]"}}, {}}}, call: call{header: hostile()}, scripts: [][]fakeplatform.Answer{{busy}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			a, b := l.fakes[0].Requests()[0], l.fakes[1].Requests()[0]
			if got, want := gotHeaders(a), wantHeaders(l, 0, a, "x-team: kyc", "x-custom: 1"); !slices.Equal(got, want) {
				t.Errorf("with forward_headers:\n got %q\nwant %q", got, want)
			}
			if got, want := gotHeaders(b), wantHeaders(l, 1, b); !slices.Equal(got, want) {
				t.Errorf("what one target is sent stays there:\n got %q\nwant %q", got, want)
			}
		},
	})
	runFlows(t, options{}, flows...)
}

// TestBetaLines: several header lines equal one list; duplicates go.
func TestBetaLines(t *testing.T) {
	h := http.Header{"Anthropic-Beta": {"one-2026-01-01", "two-2026-01-01, one-2026-01-01", ""}}
	f := flow{
		lane: lane{name: "betas"}, call: call{header: h}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "x")}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			for i, fake := range l.fakes {
				if got := strings.ReplaceAll(fake.Requests()[0].Get("anthropic-beta"), " ", ""); got != "one-2026-01-01,two-2026-01-01" {
					t.Errorf("target %s got %q", letter(i), got)
				}
			}
		},
	}
	runFlows(t, options{}, f)
}

// TestProviderCannotSteer: what a platform answers with neither causes nor
// forbids a retry, and does not reach the client under our names.
func TestProviderCannotSteer(t *testing.T) {
	evil := []fakeplatform.Field{
		{Name: "x-crossdoor-retry", Value: "1"}, {Name: "x-crossdoor-served-by", Value: "evil"}, {Name: "x-crossdoor-local", Value: "UF;evil"}, {Name: "x-crossdoor-id", Value: "evil"},
		{Name: "x-crossdoor-degraded", Value: "evil"}, {Name: "x-crossdoor-length", Value: "1"}, {Name: "x-envoy-ratelimited", Value: "true"}, {Name: "x-envoy-upstream-service-time", Value: "1"}, {Name: "x-envoy-overloaded", Value: "true"}, {Name: "x-envoy-immediate-health-check-fail", Value: "true"},
		{Name: "server", Value: "their-server"}, {Name: "x-theirs", Value: "kept"},
	}
	good := func(name string) fakeplatform.Answer { return fakeplatform.Message("m", name, "fine").With(evil...) }
	bad := fakeplatform.Error(529, "x").With(evil...)
	invalid := fakeplatform.Error(400, "x").With(evil...)
	more := func(t testing.TB, _ *laneRun, a *answer, _ record) {
		if a.header.Get("x-theirs") != "kept" || a.header.Get("x-crossdoor-degraded") != "" {
			t.Errorf("headers %v", a.header)
		}
	}
	stream := fakeplatform.Stream(append([][]byte{startEvent}, wholeTail...)...).With(evil...)
	runFlows(t, options{},
		flow{lane: lane{name: "good"}, scripts: [][]fakeplatform.Answer{{good("good")}}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: more},
		flow{lane: lane{name: "good-sse"}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{stream}}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: more},
		flow{lane: lane{name: "bad"}, scripts: [][]fakeplatform.Answer{{bad}}, status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve"},
		flow{lane: lane{name: "invalid"}, scripts: [][]fakeplatform.Answer{{invalid}}, status: 400, served: "a", outcome: "stopped", attempts: "a invalid_request stop", more: more},
	)
}

// TestClientHeaders: full, basic, none, and the degraded one.
func TestClientHeaders(t *testing.T) {
	names := func(a *answer) string {
		var out []string
		for n := range a.header {
			if rest, ok := strings.CutPrefix(strings.ToLower(n), "x-crossdoor-"); ok {
				out = append(out, rest)
			}
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	mk := func(name, level, want string, degraded bool) flow {
		f := flow{lane: lane{name: name, targets: two(), route: []string{"client_headers: " + level}}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "x")}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve"}
		if degraded {
			f.lane.targets[1].yaml = []string{"degraded: true"}
		}
		f.more = func(t testing.TB, l *laneRun, a *answer, r record) {
			if got := names(a); got != want {
				t.Errorf("headers %q, want %q", got, want)
			}
			if degraded && (a.header.Get("x-crossdoor-degraded") != "model" || !slices.Equal(r.Degraded, []string{"model"})) {
				t.Errorf("degraded: header %q, trail %v", a.header.Get("x-crossdoor-degraded"), r.Degraded)
			}
			if degraded {
				l.e.metric(1, "degraded_total", "target", l.targetName(1))
			}
		}
		return f
	}
	runFlows(t, options{},
		mk("full", "full", "attempts model request-id served-by trail", false),
		mk("basic", "basic", "attempts request-id served-by", false),
		mk("none", "none", "", false),
		mk("full-degraded", "full", "attempts degraded model request-id served-by trail", true),
		mk("none-degraded", "none", "degraded", true),
	)
}

// TestRouteHeadersAndClient: routes by header, and who the client is.
func TestRouteHeadersAndClient(t *testing.T) {
	e := start(t, options{top: []string{"client: {header: x-client-id}"}},
		lane{name: "exact", targets: two(), models: "m", route: []string{"headers: {x-team: kyc}"}},
		lane{name: "prefix", targets: two(), models: "m", route: []string{"headers: {x-team: {prefix: pay}}"}},
		lane{name: "present", targets: two(), models: "m", route: []string{"headers: {x-team: {present: true}}"}},
		lane{name: "any", targets: two(), models: "m"},
	)
	for _, c := range []struct{ name, team, want string }{{"exact", "kyc", "exact"}, {"prefix", "payments", "prefix"}, {"present", "other", "present"}, {"none", "", "any"}} {
		t.Run(c.name, func(t *testing.T) {
			h := header("X-Client-Id", strings.Repeat("c", 140))
			if c.team != "" {
				h.Set("X-Team", c.team)
			}
			shared := e.lane(c.want)
			l := shared.in(t)
			a := l.send(call{header: h})
			r := l.byID(a.id())
			if r.Route != c.want || r.Client != strings.Repeat("c", 128) {
				t.Errorf("route %q, client of %d characters", r.Route, len(r.Client))
			}
		})
	}
}
