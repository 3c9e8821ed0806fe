package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// doorModel is what the requests of these tests ask for: a model that every
// platform has.
const doorModel = "claude-opus-5-5"

// door is a platform with a way to authenticate there.
type door struct {
	name     string
	platform string
	sigv4    bool
	azure    bool   // foundry's other hosting
	id       string // the model's there; "" is the client's name
	region   string
}

// doors are all of them.
var doors = []door{
	{name: "anthropic", platform: fakeplatform.Anthropic},
	{name: "aws-key", platform: fakeplatform.ClaudeOnAWS, region: "us-east-1"},
	{name: "aws-sigv4", platform: fakeplatform.ClaudeOnAWS, sigv4: true, region: "us-east-1"},
	{name: "google", platform: fakeplatform.ClaudeOnGoogle},
	{name: "bedrock-key", platform: fakeplatform.Bedrock, id: "eu.anthropic.claude-opus-5-5", region: "eu-central-1"},
	{name: "bedrock-sigv4", platform: fakeplatform.Bedrock, sigv4: true, id: "eu.anthropic.claude-opus-5-5", region: "eu-central-1"},
	{name: "mantle-key", platform: fakeplatform.Mantle, id: "anthropic.claude-opus-5-5", region: "eu-central-1"},
	{name: "mantle-sigv4", platform: fakeplatform.Mantle, sigv4: true, id: "anthropic.claude-opus-5-5", region: "eu-central-1"},
	{name: "vertex", platform: fakeplatform.Vertex},
	{name: "foundry", platform: fakeplatform.Foundry, id: "opus-prod"},
	{name: "foundry-azure", platform: fakeplatform.Foundry, azure: true, id: "opus-prod"},
}

// frontDoors are one door a platform, with the harder way to authenticate.
func frontDoors() []door {
	var out []door
	for _, d := range doors {
		switch d.name {
		case "aws-key", "bedrock-key", "mantle-key", "foundry-azure":
		default:
			out = append(out, d)
		}
	}
	return out
}

// firstParty is the vendor's own.
var firstParty = doors[0]

// target is the door as a target of a lane, with further members.
func (d door) target(yaml ...string) target {
	tg := target{platform: d.platform, sigv4: d.sigv4, yaml: yaml}
	if d.platform == fakeplatform.Anthropic {
		tg.platform = ""
	}
	if d.platform == fakeplatform.Foundry {
		tg.yaml = append(tg.yaml, fmt.Sprintf("models: {%s: %s}", doorModel, d.id))
	}
	if d.azure {
		tg.yaml = append(tg.yaml, "hosting: azure")
	}
	return tg
}

// doorLane is a lane for the model that all of them share: a header tells their
// routes apart.
func doorLane(name string, targets []target, route ...string) lane {
	return lane{name: name, models: doorModel, targets: targets, route: append([]string{"headers: {x-door: " + name + "}"}, route...)}
}

// startDoors is start with platforms that know all about their targets.
func startDoors(t testing.TB, o options, lanes ...lane) *env {
	t.Helper()
	e := start(t, o, lanes...)
	for _, l := range e.order {
		for i, tg := range l.targets {
			if tg.rules == nil && l.fakes[i] != nil {
				l.fakes[i].SetRules(l.strict(i))
			}
		}
	}
	return e
}

// strict are the rules of the platform of target i.
func (l *laneRun) strict(i int) fakeplatform.Rules {
	tg := l.targets[i]
	rules := fakeplatform.Rules{Keys: l.keys[i], Strict: true}
	if tg.sigv4 {
		rules.Keys, rules.AWS = nil, []fakeplatform.AWSKey{l.e.awsKey()}
	}
	switch platformOf(tg) {
	case fakeplatform.ClaudeOnAWS:
		rules.Workspace, rules.Region = l.workspace(), "us-east-1"
	case fakeplatform.ClaudeOnGoogle:
		rules.Project, rules.Location, rules.Workspace = "acme", "global", l.workspace()
	case fakeplatform.Bedrock:
		rules.Region, rules.CountModels = "eu-central-1", []string{"anthropic." + doorModel}
	case fakeplatform.Mantle:
		rules.Region = "eu-central-1"
	case fakeplatform.Vertex:
		rules.Project, rules.Location = "acme", "eu"
	case fakeplatform.Foundry:
		rules.Models = []string{"opus-prod"}
		if slicesContain(tg.yaml, "hosting: azure") {
			rules.Hosting = "azure"
		}
	}
	return rules
}

