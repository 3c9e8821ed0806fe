package test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/test/sdk"
)

// sdkFailures are the ways in which a lane's first target fails.
var sdkFailures = []string{"status", "event", "refused"}

// sdkLane is a chain whose first target fails and whose second one is good.
func sdkLane(first, second, failure string) lane {
	l := lane{name: first + "-" + second + "-" + failure}
	if first != fakeplatform.Anthropic { // a name has at most 50 characters with the target's letter
		l.name = "from-" + first + "-" + failure
	} else {
		l.name = "to-" + second + "-" + failure
	}
	l.targets = []target{sdkTarget(first), sdkTarget(second)}
	if failure == "refused" {
		l.targets[0].url = "http://127.0.0.1:1"
	}
	return l.forSDK()
}

// sdkTarget is a target of the platform with an ID for both models.
func sdkTarget(platform string) target {
	tg := target{platform: platform}
	if platform == fakeplatform.Bedrock {
		tg.yaml = []string{"models: {" + sdkCountModel + ": anthropic." + sdkCountModel + "}"}
	}
	return tg
}

// forSDK makes the lane's route one for the models of the cases, found by header.
func (l lane) forSDK() lane {
	l.models = sdkModel
	if slices.ContainsFunc(l.targets, func(tg target) bool { return tg.platform == fakeplatform.Bedrock }) {
		l.models += ", " + sdkCountModel
	}
	l.route = append(l.route, "headers: {x-sdk-lane: "+l.name+"}")
	return l
}

// sdkOptions keep targets in that fail on purpose again and again.
func sdkOptions() options { return options{top: []string{"breaker: {failures: 1000}"}} }

// casesFor are the cases in which a failure can make a difference.
func casesFor(failure string, cases []sdkCase) []sdkCase {
	return slices.DeleteFunc(slices.Clone(cases), func(c sdkCase) bool {
		switch failure {
		case "event": // of a stream
			return !c.stream
		case "refused": // no answer there whose framing could matter
			return !slices.Contains([]string{"text", "tools-stream", "count", "claude-code"}, c.name)
		}
		return false
	})
}

// failureOf is a platform's own failure of the name.
func failureOf(t testing.TB, platform string, names ...string) fakeplatform.Answer {
	t.Helper()
	for _, name := range names {
		for _, f := range fakeplatform.Failures(platform) {
			if f.Name == name {
				return f.Answer
			}
		}
	}
	t.Fatalf("%s has none of the failures %v", platform, names)
	return fakeplatform.Answer{}
}

// sdkRequest is one request of a job at a platform.
type sdkRequest struct {
	fakeplatform.Request

	letter   string
	platform string
	body     []byte // unwrapped
}

var sdkMarker = regexp.MustCompile(`\[\[([a-z0-9]+/[-a-z0-9]+/([-a-z0-9]+))\]\]`)

// sdkBody is the body that has the marker: Bedrock's count wraps it.
func sdkBody(r fakeplatform.Request) []byte {
	var wrapped struct {
		Input struct{ InvokeModel struct{ Body string } }
	}
	if json.Unmarshal(r.Body, &wrapped) == nil && wrapped.Input.InvokeModel.Body != "" {
		if inside, err := base64.StdEncoding.DecodeString(wrapped.Input.InvokeModel.Body); err == nil {
			return inside
		}
	}
	return r.Body
}

// sdkRequests are what the lane's platforms got, by job.
func (l *laneRun) sdkRequests() map[string][]sdkRequest {
	out := map[string][]sdkRequest{}
	for i, f := range l.fakes {
		if f == nil {
			continue
		}
		for _, r := range f.Requests() {
			body := sdkBody(r)
			name := ""
			if m := sdkMarker.FindSubmatch(body); m != nil {
				name = string(m[1])
			}
			out[name] = append(out[name], sdkRequest{r, letter(i), platformOf(l.targets[i]), body})
		}
	}
	return out
}

// answerCases makes a platform answer each request as its case says.
func answerCases(platform string, cases []sdkCase) func(fakeplatform.Request) fakeplatform.Answer {
	return func(r fakeplatform.Request) fakeplatform.Answer {
		m := sdkMarker.FindSubmatch(sdkBody(r))
		if m == nil {
			return fakeplatform.Error(500, "no case in the request")
		}
		i := slices.IndexFunc(cases, func(c sdkCase) bool { return c.name == string(m[2]) })
		if i < 0 {
			return fakeplatform.Error(500, "an unknown case")
		}
		if cases[i].count {
			return fakeplatform.Count(platform, r.Tokens)
		}
		reply := cases[i].reply
		reply.ID = replyID(string(m[1]))
		return reply.Answer(platform, r)
	}
}

