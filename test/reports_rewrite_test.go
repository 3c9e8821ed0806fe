package test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// says adds a line to a lane's target.
func (l lane) says(target int, yaml string) lane {
	l.targets[target].yaml = append(slices.Clip(l.targets[target].yaml), yaml)
	return l
}

// degraded checks what the client, the trail and the metric say of what was
// stripped for the target that served; none is nothing.
func degraded(target int, members ...string) func(testing.TB, *laneRun, *answer, record) {
	return func(t testing.TB, l *laneRun, a *answer, r record) {
		t.Helper()
		if got, want := strings.ReplaceAll(a.header.Get("x-crossdoor-degraded"), " ", ""), strings.Join(members, ","); got != want {
			t.Errorf("x-crossdoor-degraded %q, want %q", got, want)
		}
		if !slices.Equal(r.Degraded, members) {
			t.Errorf("degraded %q in the trail, want %q", r.Degraded, members)
		}
		for _, m := range members {
			if !strings.Contains(r.line, `"stripped":[`) {
				t.Errorf("the plan does not say what was stripped: %s", r.line)
			}
			l.e.metric(1, "stripped_total", "target", l.targetName(target), "member", m)
		}
	}
}

// cutFrom is wireBody less some text.
func cutFrom(texts ...string) func(string, []byte) []byte {
	return func(platform string, body []byte) []byte {
		body = wireBody(platform, body)
		if platform == fp {
			return body
		}
		for _, text := range texts {
			body = bytes.ReplaceAll(body, []byte(text), nil)
		}
		return body
	}
}

// cached is a request with a one-hour cache in all three places.
func cached() []byte {
	const hour = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	return []byte(`{"model":"claude-wren-1","max_tokens":128,"system":[{"type":"text","text":"You keep the pantry ledger of Quillfern Ltd.",` + hour + `}],` +
		`"tools":[{"name":"ledger_lookup","input_schema":{"type":"object"}},{"name":"peg","input_schema":{"type":"object"},` + hour + `}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Warm the larder",` + hour + `}]}]}`)
}

// TestReport35_CacheTTL: where a target is declared to have no ttl, that member
// alone goes, at every place; where it is not, nothing does.
func TestReport35_CacheTTL(t *testing.T) {
	none := wrenLane("r35", []string{fp, bedrock}).says(1, "features: {cache_control.ttl: strip}")
	none.targets[1].rules.Refuse = []string{"cache_control.ttl"}
	strip := report{flow: flow{
		lane: none, call: call{body: cached()}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: degraded(1, "cache_control.ttl"),
	}, wire: cutFrom(`,"ttl":"1h"`)}
	keep := report{flow: flow{
		lane: wrenLane("r35-kept", []string{fp, bedrock}), call: call{body: cached()}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: degraded(1),
	}}
	runReports(t, options{}, strip, keep)
}

// TestReport37_CachingIsKept: markers arrive where caching works, at a primary as
// at a fallback.
func TestReport37_CachingIsKept(t *testing.T) {
	marked := bytes.Replace(cached(), []byte("Quillfern Ltd."), []byte("Quillfern Ltd."+strings.Repeat(" More.", 350)), 1)
	marked = bytes.ReplaceAll(marked, []byte(`,"ttl":"1h"`), nil)
	var reports []report
	for _, p := range []string{vertex, bedrock, foundry, cpaws} {
		reports = append(reports, report{flow: flow{
			lane: wrenLane("r37-"+p, []string{p}), call: call{body: marked},
			status: 200, served: "a", outcome: "served", attempts: "a ok serve", more: degraded(0),
		}})
	}
	runReports(t, options{}, reports...)
}

// TestReport39_BetaTokens: each token is looked at by itself, however the header
// is written. What a platform does not list is left out there; what is left keeps
// its order; nothing left is no header.
func TestReport39_BetaTokens(t *testing.T) {
	list := []string{"claude-code-20250219", " oauth-2025-04-20", "interleaved-thinking-2025-05-14 ", "fast-mode-2026-02-01"}
	forms := map[string]http.Header{"line": {"Anthropic-Beta": {strings.Join(list, ",")}}, "lines": {"Anthropic-Beta": list}}
	mixed := http.Header{"Anthropic-Beta": {"oauth-2025-04-20,context-1m-2025-08-07", "fast-mode-2026-02-01 , effort-2025-11-24,context-1m-2025-08-07"}}
	betas := func(platform string, body []byte) []byte {
		return bytes.Replace(wireBody(platform, body), []byte(`"bedrock-2023-05-31",`), []byte(`"bedrock-2023-05-31","anthropic_beta":["context-1m-2025-08-07","effort-2025-11-24"],`), 1)
	}
	reports := []report{{flow: flow{lane: wrenLane("r39-mixed", []string{fp, bedrock}), call: call{header: mixed}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: degraded(1)},
		wire: func(p string, b []byte) []byte {
			if p == fp {
				return b
			}
			return betas(p, b)
		}}}
	for form, h := range forms {
		for _, c := range []struct {
			platform, header string
			stripped         []string
		}{
			{bedrock, "", []string{"interleaved-thinking-2025-05-14"}},
			{fakeplatform.Mantle, "claude-code-20250219,interleaved-thinking-2025-05-14", nil},
			{vertex, "interleaved-thinking-2025-05-14", nil},
			{foundry, "claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14", nil},
			{cpaws, "claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14,fast-mode-2026-02-01", nil},
		} {
			reports = append(reports, report{flow: flow{
				lane: wrenLane("r39-"+form+"-"+c.platform, []string{fp, c.platform}), call: call{header: h}, scripts: [][]fakeplatform.Answer{{busy529}},
				status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
				more: func(t testing.TB, l *laneRun, a *answer, r record) {
					got := l.fakes[1].Requests()[0]
					if v := strings.ReplaceAll(got.Get("anthropic-beta"), " ", ""); v != c.header || (v == "") != (got.Count("anthropic-beta") == 0) {
						t.Errorf("anthropic-beta %q, want %q", v, c.header)
					}
					degraded(1, c.stripped...)(t, l, a, r)
				},
			}})
		}
	}
	runReports(t, options{}, reports...)
}

