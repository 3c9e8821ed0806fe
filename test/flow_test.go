package test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// flow is one request through a lane and everything that must follow.
type flow struct {
	lane    lane
	scripts [][]fakeplatform.Answer // by target; what follows them is good
	call    call
	prepare func(*laneRun)

	status int
	served string // letter of the target; "" when Crossdoor answered itself
	// attempts is the trail's summary, `a overloaded failover, b ok serve`; a `*` at
	// the end leaves the rest open.
	attempts string
	outcome  string
	skips    string
	// body is what the client must get to the byte; nil is not compared.
	body []byte
	// kind is error.type of an answer of Crossdoor's own; "" is not checked.
	kind string
	// cut says that the client's answer must break off.
	cut      bool
	min, max time.Duration
	// ends are stream_ends_total by `target end`.
	ends []string
	more func(testing.TB, *laneRun, *answer, record)
}

// two is the usual chain of a first-party target and Claude on AWS.
func two() []target {
	return []target{{}, {platform: fakeplatform.ClaudeOnAWS}}
}

// three adds Foundry, whose deployment has another name.
func three(model string) []target {
	return append(two(), target{platform: fakeplatform.Foundry, yaml: []string{fmt.Sprintf("models: {%q: dep-%s}", model, model)}})
}

// runFlows runs every flow as a parallel subtest of one environment.
func runFlows(t *testing.T, o options, flows ...flow) {
	t.Helper()
	var lanes []lane
	for _, f := range flows {
		if f.lane.targets == nil {
			f.lane.targets = two()
		}
		lanes = append(lanes, f.lane)
	}
	e := start(t, o, lanes...)
	t.Run("flows", func(t *testing.T) {
		for _, f := range flows {
			t.Run(f.lane.name, func(t *testing.T) {
				t.Parallel()
				f.run(t, e.lane(f.lane.name))
			})
		}
	})
}

func (f flow) run(t *testing.T, shared *laneRun) {
	l := shared.in(t)
	for i, script := range f.scripts {
		if len(script) > 0 {
			l.fakes[i].Script(script...)
		}
	}
	if f.prepare != nil {
		f.prepare(l)
	}
	a := l.send(f.call)
	if a.status == 0 {
		return
	}
	r := l.nth(1)
	f.checkAnswer(t, l, a, r)
	f.checkRecord(t, l, a, r)
	f.checkMetrics(t, l, r)
	if f.more != nil {
		f.more(t, l, a, r)
	}
}

// in is the lane with its failures going to a subtest.
func (l *laneRun) in(t testing.TB) *laneRun {
	e := *l.e
	e.t = t
	return &laneRun{lane: l.lane, e: &e, fakes: l.fakes, keys: l.keys, sent: l.sent}
}

func (f flow) checkAnswer(t testing.TB, l *laneRun, a *answer, r record) {
	t.Helper()
	if a.status != f.status {
		t.Errorf("status %d, want %d: %.300s", a.status, f.status, a.body)
	}
	if (a.err != nil) != f.cut {
		t.Errorf("the answer was cut: %v (%v), want %v", a.err != nil, a.err, f.cut)
	}
	if f.body != nil && !bytes.Equal(a.body, f.body) {
		t.Errorf("body\n%.600q\nwant\n%.600q", a.body, f.body)
	}
	if f.kind != "" {
		kind, _, err := messagesError(a)
		if err != nil || kind != f.kind {
			t.Errorf("error type %q (%v), want %q", kind, err, f.kind)
		}
		if got := a.header.Get("x-should-retry"); got != "false" {
			t.Errorf("x-should-retry %q, want false", got)
		}
	}
	if a.headers < f.min {
		t.Errorf("the answer came after %v, want at least %v", a.headers, f.min)
	}
	if f.max != 0 && a.headers > f.max {
		t.Errorf("the answer came after %v, want at most %v", a.headers, f.max)
	}
	if f.call.stream && a.status == 200 && f.outcome != "stopped" { // an error may be all that there is
		if n := bytes.Count(a.body, []byte("event: message_start")); n != 1 {
			t.Errorf("%d message_start events", n)
		}
	}
	f.checkClientHeaders(t, l, a, r)
}

var ourHeaders = map[string]bool{
	"X-Crossdoor-Request-Id": true, "X-Crossdoor-Served-By": true, "X-Crossdoor-Attempts": true,
	"X-Crossdoor-Model": true, "X-Crossdoor-Trail": true, "X-Crossdoor-Degraded": true,
}

// checkNoEnvoy: nothing of Envoy or of the machinery shows.
func checkNoEnvoy(t testing.TB, a *answer) {
	t.Helper()
	for name, v := range a.header {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, "x-envoy-") || (strings.HasPrefix(lower, "x-crossdoor-") && !ourHeaders[name]) {
			t.Errorf("the client got %s: %v", name, v)
		}
		if lower == "server" && strings.Contains(strings.Join(v, ""), "envoy") {
			t.Errorf("the client got server: %v", v)
		}
	}
	for _, text := range []string{"upstream connect error", "no healthy upstream", "upstream request timeout", "ext_proc"} {
		if bytes.Contains(a.body, []byte(text)) {
			t.Errorf("the client got Envoy's text: %.200s", a.body)
		}
	}
}

