package rewrite

import (
	"runtime"
	"strings"
	"testing"
)

const (
	prose = `The quick brown fox jumps over the lazy dog, and then it does so once more, as foxes do.\nNobody had asked for it; the dog, for one, kept its eyes shut and said: \"enough\". So it was. `
	block = `{"type":"text","text":"A line of a file, as an agent sends it.","cache_control":{"type":"ephemeral"}},`
	call  = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01","name":"read","input":{"path":"a/b.go","lines":[1,20],"all":false}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"package b\n"}]},`
)

// sized is about size bytes of a request: what opens and closes it, and part as
// often as it takes.
func sized(open, part, shut string, size int) []byte {
	return []byte(open + strings.Repeat(part, size/len(part)) + shut)
}

// bodies are the shapes that requests of size have.
func bodies(size int) map[string][]byte {
	const open = `{"max_tokens":1024,"stream":true,"messages":[{"role":"user","content":`
	const shut = `}],"model":"claude-opus-4-6"}`
	return map[string][]byte{
		"prose":  sized(open+`"`, prose, `"`+shut, size),
		"image":  sized(open+`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`, "iVBORw0KGgoAAAANSUhEUgAA", `"}}]`+shut, size),
		"blocks": sized(open+`[`, block, `{"type":"text","text":"."}]`+shut, size),
		"calls":  sized(`{"max_tokens":1024,"stream":true,"messages":[`, call, `{"role":"user","content":"Go on."}],"model":"claude-opus-4-6"}`, size),
		"tiny":   sized(`{"model":"claude-opus-4-6","stream":true,"x":[`, `{"a":1,"b":[true,null],"c":"d"},`, `0]}`, size),
	}
}

// forBedrock is the change of a request that crosses to InvokeModel: members go
// and one comes.
var forBedrock = Change{DropModel: true, DropStream: true, Add: []Addition{{Name: "anthropic_version", Value: []byte(`"bedrock-2023-05-31"`)}}}

// perByte is what run allocates for each byte of a body of size.
func perByte(size int, run func()) float64 {
	const turns = 8
	run() // what is kept from then on
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range turns {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / turns / float64(size)
}

// Beside the room for the new body, which the caller has, a change allocates
// what does not grow with the body.
func TestAllocatedBytesPerBodyByte(t *testing.T) {
	const most = 0.10
	for _, size := range []int{64 << 10, 1 << 20} {
		for name, body := range bodies(size) {
			if name == "blocks" { // a list of marks, of which the API takes four
				continue
			}
			room := make([]byte, 0, len(body)+1024)
			for what, change := range map[string]Change{"another model": {Model: "my-deployment"}, "bedrock": forBedrock, "nothing": {}} {
				host := Host{Platform: "bedrock", Model: "claude-opus-4-6"}
				got := perByte(len(body), func() {
					facts, err := Inspect(body)
					if err != nil {
						t.Fatal(err)
					}
					fit := facts.Fit(&host, nil)
					c := change
					c.Strip = fit.Stripped | fit.Lossless
					if edits := facts.Edits(&c); len(edits) > 0 {
						Splice(room, body, edits)
					}
				})
				t.Logf("%s of %d KB, %s: %.4f", name, size>>10, what, got)
				if got > most {
					t.Errorf("%s of %d KB, %s: %.3f bytes allocated for each of the body, want at most %.2f", name, size>>10, what, got, most)
				}
			}
		}
	}
}

// What Inspect allocates for a body without members to strip is the same for
// every size.
func TestInspectAllocatesTheSameForEverySize(t *testing.T) {
	allocations := func(body []byte) float64 {
		return testing.AllocsPerRun(5, func() {
			if _, err := Inspect(body); err != nil {
				t.Fatal(err)
			}
		})
	}
	small := bodies(1 << 10)
	for name, body := range bodies(4 << 20) {
		if name == "blocks" {
			continue
		}
		if few, many := allocations(small[name]), allocations(body); many > few || many > 4 {
			t.Errorf("%s: %v allocations for 1 KB, %v for 4 MB", name, few, many)
		}
	}
}

// BenchmarkRewriting is what becomes of a body, from its bytes to the edited
// ones, for a body of each shape.
func BenchmarkRewriting(b *testing.B) {
	all := bodies(1 << 20)
	for _, name := range []string{"prose", "image", "blocks", "calls", "tiny"} {
		b.Run(name, func(b *testing.B) { benchmarkRewriting(b, all[name]) })
	}
}

func benchmarkRewriting(b *testing.B, body []byte) {
	room := make([]byte, len(body)+1024)
	facts, err := Inspect(body)
	if err != nil {
		b.Fatal(err)
	}
	strip := forBedrock
	strip.Strip = CacheControl.bit()
	edit := func(change *Change) func() {
		return func() { room = Splice(room[:0], body, facts.Edits(change)) }
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"inspect", func() { _, _ = Inspect(body) }}, // it did well above
		{"model", edit(&Change{Model: "my-deployment"})},
		{"bedrock", edit(&forBedrock)},
		{"strip", edit(&strip)},
		{"memcpy", func() { copy(room[:len(body)], body) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				c.run()
			}
		})
	}
}
