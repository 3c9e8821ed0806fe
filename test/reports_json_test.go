package test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestReport45_NoFixedSchema: members that real clients send, and members that
// nobody knows yet, reach the first target to the byte.
func TestReport45_NoFixedSchema(t *testing.T) {
	body := []byte(`{"model":"claude-wren-1","max_tokens":128,"inference_geo":"us","speed":"standard","diagnostics":{"previous_message_id":"msg_1"},` +
		`"zz_future":{"a":[1,2,{"b":null}]},"tools":[{"name":"ledger_lookup","description":"Find a jar","eager_input_streaming":true,"strict":true,` +
		`"defer_loading":false,"allowed_callers":["direct"],"input_examples":[{"row":7}],"input_schema":{"type":"object","properties":{"row":{"type":"integer"}}}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"How many?","zz_block":[]},{"type":"zz_new","zz":{}}]}]}`)
	raw := func(_ string, body []byte) []byte { return body }
	primary := report{flow: flow{lane: wrenLane("r45", []string{fp, cpaws}), call: call{body: body}, status: 200, served: "a", outcome: "served", attempts: "a ok serve", skips: "b feature:speed"}, wire: raw}
	spaced := primary
	spaced.lane = wrenLane("r45-spaced", []string{fp, cpaws})
	spaced.call.body = bytes.ReplaceAll(body, []byte(`":`), []byte("\" :\r\n\t "))
	stream := primary
	stream.lane = wrenLane("r45-sse", []string{fp, cpaws})
	stream.call = call{stream: true, body: append(bytes.TrimSuffix(body, []byte("}")), `,"stream":true}`...)}
	runReports(t, options{}, primary, spaced, stream)
}

// ledgerTurn is a history with a tool call whose input is as given.
func ledgerTurn(input string) string {
	return `[{"role":"user","content":"Look it up."},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_q1","name":"ledger_lookup","input":` + input + `}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_q1","content":"7"}]}]`
}

// TestReport71_NumbersAreText: no literal is read and written again, whichever
// platform it goes to.
func TestReport71_NumbersAreText(t *testing.T) {
	const literals = `{"row":2512292042121000001,"ratio":0.1000000000000000055,"big":1e400,"neg":-0.0,"exp":1E5}`
	moved := report{flow: flow{
		lane: wrenLane("r71", []string{fp, bedrock, vertex, foundry, cpaws}), call: call{body: r1Of(ledgerTurn(literals))},
		scripts: [][]fakeplatform.Answer{{busy529}, {fakeplatform.BedrockError(503, "", "busy")}, {busy529}, {busy529}},
		status:  200, served: "e", outcome: "failed_over", attempts: "a overloaded failover, b overloaded failover, c overloaded failover, d overloaded failover, e ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			for i, f := range l.fakes {
				if got := f.Requests()[0].Body; !bytes.Contains(got, []byte(literals)) {
					t.Errorf("%s got %s", l.targetName(i), got)
				}
			}
		},
	}}
	runReports(t, options{}, moved)
}

// TestReport73_OrderIsKept: members stay where they were at every depth, and what
// is added stands first: two turns of a conversation have the same beginning.
func TestReport73_OrderIsKept(t *testing.T) {
	e := startReports(t, options{}, wrenLane("r73", []string{vertex, fp}))
	l := e.lane("r73")
	const first = `[{"content":[{"text":"Warm the larder","type":"text"}],"role":"user"}`
	const second = `,{"role":"assistant","content":"Warm."},{"content":"And now?","role":"user"}`
	bodies := [][]byte{r1Of(first+"]", streaming), r1Of(first+second+"]", streaming)}
	for i, body := range bodies {
		if a := l.ask(call{stream: true, body: body}); a.status != 200 || a.header.Get("x-crossdoor-served-by") != "r73-a" {
			t.Errorf("turn %d: %s", i, describe(a, a.err))
		}
	}
	got := l.fakes[0].Requests()
	if len(got) != 2 || len(l.fakes[1].Requests()) != 0 {
		t.Fatalf("%d and %d requests", len(got), len(l.fakes[1].Requests()))
	}
	for i, r := range got {
		if want := wireBody(vertex, bodies[i]); !bytes.Equal(r.Body, want) {
			t.Errorf("turn %d:\n%s\nwant\n%s", i, r.Body, want)
		}
	}
	shared := bytes.Index(got[0].Body, []byte(`],"stream"`))
	if shared < 0 || !bytes.HasPrefix(got[1].Body, got[0].Body[:shared]) {
		t.Errorf("the turns begin differently:\n%s\n%s", got[0].Body, got[1].Body)
	}
}