// replyID differs by job, so that an answer of another one shows.
func replyID(job string) string { return "msg_" + strings.ReplaceAll(job, "/", "_") }

// runSDKs sends the jobs of each client, all clients at once, and returns the
// results by the job's name.
func runSDKs(t *testing.T, jobs func(sdkClient) []sdk.Job) map[string]sdk.Result {
	t.Helper()
	var mu sync.Mutex
	results := map[string]sdk.Result{}
	t.Run("clients", func(t *testing.T) {
		for _, client := range sdkClients {
			t.Run(client.name, func(t *testing.T) {
				t.Parallel()
				got := sdkRun(t, client.start(t), jobs(client))
				mu.Lock()
				defer mu.Unlock()
				for name, r := range got {
					results[name] = r
				}
			})
		}
	})
	return results
}

// TestSDKs: the vendor's own libraries, with their retries on, through chains
// whose first target fails. Their callers see one good answer and no retry.
func TestSDKs(t *testing.T) {
	cases := sdkCases()
	var lanes []lane
	casesOf := map[string][]sdkCase{}
	for _, platform := range fakeplatform.Platforms() {
		for _, failure := range sdkFailures {
			if platform == fakeplatform.Anthropic {
				continue
			}
			to, from := sdkLane(fakeplatform.Anthropic, platform, failure), sdkLane(platform, fakeplatform.Anthropic, failure)
			lanes = append(lanes, to, from)
			casesOf[to.name], casesOf[from.name] = casesFor(failure, cases), casesFor("refused", casesFor(failure, cases))
		}
	}
	e := start(t, sdkOptions(), lanes...)
	for _, l := range e.order {
		if first := platformOf(l.targets[0]); l.fakes[0] != nil {
			status, event := failureOf(t, first, "overloaded", "google-overloaded"), failureOf(t, first, "stream-first-overloaded_error", "stream-first-unavailable")
			byEvent := strings.HasSuffix(l.name, "-event")
			l.fakes[0].Respond(func(r fakeplatform.Request) fakeplatform.Answer {
				if r.Stream && byEvent {
					return event
				}
				return status
			})
		}
		l.fakes[1].Respond(answerCases(platformOf(l.targets[1]), cases))
	}
	results := runSDKs(t, func(client sdkClient) []sdk.Job {
		var jobs []sdk.Job
		for _, l := range e.order {
			for _, c := range casesOf[l.name] {
				jobs = append(jobs, c.job(client, l))
				l.sent.Add(1)
			}
		}
		return jobs
	})
	if t.Failed() {
		return
	}
	for _, shared := range e.order {
		t.Run(shared.name, func(t *testing.T) { checkSDKLane(t, shared.in(t), casesOf[shared.name], results) })
	}
}

func checkSDKLane(t *testing.T, l *laneRun, cases []sdkCase, results map[string]sdk.Result) {
	t.Helper()
	seen := l.sdkRequests()
	for _, client := range sdkClients {
		for _, c := range cases {
			t.Run(client.name+"/"+c.name, func(t *testing.T) {
				job := c.job(client, l)
				requests := seen[job.Name]
				want := "ab"
				if l.fakes[0] == nil {
					want = "b"
				}
				letters := ""
				for _, r := range requests {
					letters += r.letter
					if got := r.Get("x-stainless-retry-count"); got != "0" {
						t.Errorf("x-stainless-retry-count %q at %s", got, r.letter)
					}
				}
				if letters != want {
					t.Fatalf("requests at %q, want %q; the client saw %+v", letters, want, results[job.Name].Error)
				}
				last := requests[len(requests)-1]
				checkSDKResult(t, c, job, results[job.Name], last)
				checkSDKRequest(t, c, job, client.version, last)
			})
		}
	}
	checkSDKTrail(t, l, len(sdkClients)*len(cases), map[string]string{"refused": "connection", "event": "overloaded", "status": "overloaded"}[l.name[strings.LastIndexByte(l.name, '-')+1:]])
}

// checkSDKTrail: each request failed over once.
func checkSDKTrail(t testing.TB, l *laneRun, n int, kind string) {
	t.Helper()
	l.nth(n)
	for _, r := range l.records() {
		if want := "a " + kind + " failover, b ok serve"; r.summary() != want || r.Outcome != "failed_over" || r.Status != 200 {
			t.Errorf("record: attempts %q, outcome %q, status %d; want %q, failed_over, 200", r.summary(), r.Outcome, r.Status, want)
		}
	}
}