func (f flow) checkClientHeaders(t testing.TB, l *laneRun, a *answer, r record) {
	t.Helper()
	checkNoEnvoy(t, a)
	if slicesContain(l.route, "client_headers:") {
		return
	}
	if !ulidForm.MatchString(a.id()) {
		t.Errorf("x-crossdoor-request-id %q is no ULID", a.id())
	}
	want := ""
	if f.served != "" {
		want = l.name + "-" + f.served
	}
	if got := a.header.Get("x-crossdoor-served-by"); got != want && f.served != "*" {
		t.Errorf("x-crossdoor-served-by %q, want %q", got, want)
	}
	if got, want := a.header.Get("x-crossdoor-attempts"), strconv.Itoa(len(r.Attempts)); got != want {
		t.Errorf("x-crossdoor-attempts %q, want %s", got, want)
	}
	got := trailWords(a.header.Get("x-crossdoor-trail"))
	for _, want := range f.trailHeader(l) {
		if !strings.Contains(got, want) {
			t.Errorf("x-crossdoor-trail %q, want %q in it", got, want)
		}
	}
	if n := len(a.header.Values("content-length")); n > 1 {
		t.Errorf("%d content-length lines", n)
	}
}

func slicesContain(lines []string, prefix string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			return true
		}
	}
	return false
}

func splitSummary(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}

var trailMS = regexp.MustCompile(` \d+ms`)

func trailWords(header string) string { return trailMS.ReplaceAllString(header, "") }

// trailHeader is what x-crossdoor-trail must have, times removed. A failure
// after the commit is ok in the header: it is not known yet.
func (f flow) trailHeader(l *laneRun) []string {
	var out []string
	for _, s := range splitSummary(f.skips) {
		w := strings.Fields(s)
		out = append(out, l.name+"-"+w[0]+" skipped:"+w[1])
	}
	for _, s := range splitSummary(strings.TrimSuffix(f.attempts, "*")) {
		w := strings.Fields(s)
		if len(w) < 2 {
			continue // left open
		}
		if len(w) > 2 && w[2] == "serve" {
			w[1] = "ok"
		}
		out = append(out, l.name+"-"+w[0]+" "+w[1])
	}
	return out
}

func (f flow) checkRecord(t testing.TB, l *laneRun, a *answer, r record) {
	t.Helper()
	if a.id() != "" && r.ID != a.id() {
		t.Errorf("record of %q, answer of %q", r.ID, a.id())
	}
	prefix, open := strings.CutSuffix(f.attempts, "*")
	if got := r.summary(); got != prefix && (!open || !strings.HasPrefix(got, prefix)) {
		t.Errorf("attempts %q, want %q", got, f.attempts)
	}
	if r.Outcome != f.outcome {
		t.Errorf("outcome %q, want %q", r.Outcome, f.outcome)
	}
	if got := r.skips(); got != f.skips {
		t.Errorf("skipped %q, want %q", got, f.skips)
	}
	if r.Status != f.status {
		t.Errorf("status in the trail %d, want %d", r.Status, f.status)
	}
	if want := f.servedName(l); r.ServedBy != want && f.served != "*" {
		t.Errorf("served_by %q, want %q", r.ServedBy, want)
	}
	if !timeForm.MatchString(r.Time) || r.Stream != f.call.stream || len(r.Policy) != 12 {
		t.Errorf("time %q, stream %v, policy %q", r.Time, r.Stream, r.Policy)
	}
	for i, at := range r.Attempts {
		if at.N != i+1 {
			t.Errorf("attempt %d has n %d", i+1, at.N)
		}
	}
	f.checkPlatformCounts(t, l, r)
}

func (f flow) servedName(l *laneRun) string {
	if f.served == "" {
		return ""
	}
	return l.name + "-" + f.served
}

// checkPlatformCounts: the trail's attempts are what the platforms saw.
func (f flow) checkPlatformCounts(t testing.TB, l *laneRun, r record) {
	t.Helper()
	seen := map[string]int{}
	for _, at := range r.Attempts {
		seen[at.Target]++
	}
	for i, fake := range l.fakes {
		if fake == nil || l.targets[i].tls != nil {
			continue // what fails before a request is no request
		}
		got, want := 0, seen[l.targetName(i)]
		for _, r := range fake.Requests() {
			if !strings.HasPrefix(r.Path(), "/v1/files/") { // the service's own
				got++
			}
		}
		if got != want {
			t.Errorf("%s got %d requests, the trail has %d", l.targetName(i), got, want)
		}
	}
}

func (f flow) checkMetrics(t testing.TB, l *laneRun, r record) {
	t.Helper()
	l.e.metric(1, "requests_total", "route", l.name, "outcome", f.outcome)
	l.e.metric(1, "requests_total", "route", l.name)
	l.e.metric(1, "request_seconds_count", "route", l.name)
	counts := map[[2]string]float64{}
	for _, at := range r.Attempts {
		counts[[2]string{at.Target, at.Outcome}]++
	}
	for k, n := range counts {
		l.e.metric(n, "attempts_total", "route", l.name, "target", k[0], "outcome", k[1])
	}
	l.e.metric(float64(len(r.Attempts)), "attempts_total", "route", l.name)
	for _, s := range f.ends {
		w := strings.Fields(s)
		l.e.metric(1, "stream_ends_total", "target", l.name+"-"+w[0], "end", w[1])
	}
}

// header makes a header map of name, value, ...
func header(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Add(kv[i], kv[i+1])
	}
	return h
}