// through is c as the lane's clients send it.
func (l *laneRun) through(c call) call {
	h := http.Header{"X-Door": {l.name}}
	maps.Copy(h, c.header)
	c.header = h
	return c
}

// runDoors runs the flows: those of a lane one after the other, the lanes beside
// each other, all in one environment.
func runDoors(t *testing.T, o options, flows ...flow) *env {
	t.Helper()
	var lanes []lane
	steps := map[string][]flow{}
	for _, f := range flows {
		if steps[f.lane.name] == nil {
			lanes = append(lanes, f.lane)
		}
		steps[f.lane.name] = append(steps[f.lane.name], f)
	}
	o.top = append(o.top, "breaker: {failures: 100}")
	e := startDoors(t, o, lanes...)
	var wg sync.WaitGroup
	room := make(chan struct{}, 20) // more than processors: most of them wait
	for _, spec := range lanes {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(spec.name, func(t *testing.T) {
				for _, f := range steps[spec.name] {
					f.step(t, e.lane(spec.name))
				}
			})
		})
	}
	wg.Wait()
	e.checkTotals(flows)
	return e
}

// step is run for a lane that has other requests too. Its platforms forget them.
func (f flow) step(t *testing.T, shared *laneRun) {
	t.Helper()
	l := shared.in(t)
	for i, script := range f.scripts {
		l.fakes[i].Script(script...)
	}
	a := l.send(l.through(f.call))
	if a.status == 0 {
		return
	}
	r := l.byID(a.id())
	f.checkAnswer(t, l, a, r)
	f.checkRecord(t, l, a, r)
	if f.more != nil {
		f.more(t, l, a, r)
	}
	l.e.checkPlatforms()
	for _, fake := range l.fakes {
		fake.Reset()
	}
}

// checkTotals compares the metrics of all lanes with what their flows came to.
func (e *env) checkTotals(flows []flow) {
	e.t.Helper()
	want := map[string]float64{}
	for _, f := range flows {
		want["requests_total "+f.lane.name+" "+f.outcome]++
		for _, s := range splitSummary(strings.TrimSuffix(f.attempts, "*")) {
			if w := strings.Fields(s); len(w) > 1 {
				want["attempts_total "+f.lane.name+"-"+w[0]+" "+w[1]]++
			}
		}
		for _, s := range f.ends {
			want["stream_ends_total "+f.lane.name+"-"+strings.Join(strings.Fields(s), " ")]++
		}
	}
	err := poll(2*time.Second, func() error {
		all, err := e.service().samples()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, m := range all {
			switch name := strings.TrimPrefix(m.name, "crossdoor_"); name {
			case "requests_total":
				got[name+" "+m.labels["route"]+" "+m.labels["outcome"]] += m.value
			case "attempts_total":
				got[name+" "+m.labels["target"]+" "+m.labels["outcome"]] += m.value
			case "stream_ends_total":
				got[name+" "+m.labels["target"]+" "+m.labels["end"]] += m.value
			}
		}
		for series, n := range want {
			if got[series] != n {
				return fmt.Errorf("%s is %v, want %v", series, got[series], n)
			}
		}
		return nil
	})
	if err != nil {
		e.t.Error(err)
	}
}

// question is a way to ask.
type question struct {
	name string
	call call
}

// questions are those that every platform must answer.
var questions = []question{
	{"json", call{}}, {"sse", call{stream: true}}, {"count", call{path: "/v1/messages/count_tokens"}},
	{"code", call{stream: true, path: "/v1/messages?beta=true", body: codeBody(), header: http.Header{
		"Anthropic-Beta": {"claude-code-20250219,interleaved-thinking-2025-05-14", "context-management-2025-06-27, fine-grained-tool-streaming-2025-05-14"}, "Accept": {"application/json"},
		"X-Stainless-Lang": {"js"}, "User-Agent": {"claude-cli/2.1 (external, cli)"}, "Anthropic-Dangerous-Direct-Browser-Access": {"true"},
	}}},
}