// checkSDKResult: the caller has what the platform answered.
func checkSDKResult(t testing.TB, c sdkCase, job sdk.Job, got sdk.Result, r sdkRequest) {
	t.Helper()
	if got.Error != nil {
		t.Fatalf("the client saw %+v", *got.Error)
	}
	if want := fmt.Sprintf("_%d", r.N); r.platform != fakeplatform.Bedrock && !(strings.HasPrefix(got.RequestID, "req_") && strings.HasSuffix(got.RequestID, want)) {
		t.Errorf("request-id %q, want that of answer %d of %s", got.RequestID, r.N, r.platform)
	}
	if !strings.HasSuffix(got.ServedBy, "-b") {
		t.Errorf("served by %q", got.ServedBy)
	}
	if c.count {
		if got.Tokens != r.Tokens || got.Tokens == 0 {
			t.Errorf("%d tokens, want %d", got.Tokens, r.Tokens)
		}
		return
	}
	want := &sdk.Message{ID: replyID(job.Name), StopReason: c.reply.StopReason, Usage: sdk.Usage(c.reply.Usage)}
	for _, b := range c.reply.Blocks {
		switch b.Type {
		case "thinking":
			want.Content = append(want.Content, sdk.Block{Type: b.Type, Thinking: b.Text, Signature: b.Signature})
		case "tool_use":
			want.Content = append(want.Content, sdk.Block{Type: b.Type, ID: b.ID, Name: b.Name, Input: json.RawMessage(b.Input)})
		default:
			want.Content = append(want.Content, sdk.Block{Type: b.Type, Text: b.Text})
		}
	}
	if !sameJSON(t, got.Message, want) {
		t.Errorf("message\n%s\nwant\n%s", toJSON(t, got.Message), toJSON(t, want))
	}
	if c.stream {
		if want := eventTypes(c.reply); !slices.Equal(got.Events, want) {
			t.Errorf("events %v, want %v", got.Events, want)
		}
	}
}

func eventTypes(reply fakeplatform.Reply) []string {
	var out []string
	for _, e := range reply.Events("") {
		name, _, _ := bytes.Cut(bytes.TrimPrefix(e, []byte("event: ")), []byte("\n"))
		if string(name) != "ping" {
			out = append(out, string(name))
		}
	}
	return out
}

func toJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tree is v as JSON has it, numbers as they are written.
func tree(t testing.TB, v any) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(toJSON(t, v)))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func sameJSON(t testing.TB, a, b any) bool {
	t.Helper()
	return reflect.DeepEqual(tree(t, a), tree(t, b))
}

// checkSDKRequest: the platform has what the caller asked for.
func checkSDKRequest(t testing.TB, c sdkCase, job sdk.Job, version string, r sdkRequest) {
	t.Helper()
	platform := r.platform
	var got, want map[string]any
	if err := json.Unmarshal(r.body, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(job.Request, &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model", "stream", "anthropic_version", "anthropic_beta"} { // of the platform's own form, which it judges itself
		delete(got, name)
		delete(want, name)
	}
	lost := missing("", want, got)
	var allowed []string
	if c.edited {
		allowed = sdkLoses[platform]
	}
	if c.count && platform == fakeplatform.Bedrock {
		delete(got, "max_tokens") // its counts need one
	}
	if !slices.Equal(lost, allowed) {
		t.Errorf("%s got less than the client sent: %q, want %q", platform, lost, allowed)
	}
	if more := missing("", got, want); len(more) > 0 {
		t.Errorf("%s got more than the client sent: %q", platform, more)
	}
	if v := r.Get("anthropic-version"); v != "" && v != version {
		t.Errorf("anthropic-version %q, want the client's %q", v, version)
	}
	if query := strings.Contains(r.Target, "?beta=true"); query != (c.beta && platform != fakeplatform.Bedrock && platform != fakeplatform.Vertex) {
		t.Errorf("the request target is %s", r.Target)
	}
}

// sdkLoses are the members of Claude Code's request that a platform does not get.
var sdkLoses = map[string][]string{
	fakeplatform.Bedrock: {"system[].cache_control.scope"},
	fakeplatform.Mantle:  {"system[].cache_control.scope"},
	fakeplatform.Vertex:  {"system[].cache_control.scope"},
}

// missing are the paths of want whose value got does not have.
func missing(path string, want, got any) []string {
	var out []string
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{path}
		}
		for name, v := range w {
			at := strings.TrimPrefix(path+"."+name, ".")
			if x, ok := g[name]; ok {
				out = append(out, missing(at, v, x)...)
			} else {
				out = append(out, at)
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{path}
		}
		for i := range w {
			out = append(out, missing(path+"[]", w[i], g[i])...)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			return []string{path}
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return slices.Compact(out)
}