// TestReport75_LoneSurrogate: an escape that is half a character is grammar to
// JSON. It passes as it came, the platform's word on it is the answer, and no
// platform gets anything else in its place.
func TestReport75_LoneSurrogate(t *testing.T) {
	const half = `\ud83d`
	body := r1Of(`[{"role":"user","content":"a jar ` + half + ` of jam"}]`)
	strict := wrenLane("r75", []string{fp, cpaws})
	strict.targets[0].rules.Strict = true
	strict.refused = true
	same := func(t testing.TB, l *laneRun, _ *answer, _ record) {
		for i, f := range l.fakes {
			for _, r := range f.Requests() {
				if !bytes.Contains(r.Body, []byte(half)) || bytes.Contains(r.Body, []byte("\ufffd")) {
					t.Errorf("%s got %s", l.targetName(i), r.Body)
				}
			}
		}
	}
	refused := report{flow: flow{
		lane: strict, call: call{body: body}, status: 400, served: "a", outcome: "stopped", attempts: "a invalid_request stop",
		more: func(t testing.TB, l *laneRun, a *answer, r record) {
			same(t, l, a, r)
			if _, message, err := messagesError(a); err != nil || !strings.Contains(message, "surrogate") {
				t.Errorf("not the platform's answer: %q (%v)", message, err)
			}
			l.opened(t, 0, "")
		},
	}}
	moved := report{flow: flow{
		lane: wrenLane("r75-moved", []string{fp, foundry, cpaws}), call: call{body: body}, scripts: [][]fakeplatform.Answer{{busy529}, {busy529}},
		status: 200, served: "c", outcome: "failed_over", attempts: "a overloaded failover, b overloaded failover, c ok serve", more: same,
	}}
	runReports(t, options{}, refused, moved)
}

// TestReport77_DuplicateMembers: a member that is there twice, however it is
// spelled, has two readers disagree: refused where Crossdoor reads or edits,
// before anything is sent. Elsewhere bytes are passed on.
func TestReport77_DuplicateMembers(t *testing.T) {
	twice := wrenLane("r77", []string{fp, cpaws})
	twice.uncounted = true // what is refused has no route
	twice.refused = true
	l := startReports(t, options{}, twice).lane("r77")
	for _, c := range []struct{ name, body string }{
		{"model", string(r1(`"model":"claude-osprey-9"`))},
		{"the same model", string(r1(`"model":"claude-wren-1"`))},
		{"escaped", string(r1(`"mod\u0065l":"claude-osprey-9"`))},
		{"escaped twice", `{"\u006dodel":"claude-wren-1","max_tokens":1,"messages":[],"mod\u0065l":"claude-osprey-9"}`},
		{"stream", string(r1(`"stream":false`, streaming))},
		{"stream escaped", string(r1(streaming, `"str\u0065am":false`))},
		{"cache_control", string(r1(`"cache_control":{"type":"ephemeral"}`, `"cache_control":{"type":"ephemeral"}`))},
		{"messages", string(r1(`"messages":[]`))},
		{"unknown", string(r1(`"zz":1`, `"zz":1`))},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := l.in(t).ask(call{body: []byte(c.body)})
			if kind, _, err := messagesError(a); a.status != 400 || kind != "invalid_request_error" || err != nil {
				t.Errorf("%d %s (%v)", a.status, kind, err)
			}
			if r := l.in(t).byID(a.id()); r.Outcome != "rejected" || len(r.Attempts) != 0 {
				t.Errorf("record %s", r.line)
			}
		})
	}
	if n := l.total(); n != 0 {
		t.Errorf("%d requests at platforms", n)
	}
	l.opened(t, 0, "")
	nested := r1Of(`[{"role":"user","content":[{"type":"text","text":"x","zz":1,"zz":2}]}]`)
	a := l.ask(call{body: nested})
	if got := l.fakes[0].Requests(); len(got) != 1 || !bytes.Equal(got[0].Body, nested) || a.header.Get("x-crossdoor-served-by") != "r77-a" {
		t.Errorf("a duplicate that nobody reads is the platform's to judge: %s", describe(a, a.err))
	}
}

// TestReport79_EmptyTextBlocks: no block is added or taken away; the platform's
// 400 is the answer. (What a translated target makes of them is not built yet.)
func TestReport79_EmptyTextBlocks(t *testing.T) {
	messages := `[{"role":"user","content":"Peg?"},{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"toolu_1","name":"peg","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"7"}]}]`
	stop := func(name string, chain ...string) report {
		l := wrenLane(name, chain)
		l.refused = true
		return report{flow: flow{
			lane: l, call: call{body: r1Of(messages)}, status: 400, served: "a", outcome: "stopped", attempts: "a invalid_request stop",
			more: func(t testing.TB, l *laneRun, a *answer, _ record) {
				if _, message, err := messagesError(a); err != nil || message != "messages: text content blocks must be non-empty" {
					t.Errorf("not the platform's answer: %q (%v)", message, err)
				}
				atMost(1)(t, l, a, record{})
				l.opened(t, 0, "")
			},
		}}
	}
	runReports(t, options{}, stop("r79", fp, cpaws), stop("r79-foundry", foundry, fp), stop("r79-cpaws", cpaws, fp))
}
