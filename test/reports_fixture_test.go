package test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// The tests named TestReportNN rebuild what users of other gateways reported;
// docs/known-faults.md has the list with its sources. They share a model, a
// request and a map of the model's IDs.

// wren is the model that clients of all reports ask for.
const wren = "claude-wren-1"

// wrenIDs are its IDs where they differ.
var wrenIDs = map[string]string{
	fakeplatform.Bedrock: "eu.anthropic.claude-wren-1-v1:0", fakeplatform.Mantle: "anthropic.claude-wren-1",
	fakeplatform.Vertex: "claude-wren-1@20260101", fakeplatform.Foundry: "wren-prod-eu",
}

// Platforms of the reports in the order of their chain.
const (
	fp      = fakeplatform.Anthropic
	bedrock = fakeplatform.Bedrock
	vertex  = fakeplatform.Vertex
	foundry = fakeplatform.Foundry
	cpaws   = fakeplatform.ClaudeOnAWS
)

// r1 is the request of the reports, with further members behind the others.
func r1(members ...string) []byte {
	return r1Of(`[{"role":"user","content":"How many jars of damson jam are left?"}]`, members...)
}

// r1Of is r1 with other messages.
func r1Of(messages string, members ...string) []byte {
	body := `{"model":"claude-wren-1","max_tokens":128,"system":[{"type":"text","text":"You keep the pantry ledger of Quillfern Ltd."}],` +
		`"tools":[{"name":"ledger_lookup","description":"Find a jar","input_schema":{"type":"object","properties":{"row":{"type":"integer"}}}}],"messages":` + messages
	return []byte(strings.Join(append([]string{body}, members...), ",") + "}")
}

const streaming = `"stream":true`

// wireBody is what a platform gets of a body that it has nothing to refuse in:
// written out by the contract's rules, for bodies that begin as r1 does.
func wireBody(platform string, body []byte) []byte {
	edit := func(old, to string) { body = bytes.Replace(body, []byte(old), []byte(to), 1) }
	switch platform {
	case bedrock:
		edit(`{"model":"claude-wren-1",`, `{"anthropic_version":"bedrock-2023-05-31",`)
		edit(`,"stream":true`, "")
	case vertex:
		edit(`{"model":"claude-wren-1",`, `{"anthropic_version":"vertex-2023-10-16",`)
	default:
		if id := wrenIDs[platform]; id != "" {
			edit(`"claude-wren-1"`, `"`+id+`"`)
		}
	}
	return body
}

// wrenLane is a lane whose chain has a target a platform. Lanes share the model:
// a header tells their routes apart.
func wrenLane(name string, platforms []string, route ...string) lane {
	l := lane{name: name, models: wren, route: append([]string{"headers: {x-report: " + name + "}"}, route...)}
	for _, p := range platforms {
		rules := &fakeplatform.Rules{}
		tg := target{platform: p, rules: rules}
		if id := wrenIDs[p]; id != "" {
			tg.yaml = []string{fmt.Sprintf("models: {%s: %q}", wren, id)}
			rules.Models = []string{id}
		}
		switch p {
		case bedrock, fakeplatform.Mantle:
			rules.Region = "eu-central-1"
		case vertex:
			rules.Project, rules.Location = "acme", "eu"
		case fp:
			tg.platform = ""
		}
		l.targets = append(l.targets, tg)
	}
	return l
}

// startReports is start with what only a running lane knows in the rules of its
// platforms.
func startReports(t *testing.T, o options, lanes ...lane) *env {
	t.Helper()
	t.Parallel()
	e := start(t, o, lanes...)
	for _, l := range e.order {
		for i, tg := range l.targets {
			if tg.rules == nil || l.fakes[i] == nil {
				continue
			}
			rules := *tg.rules
			rules.Keys = l.keys[i]
			if platformOf(tg) == cpaws {
				rules.Workspace = l.workspace()
			}
			if tg.sigv4 {
				rules.Keys, rules.AWS = nil, []fakeplatform.AWSKey{e.awsKey()}
			}
			l.fakes[i].SetRules(rules)
		}
	}
	t.Cleanup(e.checkContent)
	return e
}