// TestReport41_TokenAndMemberGoTogether: where a platform has not what a beta
// opens, token and member both go and the client is told; with `portability:
// strict` the request does not go there.
func TestReport41_TokenAndMemberGoTogether(t *testing.T) {
	const member = `"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`
	const compact = `"context_management":{"edits":[{"type":"compact_20260112"}]}`
	beta := func(name string) http.Header { return header("Anthropic-Beta", name) }
	lacks := func(name string, route ...string) lane {
		l := wrenLane(name, []string{fp, bedrock}, route...).says(1, "features: {context_management: strip}")
		l.targets[1].rules.Refuse = []string{"context_management"}
		l.targets[1].rules.Betas = []string{}
		return l
	}
	together := func(t testing.TB, l *laneRun, a *answer, r record) {
		degraded(1, "context_management")(t, l, a, r)
		if n := l.fakes[1].Requests()[0].Count("anthropic-beta"); n != 0 {
			t.Errorf("%d beta headers without what they open", n)
		}
	}
	strip := report{flow: flow{
		lane: lacks("r41"), call: call{body: r1(member), header: beta("context-management-2025-06-27")}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: together,
	}, wire: cutFrom("," + member)}
	kept := report{flow: flow{
		lane: wrenLane("r41-kept", []string{fp, bedrock}), call: call{body: r1(member), header: beta("context-management-2025-06-27")}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: degraded(1),
	}, wire: func(p string, b []byte) []byte {
		return bytes.Replace(wireBody(p, b), []byte(`"bedrock-2023-05-31",`), []byte(`"bedrock-2023-05-31","anthropic_beta":["context-management-2025-06-27"],`), 1)
	}}
	// By the table alone: foundry does not take this beta.
	table := report{flow: flow{
		lane: wrenLane("r41-table", []string{fp, foundry}), call: call{body: r1(compact), header: beta("compact-2026-01-12")}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		more: func(t testing.TB, l *laneRun, a *answer, r record) {
			if !strings.HasPrefix(a.header.Get("x-crossdoor-degraded"), "context_management") || l.fakes[1].Requests()[0].Count("anthropic-beta") != 0 {
				t.Errorf("degraded %q, headers\n%s", a.header.Get("x-crossdoor-degraded"), headerText(l.fakes[1].Requests()[0]))
			}
		},
	}, wire: cutFrom("," + compact)}
	strict := report{flow: flow{
		lane: lacks("r41-strict", "portability: strict"), call: call{body: r1(member), header: beta("context-management-2025-06-27")}, scripts: [][]fakeplatform.Answer{{busy529}},
		status: 529, served: "a", outcome: "exhausted", attempts: "a overloaded *", skips: "b feature:context_management", body: busy529.Body(), more: degraded(0),
	}}
	runReports(t, options{}, strip, kept, table, strict)

	alone := lacks("r41-alone", "portability: strict")
	alone.chain = "[@b]"
	t.Run("alone", func(t *testing.T) {
		l := startReports(t, options{}, alone).lane("r41-alone")
		a := l.ask(call{body: r1(member), header: beta("context-management-2025-06-27")})
		kind, message, err := messagesError(a)
		if a.status != 400 || kind != "invalid_request_error" || err != nil || !strings.Contains(message, "context_management") || !strings.Contains(message, "r41-alone-b") || l.total() != 0 {
			t.Errorf("%d %s %q (%v), %d requests", a.status, kind, message, err, l.total())
		}
	})
}

// TestReport43_EffortByModel: what a model lacks goes for that model at that
// target, and nothing beside it.
func TestReport43_EffortByModel(t *testing.T) {
	const format = `"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}}`
	lacks := func(name string) lane {
		l := wrenLane(name, []string{fp, vertex})
		l.models = "claude-wren-1, claude-wren-2"
		l.targets[1].yaml = []string{`models: {claude-wren-1: {id: "claude-wren-1@20260101", features: {output_config.effort: strip}}, claude-wren-2: "claude-wren-1@20260101"}`}
		return l
	}
	moved := func(name string, body []byte, wire func(string, []byte) []byte, stripped ...string) report {
		return report{flow: flow{
			lane: lacks(name), call: call{body: body}, scripts: [][]fakeplatform.Answer{{busy529}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a overloaded failover, b ok serve", more: degraded(1, stripped...),
		}, wire: wire}
	}
	both, alone := r1(`"output_config":{"effort":"medium",`+format+`}`), r1(`"output_config":{"effort":"medium"}`)
	other := bytes.Replace(both, []byte("claude-wren-1"), []byte("claude-wren-2"), 1)
	runReports(t, options{},
		moved("r43", both, cutFrom(`"effort":"medium",`), "output_config.effort"),
		moved("r43-alone", alone, cutFrom(`,"output_config":{"effort":"medium"}`), "output_config.effort"),
		moved("r43-other", other, func(p string, b []byte) []byte {
			if p == fp {
				return b
			}
			return wireBody(p, bytes.Replace(b, []byte("claude-wren-2"), []byte("claude-wren-1"), 1))
		}),
	)
}
