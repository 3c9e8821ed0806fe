package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// logLine is one line of `--log json`, as far as it matters here.
type logLine struct {
	Time     string `json:"time"`
	Level    string `json:"level"`
	Msg      string `json:"msg"`
	ID       string `json:"id"`
	Scope    string `json:"scope"`
	Target   string `json:"target"`
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason"`
	Decision string `json:"decision"`
}

// summary is what the line says, in few words.
func (l logLine) summary() string {
	return strings.Join(strings.Fields(strings.Join([]string{l.Msg, l.Scope, l.Target, l.Outcome, l.Decision}, " ")), " ")
}

// logLines are all lines so far; each must be one JSON object.
func (s *service) logLines(t testing.TB) []logLine {
	t.Helper()
	var out []logLine
	for text := range strings.Lines(s.proc.out.String()) {
		var l logLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("no JSON (%v): %q", err, text)
		}
		if _, err := time.Parse(time.RFC3339Nano, l.Time); err != nil || l.Level == "" || l.Msg == "" {
			t.Errorf("a line without time, level or msg: %s", text)
		}
		out = append(out, l)
	}
	return out
}

// TestLogLines: one for each failover, ejection and recovery, in JSON, and none
// on the healthy path.
func TestLogLines(t *testing.T) {
	e := start(t, options{serve: []string{"--log", "json"}, top: []string{"breaker: {failures: 2, window: 1500ms}"}},
		lane{name: "told", targets: two()}, lane{name: "fine", targets: two()})
	l, fine := e.lane("told"), e.lane("fine")
	started := len(e.service().logLines(t))
	for n := range 50 {
		if a := fine.send(call{stream: n%2 == 0}); a.status != 200 {
			t.Fatalf("status %d", a.status)
		}
	}
	e.metric(50, "requests_total", "route", "fine", "outcome", "served")
	var failed []string
	busy := fakeplatform.Error(529, "x")
	l.fakes[0].Script(busy, busy)
	for range 2 {
		failed = append(failed, l.send(call{}).id())
	}
	l.state("model", 2)
	opened := time.Now()
	if got := servedBy(l, call{}); got != "200 told-b" { // left out: no line
		t.Errorf("while it is ejected: %s", got)
	}
	waitUntil(t, opened.Add(1600*time.Millisecond))
	if got := servedBy(l, call{}); got != "200 told-a" {
		t.Errorf("the probe: %s", got)
	}
	l.state("model", 0)
	want := []string{
		"attempt failed told-a overloaded failover",
		"attempt failed told-a overloaded failover",
		"ejected model told-a",
		"recovered model told-a",
	}
	var got, ids []string
	eventually(t, 2*time.Second, "the lines are there", func() error {
		got, ids = nil, nil
		for _, line := range e.service().logLines(t)[started:] {
			got = append(got, line.summary())
			if line.ID != "" {
				ids = append(ids, line.ID)
			}
		}
		slices.Sort(got) // an ejection and the failover that it came with go together
		if len(got) < len(want) {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	if !slices.Equal(got, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(ids, failed) {
		t.Errorf("the lines are of %q, want %q", ids, failed)
	}
}

// TestTrailTimes: an answer's end is known when it happens, not when Envoy next
// writes out its log; an attempt without an answer has no status.
func TestTrailTimes(t *testing.T) {
	e := start(t, options{}, lane{name: "fast", targets: two()}, lane{name: "refused", targets: []target{{url: refusing(t)}, {}}})
	fast := e.lane("fast")
	const requests = 15
	var ids []string
	for range requests {
		ids = append(ids, fast.send(call{}).id())
	}
	var whole, tries []float64
	for _, id := range ids {
		r := fast.byID(id)
		if len(r.Attempts) != 1 {
			t.Fatalf("record %s", r.line)
		}
		whole, tries = append(whole, r.MS), append(tries, r.Attempts[0].MS)
	}
	slices.Sort(whole)
	slices.Sort(tries)
	// The median, since a busy machine makes anything slow now and then.
	if ms, try := whole[requests/2], tries[requests/2]; ms >= 60 || try >= 60 || try > ms {
		t.Errorf("half of the answers took %vms and more, their attempts %vms: %v", ms, try, whole)
	}
	l := e.lane("refused")
	a := l.send(call{})
	var r struct {
		Attempts []map[string]any `json:"attempts"`
	}
	line := l.byID(a.id()).line
	if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Attempts) != 2 {
		t.Fatalf("record %s (%v)", line, err)
	}
	if status, ok := r.Attempts[0]["status"]; ok || r.Attempts[0]["outcome"] != "connection" {
		t.Errorf("a refused connection has status %v: %s", status, line)
	}
	if status := r.Attempts[1]["status"]; status != 200.0 {
		t.Errorf("the attempt that served has status %v: %s", status, line)
	}
}