// codeBody is a request of the shape that Claude Code's have.
func codeBody() []byte {
	tool := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"input_schema":{"type":"object","properties":{"path":{"type":"string"}}}%s}`, name, strings.Repeat("What the tool does. ", 40), more)
	}
	return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":[{"type":"text","text":%q},{"type":"text","text":"now","cache_control":{"type":"ephemeral"}}]},`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"\u002fa","row":12345678901234567890}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}],`+
		`"system":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[%s,%s],"metadata":{"user_id":"u_1"},"max_tokens":32000,"thinking":{"type":"adaptive"},"stream":true}`,
		doorModel, promptSecret, strings.Repeat("You are a careful agent. ", 2000), tool("Read", ""), tool("Edit", `,"cache_control":{"type":"ephemeral"}`))
}

// answer is what the client must get for its n-th question at this door.
func (d door) answer(q question, n int) []byte {
	model, id := d.id, fmt.Sprintf("msg_fake_%s_%d", d.platform, n)
	if model == "" {
		model = doorModel
	}
	switch d.platform {
	case fakeplatform.Bedrock, fakeplatform.Mantle:
		model, id = doorModel, fmt.Sprintf("msg_bdrk_fake_%d", n)
	case fakeplatform.Vertex:
		id = fmt.Sprintf("msg_vrtx_fake_%d", n)
	}
	switch {
	case q.name == "count":
		return fakeplatform.Count(fakeplatform.Anthropic, fakeplatform.Tokens(goodBody(doorModel, false, 0))).Body()
	case q.call.stream:
		return fakeplatform.GoodStream(id, model, 5).Body()
	}
	return fakeplatform.Message(id, model, "hello from "+d.platform).Body()
}

// checkSent: what the platform got is the client's body but for what it needs.
func (d door) checkSent(t testing.TB, q question, got fakeplatform.Request) {
	t.Helper()
	body := q.call.body
	if body == nil {
		body = goodBody(doorModel, q.call.stream, 0)
	}
	var want, sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	counts := q.name == "count"
	switch {
	case d.platform == fakeplatform.Bedrock && counts:
		return // the fake unwraps it, and its count is of every byte
	case d.platform == fakeplatform.Bedrock:
		delete(want, "stream")
		delete(want, "model")
		want["anthropic_version"] = json.RawMessage(`"bedrock-2023-05-31"`)
	case d.platform == fakeplatform.Vertex:
		if !counts {
			delete(want, "model")
		}
		want["anthropic_version"] = json.RawMessage(`"vertex-2023-10-16"`)
	case d.id != "":
		want["model"] = json.RawMessage(`"` + d.id + `"`)
	}
	if err := json.Unmarshal(got.Body, &sent); err != nil {
		t.Errorf("%s got no JSON: %v", d.name, err)
	}
	delete(sent, "anthropic_beta") // the platform has looked at each
	if !maps.EqualFunc(sent, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		t.Errorf("%s got\n%.900s\nof\n%.900s", d.name, got.Body, body)
	}
}

// TestPlatformServes: every platform alone, in every way to ask.
func TestPlatformServes(t *testing.T) {
	var flows []flow
	for _, d := range doors {
		for _, q := range questions {
			flows = append(flows, flow{
				lane: doorLane(d.name, []target{d.target()}), call: q.call,
				status: 200, served: "a", outcome: "served", attempts: "a ok serve", body: d.answer(q, 1), ends: endsOf(q, "a ok"),
				more: func(t testing.TB, l *laneRun, a *answer, r record) {
					d.checkSent(t, q, l.fakes[0].Requests()[0])
					checkConverted(t, q, a)
					checkAccount(t, q, r)
				},
			})
		}
	}
	runDoors(t, options{}, flows...)
}

func endsOf(q question, end string) []string {
	if q.call.stream {
		return []string{end}
	}
	return nil
}

// checkConverted: an answer says what the client asked for, whatever the
// platform spoke.
func checkConverted(t testing.TB, q question, a *answer) {
	t.Helper()
	want := "application/json"
	if q.call.stream {
		want = "text/event-stream"
	}
	if got := a.header.Get("content-type"); !strings.HasPrefix(got, want) {
		t.Errorf("content-type %q", got)
	}
	if got := a.header.Get("x-amzn-bedrock-content-type"); got != "" {
		t.Errorf("x-amzn-bedrock-content-type %q", got)
	}
	if got := a.header.Get("content-length"); got != "" && got != strconv.Itoa(len(a.body)) {
		t.Errorf("content-length %s of %d bytes", got, len(a.body))
	}
}

// checkAccount: usage and stop reason of messages are in the trail, and nothing
// else is degraded.
func checkAccount(t testing.TB, q question, r record) {
	t.Helper()
	if q.name == "count" {
		if r.Stop != "" {
			t.Errorf("stop_reason %q of a count", r.Stop)
		}
		return
	}
	if r.Stop != "end_turn" || r.Usage == nil || (*r.Usage)["input_tokens"] != fakeplatform.InputTokens || (*r.Usage)["output_tokens"] != fakeplatform.OutputTokens {
		t.Errorf("usage %v, stop_reason %q in %s", r.Usage, r.Stop, r.line)
	}
}
