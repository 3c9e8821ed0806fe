package rewrite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// all strips whatever can be stripped.
var all = strippable

func changed(t testing.TB, body string, c *Change) string {
	t.Helper()
	facts, err := Inspect([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	edits := facts.Edits(c)
	out := string(Splice(nil, []byte(body), edits))
	if !json.Valid([]byte(out)) {
		t.Fatalf("%s became %s", body, out)
	}
	if n := Length([]byte(body), edits); n != len(out) {
		t.Fatalf("%s: length %d, want %d", body, n, len(out))
	}
	return out
}

func TestChange(t *testing.T) {
	version := []Addition{{Name: "anthropic_version", Value: []byte(`"v"`)}}
	for _, c := range []struct {
		name, body, want string
		change           Change
	}{
		{"nothing", `{"model":"m"}`, `{"model":"m"}`, Change{}},
		{"the model", `{ "model" : "m" , "x":1}`, `{ "model" : "n" , "x":1}`, Change{Model: "n"}},
		{"the same model", `{"model":"m"}`, `{"model":"m"}`, Change{Model: "m"}},
		{"a first member", `{"model":"m", "x":1}`, `{ "x":1}`, Change{DropModel: true}},
		{"a member within", `{"a":1, "model":"m" , "x":1}`, `{"a":1,  "x":1}`, Change{DropModel: true}},
		{"the last member", `{"a":1 , "model":"m" }`, `{"a":1  }`, Change{DropModel: true}},
		{"the only member", `{ "model":"m" }`, `{  }`, Change{DropModel: true}},
		{"two beside each other", `{"a":1,"model":"m","stream":true,"x":1}`, `{"a":1,"x":1}`, Change{DropModel: true, DropStream: true}},
		{"two at the end", `{"a":1,"model":"m","stream":true}`, `{"a":1}`, Change{DropModel: true, DropStream: true}},
		{"both ends", `{"model":"m","a":1,"stream":true}`, `{"a":1}`, Change{DropModel: true, DropStream: true}},
		{"all", `{"model":"m","stream":true}`, `{}`, Change{DropModel: true, DropStream: true}},
		{"added", `{"model":"m"}`, `{"anthropic_version":"v","model":"m"}`, Change{Add: version}},
		{"added before what goes", `{"model":"m","a":1}`, `{"anthropic_version":"v","a":1}`, Change{Add: version, DropModel: true}},
		{"added to nothing", `{"model":"m"}`, `{"anthropic_version":"v"}`, Change{Add: version, DropModel: true}},
		{"added in place of the client's", `{"model":"m","anthropic_version":"x"}`, `{"anthropic_version":"v","model":"m"}`, Change{Add: version}},
		{
			"a time to live, in three places",
			`{"model":"m","system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"t","cache_control":{"ttl":"1h","type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","cache_control":{"ttl":"5m"}}]}]}]}`,
			`{"model":"m","system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"t","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","cache_control":{}}]}]}]}`,
			Change{Strip: CacheTTL.bit()},
		},
		{
			"a member and what is in it",
			`{"model":"m","messages":[{"content":[{"cache_control":{"ttl":"1h","type":"e"},"type":"text"}]}]}`,
			`{"model":"m","messages":[{"content":[{"type":"text"}]}]}`,
			Change{Strip: setOf(CacheControl, CacheTTL)},
		},
		{"effort alone", `{"model":"m","output_config":{"effort":"low","format":{}}}`, `{"model":"m","output_config":{"format":{}}}`, Change{Strip: OutputEffort.bit()}},
		{"output_config emptied", `{"model":"m","output_config":{"effort":"low"}}`, `{"model":"m"}`, Change{Strip: OutputEffort.bit()}},
		{"null", `{"model":"m","thread":null,"x":1}`, `{"model":"m","x":1}`, Change{Strip: Thread.bit()}},
		{"a time to live of the request's own", `{"model":"m","cache_control":{"type":"ephemeral","ttl":"1h"}}`, `{"model":"m","cache_control":{"type":"ephemeral"}}`, Change{Strip: CacheTTL.bit()}},
		{"with the member that it is in", `{"cache_control":{"ttl":"1h"},"model":"m"}`, `{"model":"m"}`, Change{Strip: setOf(CacheTTL, AutomaticCaching)}},
		{"an edit that compacts", `{"context_management":{"edits":[{"type":"compact_20260112"}]},"model":"m"}`, `{"model":"m"}`, Change{Strip: ContextCompact.bit()}},
		{"a tool's input is nobody's", `{"model":"m","messages":[{"content":[{"type":"tool_use","input":{"cache_control":{"ttl":1}}}]}]}`, `{"model":"m","messages":[{"content":[{"type":"tool_use","input":{"cache_control":{"ttl":1}}}]}]}`, Change{Strip: all}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := changed(t, c.body, &c.change); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDuplicatesWhereEditsGo(t *testing.T) {
	for body, refused := range map[string]bool{
		`{"model":"m","messages":[{"content":[{"cache_control":{"ttl":1},"cache_control":{}}]}]}`:                                       true,
		`{"model":"m","messages":[{"content":[{"cache_control":{"ttl":1,"tt\u006c":2}}]}]}`:                                             true,
		`{"model":"m","output_config":{"effort":"low","effort":"high"}}`:                                                                true,
		`{"model":"m","messages":[{"content":[{"type":"tool_use","input":{"a":1,"a":2}}]}]}`:                                            false,
		`{"model":"m","messages":[{"content":[{"type":"text","cache_control":{"ttl":1}},{"x":1,"x":2}]}]}`:                              false,
		`{"model":"m","messages":[{"content":[{"type":"text","type":"text","cache_control":{"type":"e"}}]}]}`:                           true,
		`{"model":"m","messages":[{"role":"user","role":"user","content":[{"cache_control":{}}]}]}`:                                     false,
		`{"model":"m","cache_control":{"ttl":"1h","ttl":"5m"}}`:                                                                         true,
		`{"model":"m","messages":[{"content":[{"type":"image","source":{"type":"file","file_id":"file_a"},"source":{"type":"url"}}]}]}`: true,
		`{"model":"m","tools":[{"input_examples":[],` + members(40, "a%d") + `}]}`:                                                      false,
		`{"model":"m","tools":[{"input_examples":[],` + members(40, "a%d") + `,"a7":1}]}`:                                               true,
		`{"model":"m","tools":[{"input_examples":[],` + members(MaxMembers, "a%d") + `}]}`:                                              true,
		`{"model":"m","tools":[{` + members(MaxMembers+1, "a%d") + `}]}`:                                                                false,
	} {
		if _, err := Inspect([]byte(body)); (err != nil) != refused {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// members writes n members whose names follow the format.
func members(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"`+format+`":1`, i)
	}
	return strings.Join(list, ",")
}

// Objects within each other, each with a member that could go, are read once: the
// work grows with the size of the body alone.
func TestDeepSites(t *testing.T) {
	const levels = 160
	text := strings.Repeat("x", 1<<20)
	body := `{"model":"m","messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"tool_result","cache_control":{"ttl":"1h"},"content":[`, levels) +
		`{"type":"text","text":"` + text + `"}` + strings.Repeat(`]}`, levels) + `]}]}`
	out := changed(t, body, &Change{Strip: CacheControl.bit()})
	if strings.Contains(out, "cache_control") || len(out) != len(body)-levels*len(`"cache_control":{"ttl":"1h"},`) {
		t.Error("marks are left, or more went than the marks")
	}
	var scanned int
	allocated := testing.AllocsPerRun(3, func() {
		facts, err := Inspect([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		scanned = len(facts.sites)
	})
	if scanned != 2*levels || allocated > 64 {
		t.Errorf("%d sites, %v allocations", scanned, allocated)
	}
}

// Beyond so many sites nothing of their kind can be stripped, and so the request
// stays away from where it would have to be.
func TestTooManySites(t *testing.T) {
	block := `{"cache_control":{"ttl":1}}`
	body := []byte(`{"model":"m","system":[` + strings.Repeat(block+",", maxSites/2) + block + `]}`)
	facts, err := Inspect(body)
	if err != nil || len(facts.sites) != maxSites {
		t.Fatalf("%d sites, %v", len(facts.sites), err)
	}
	host := Host{Platform: "bedrock", Overrides: map[Feature]Action{CacheTTL: Strip}}
	fit := facts.Fit(&host, nil)
	if fit.Refused != CacheTTL.bit() || fit.Stripped != 0 {
		t.Errorf("%+v", fit)
	}
}

// Many marks are as cheap as few, each, and all go.
func TestManySites(t *testing.T) {
	const n = 20000
	block := `{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}`
	body := `{"model":"m","messages":[{"role":"user","content":[` + strings.Repeat(block+",", n) + block + `]}]}`
	out := changed(t, body, &Change{Strip: CacheTTL.bit()})
	if strings.Contains(out, "ttl") || strings.Count(out, `"cache_control":{"type":"ephemeral"}`) != n+1 {
		t.Error("marks are left, or more went than the marks")
	}
}

// randomObject writes an object with some of the members, in any order.
func randomObject(rng *rand.Rand, members []string) string {
	var out []string
	for _, i := range rng.Perm(len(members)) {
		if rng.IntN(2) == 0 {
			out = append(out, members[i])
		}
	}
	blank := [...]string{"", " ", "\n\t"}[rng.IntN(3)]
	return "{" + blank + strings.Join(out, blank+","+blank) + blank + "}"
}

func randomBody(rng *rand.Rand) string {
	cache := `"cache_control":` + randomObject(rng, []string{`"type":"ephemeral"`, `"ttl":"1h"`, `"scope":"global"`})
	kind := [...]string{`"type":"text"`, `"type":"compaction"`, `"type":"fallback"`, `"type":"text"`}[rng.IntN(4)]
	block := randomObject(rng, []string{kind, `"text":"é \ud83d"`, cache, `"citations":{"enabled":true}`})
	tool := randomObject(rng, []string{`"name":"t"`, `"input_examples":[{}]`, cache, `"eager_input_streaming":true`, `"strict":true`})
	body := randomObject(rng, []string{
		`"system":[` + block + `]`, `"tools":[` + tool + `,` + tool + `]`, `"max_tokens":1e5`, `"temperature":1.0`, `"top_p":0.1000000000000000055`,
		`"messages":[{"role":"user","content":[` + block + `,` + block + `]},{"role":"assistant","content":"x"}]`, `"service_tier":"auto"`,
		`"output_config":` + randomObject(rng, []string{`"effort":"low"`, `"format":{}`, `"task_budget":{}`, `"zz":1`}), `"stream":true`,
		`"diagnostics":{}`, `"zz_future":{"a":[1,2,{"b":null}]}`, `"speed":"fast"`, `"cache_control":{"type":"ephemeral","ttl":"1h"}`,
		`"thinking":` + randomObject(rng, []string{`"type":"adaptive"`, `"block_binding":{}`}), `"container":null`, `"fallbacks":null`,
		`"context_management":{"edits":[` + [...]string{"", `{"type":"compact_20260112"}`}[rng.IntN(2)] + `]}`,
	})
	if body = strings.TrimSpace(body); strings.Contains(body, `"`) {
		return `{"model":"claude-opus-4-5",` + body[1:]
	}
	return `{"model":"claude-opus-4-5"}`
}

// strip, then guard: whatever the request and the host, nothing is left that the
// host does not take, what is left is as it was, and it is JSON.
func TestStripThenGuard(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	platforms := []string{"anthropic", "claude-on-aws", "claude-on-google", "mantle", "bedrock", "vertex", "foundry"}
	for range 20000 {
		body := randomBody(rng)
		host := Host{Platform: platforms[rng.IntN(len(platforms))], Model: "claude-opus-5-5", Crossing: rng.IntN(2) == 0}
		if rng.IntN(4) == 0 {
			host.Overrides = map[Feature]Action{CacheTTL: Strip, OutputEffort: Strip, ToolSearch: Keep, Compaction: Strip, Fallbacks: Strip, ContextManagement: Strip}
		}
		if rng.IntN(8) == 0 {
			host.Hosting = "azure"
		}
		facts, err := Inspect([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		fit := facts.Fit(&host, []string{"context-management-2025-06-27, fast-mode-2026-02-01", "compact-2026-01-12,compact-2026-09-04"})
		if fit.Refused != 0 {
			continue
		}
		if left := facts.Leftover(&host, &fit); left != 0 {
			t.Fatalf("%s: left over at %s: %v", body, host.Platform, left.Names())
		}
		edits := facts.Edits(&Change{Strip: fit.Stripped | fit.Lossless})
		out := Splice(nil, []byte(body), edits)
		if left, err := Scan(out, &host); left != 0 || err != nil {
			t.Fatalf("%s\nbecame %s\nat %s: %v %v", body, out, host.Platform, left.Names(), err)
		}
		if managed := strings.Contains(string(out), "context_management"); !managed && strings.Contains(body, "context_management") && slices.Contains(fit.Betas, "context-management-2025-06-27") {
			t.Fatalf("%s\nbecame %s\nat %s with %v", body, out, host.Platform, fit.Betas)
		}
		if fit.Stripped|fit.Lossless == 0 && string(out) != body {
			t.Fatalf("%s became %s", body, out)
		}
		untouched(t, body, string(out), edits)
	}
}

// untouched checks that what lies between the edits is there, in order.
func untouched(t *testing.T, body, out string, edits []Edit) {
	t.Helper()
	at := 0
	for _, e := range edits {
		kept := body[at:e.Start]
		if !strings.HasPrefix(out, kept) {
			t.Fatalf("%s: %q is not kept", body, kept)
		}
		out, at = out[len(kept)+len(e.New):], e.End
	}
	if out != body[at:] {
		t.Fatalf("%s: the end is %q", body, out)
	}
}

// sameMembers checks that what is left of the request's members stands in its old
// order after what was added, each as it was where no edit is in it.
func sameMembers(t *testing.T, body, out []byte, edits []Edit, before, after []Member) {
	t.Helper()
	after = after[1:] // anthropic_version
	for _, m := range before {
		span := Span{Start: m.Key.Start, End: m.Value.End}
		within := slices.ContainsFunc(edits, func(e Edit) bool { return e.Start < span.End && e.End > span.Start })
		switch {
		case len(after) > 0 && after[0].Name == m.Name:
			is := out[after[0].Key.Start:after[0].Value.End]
			if was := body[span.Start:span.End]; !within && !bytes.Equal(is, was) {
				t.Fatalf("%q became %q", was, is)
			}
			after = after[1:]
		case !within:
			t.Fatalf("%q has lost %q", body, m.Name)
		}
	}
	if len(after) > 0 {
		t.Fatalf("%q has %q from nowhere", out, after[0].Name)
	}
}

func FuzzChange(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"output_config":{"effort":"low"}}`), uint64(all), true)
	f.Add([]byte(`{"a":1,"model":"m","stream":true}`), uint64(0), true)
	f.Fuzz(func(t *testing.T, body []byte, strip uint64, drop bool) {
		facts, err := Inspect(body)
		if err != nil {
			return
		}
		c := Change{Model: "x", DropModel: drop, DropStream: drop, Strip: FeatureSet(strip) & strippable, Add: []Addition{{"anthropic_version", []byte(`"v"`)}}}
		edits := facts.Edits(&c)
		out := Splice(nil, body, edits)
		if !json.Valid(out) || len(out) != Length(body, edits) {
			t.Fatalf("%q became %q", body, out)
		}
		again, err := inspect(out, false)
		if err != nil {
			t.Fatalf("%q became %q: %v", body, out, err)
		}
		if left := again.Uses & c.Strip &^ facts.fixed; left != 0 {
			t.Fatalf("%q became %q with %v", body, out, left.Names())
		}
		sameMembers(t, body, out, edits, facts.Members, again.Members)
		if drop && again.Model != "" {
			t.Fatalf("the model is still in %q", out)
		}
	})
}

func TestUses(t *testing.T) {
	for body, want := range map[string]string{
		`"service_tier":"auto","diagnostics":null`:                                                                       "service_tier",
		`"messages":[{"role":"system","content":"x"},{"role":"user","content":"x"}]`:                                     "system_messages",
		`"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"x"}]`:                                  "prefill",
		`"tools":[{"type":"web_search_20250305"},{"strict":false},{"defer_loading":true}]`:                               "web_search tool_search",
		`"tools":[{"type":"web_search_20260209"},{"type":"code_execution_20250825"}]`:                                    "web_search.later code_execution",
		`"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"x"}}]}]`:                    "url_source",
		`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]`:       "file_id",
		`"messages":[{"role":"user","content":[{"type":"server_tool_use","name":"web_fetch"},{"type":"mcp_tool_use"}]}]`: "web_fetch mcp_servers",
		`"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"}`:                                                    "thinking.adaptive tool_choice.forced",
		`"output_format":{},"context_management":{"edits":[{"type":"compact_20260112"}]}`:                                "context_management context_management.compact output_config.format",
	} {
		facts, err := Inspect(fmt.Appendf(nil, `{"model":"m",%s}`, body))
		if got := strings.Join(facts.Uses.Names(), " "); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", body, got, err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"file_a"}},{"type":"container_upload","file_id":"file_b"}]}]}`)
	facts, err := Inspect(body)
	if err != nil || len(facts.Files) != 2 {
		t.Fatalf("%v %v", facts.Files, err)
	}
	for i, want := range []string{`{"type":"file","file_id":"file_a"}`, `{"type":"container_upload","file_id":"file_b"}`} {
		if got := body[facts.Files[i].Source.Start:facts.Files[i].Source.End]; !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestManyFiles(t *testing.T) {
	block := `{"type":"document","source":{"type":"file","file_id":"file_a"}}`
	body := []byte(`{"model":"m","messages":[{"content":[` + strings.Repeat(block+",", MaxFiles) + block + `]}]}`)
	facts, err := Inspect(body)
	if err != nil || len(facts.Files) != MaxFiles || facts.Files[MaxFiles-1].ID != "" || facts.Files[MaxFiles-2].ID != "file_a" {
		t.Errorf("%d files, %v", len(facts.Files), err)
	}
}

func TestBlocksAreCounted(t *testing.T) {
	facts, err := Inspect([]byte(`{"model":"m","messages":[{"content":[{"type":"image"},{"type":"document","source":{"type":"content","content":[{"type":"image"}]}},{"type":"tool_result","content":[{"type":"image"}]}]}]}`))
	if err != nil || facts.Images != 3 || facts.Documents != 1 {
		t.Errorf("%d images, %d documents, %v", facts.Images, facts.Documents, err)
	}
}