// checkContent: nothing of what the reports' requests say is in log, trail or
// metrics.
func (e *env) checkContent() {
	for _, s := range e.services {
		metrics := ""
		if s.proc.alive() {
			text, err := get(fmt.Sprintf("http://127.0.0.1:%d/metrics", s.admin))
			if err != nil {
				e.t.Errorf("metrics: %v", err)
			}
			metrics = text
		}
		for where, text := range map[string]string{"log": s.proc.out.String(), "trail": readFile(s.trail), "metrics": metrics} {
			for _, bad := range []string{"Quillfern", "damson"} {
				if strings.Contains(text, bad) {
					e.t.Errorf("the %s has what a request said: %q", where, bad)
				}
			}
		}
	}
}

// reported is c as this lane's clients send it: r1 where it has no body.
func (l *laneRun) reported(c call) call {
	if c.body == nil && c.method == "" {
		c.body = r1()
		if c.stream {
			c.body = r1(streaming)
		}
	}
	h := http.Header{"X-Report": {l.name}}
	maps.Copy(h, c.header)
	c.header = h
	return c
}

// ask sends a call of a report.
func (l *laneRun) ask(c call) *answer {
	l.e.t.Helper()
	return l.send(l.reported(c))
}

// report is a flow through a lane of wrenLane.
type report struct {
	flow

	// wire is what a platform must get of the client's body; nil is wireBody.
	wire func(platform string, body []byte) []byte
	// unwired says that the report compares bodies itself.
	unwired bool
}

// runReports runs every report as a subtest of one environment, all at once:
// most of them wait for a timer.
func runReports(t *testing.T, o options, reports ...report) {
	t.Helper()
	var lanes []lane
	for _, r := range reports {
		lanes = append(lanes, r.lane)
	}
	e := startReports(t, o, lanes...)
	var wg sync.WaitGroup
	for _, r := range reports {
		wg.Go(func() {
			t.Run(r.lane.name, func(t *testing.T) { r.run(t, e.lane(r.lane.name)) })
		})
	}
	wg.Wait()
}

func (r report) run(t *testing.T, l *laneRun) {
	r.call = l.reported(r.call)
	more := r.more
	r.more = func(t testing.TB, l *laneRun, a *answer, rec record) {
		t.Helper()
		if !r.unwired {
			r.checkWire(t, l)
		}
		if more != nil {
			more(t, l, a, rec)
		}
	}
	r.flow.run(t, l)
}

// checkWire: every platform got the client's own bytes but for what it needs.
func (r report) checkWire(t testing.TB, l *laneRun) {
	t.Helper()
	wire := r.wire
	if wire == nil {
		wire = wireBody
	}
	for i, f := range l.fakes {
		if f == nil {
			continue
		}
		want := wire(platformOf(l.targets[i]), r.call.body)
		for _, got := range f.Requests() {
			if !bytes.Equal(got.Body, want) {
				t.Errorf("%s got\n%s\nwant\n%s", l.targetName(i), got.Body, want)
			}
		}
	}
}

// streamed makes a JSON and an SSE report of one.
func streamed(r report) []report {
	j, s := r, r
	for x, suffix := range map[*report]string{&j: "-json", &s: "-sse"} {
		old := x.lane.name
		x.lane.name += suffix
		x.lane.route = append([]string{strings.Replace(x.lane.route[0], old, x.lane.name, 1)}, x.lane.route[1:]...)
	}
	s.call.stream = true
	return []report{j, s}
}

// opened checks the breakers of a target: the scope that is open, "" none is.
func (l *laneRun) opened(t testing.TB, target int, scope string) {
	t.Helper()
	for _, s := range []string{"target", "model", "key", "key_model"} {
		want := 0.0
		if s == scope {
			want = 2
		}
		err := l.e.breakerErr(s, l.targetName(target), want)
		if err != nil {
			t.Error(err)
		}
	}
}

// breakerErr waits for a breaker's state.
func (e *env) breakerErr(scope, target string, want float64) error {
	return poll(slack, func() error {
		got, err := e.breaker(scope, target)
		if err == nil && max(got, 0) != want {
			err = fmt.Errorf("breaker %s of %s is %v, want %v", scope, target, got, want)
		}
		return err
	})
}

// total is how many requests the lane's platforms got.
func (l *laneRun) total() int {
	n := 0
	for _, f := range l.fakes {
		if f != nil {
			n += len(f.Requests())
		}
	}
	return n
}

// goodOf is a platform's good answer to its first request.
func goodOf(platform string, stream bool) fakeplatform.Answer {
	id := wren
	if x := wrenIDs[platform]; x != "" {
		id = x
	}
	return fakeplatform.Good(platform, id, stream)
}
