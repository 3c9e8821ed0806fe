package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/test/sdk"
)

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
				if got := checkNoRetry(t, requests); got != want {
					t.Fatalf("requests at %q, want %q; the client saw %+v", got, want, results[job.Name].Error)
				}
				last := requests[len(requests)-1]
				checkSDKResult(t, c, job, results[job.Name], last)
				checkSDKRequest(t, c, job, client.version, last)
			})
		}
	}
	checkSDKTrail(t, l, len(sdkClients)*len(cases), map[string]string{"refused": "connection", "event": "overloaded", "status": "overloaded"}[l.name[strings.LastIndexByte(l.name, '-')+1:]])
}

// checkNoRetry returns the letters of the targets that got the requests, none of
// which may be the library's own retry.
func checkNoRetry(t testing.TB, requests []sdkRequest) string {
	t.Helper()
	var letters strings.Builder
	for _, r := range requests {
		letters.WriteString(r.letter)
		if got := r.Get("x-stainless-retry-count"); got != "0" {
			t.Errorf("x-stainless-retry-count %q at %s", got, r.letter)
		}
	}
	return letters.String()
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
	if want := fmt.Sprintf("_%d", r.N); r.platform != fakeplatform.Bedrock && (!strings.HasPrefix(got.RequestID, "req_") || !strings.HasSuffix(got.RequestID, want)) {
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
