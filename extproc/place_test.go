package extproc

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/rewrite"
)

// bodyOf is a buffer with a request of about 1 MB.
func bodyOf(tb testing.TB) (*wire.Buffer, rewrite.Facts) {
	tb.Helper()
	text := []byte(`{"model":"claude-opus-4-6","messages":[{"role":"user","content":"` + string(bytes.Repeat([]byte("words and "), 100_000)) + `"}]}`)
	buf := wire.NewBuffer(len(text))
	copy(buf.Bytes(), text)
	facts, err := rewrite.Inspect(buf.Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	return buf, facts
}

// A target that takes the client's bytes as they are gets them: the buffer that
// Envoy's message was read into, and no other.
func TestUnchangedBodyIsNotCopied(t *testing.T) {
	before := wire.Live()
	original, facts := bodyOf(t)
	p := placement{edits: facts.Edits(&rewrite.Change{Model: facts.Model})}
	out := p.body(original)
	if out != original || &out.Bytes()[0] != &original.Bytes()[0] {
		t.Error("an unchanged body is not the client's")
	}
	if n := testing.AllocsPerRun(20, func() { p.body(original).Free() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	out.Free()
	original.Free()
	noBuffers(t, before)
}

// A changed body is made in a buffer of the pool; what else it takes does not
// grow with the body.
func TestChangedBodyIsMadeInThePool(t *testing.T) {
	const turns = 16
	const most = 0.10 // allocated for each byte of the body
	before := wire.Live()
	original, facts := bodyOf(t)
	p := placement{edits: facts.Edits(&rewrite.Change{Model: "my-deployment"})}
	held := p.body(original) // while it lives, the pool keeps room for another one
	p.body(original).Free()
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	for range turns {
		p.body(original).Free()
	}
	runtime.ReadMemStats(&to)
	if got := float64(to.TotalAlloc-from.TotalAlloc) / turns / float64(original.Len()); got > most {
		t.Errorf("%.3f bytes allocated for each of the body, want at most %.2f", got, most)
	}
	if want := bytes.Replace(original.Bytes(), []byte("claude-opus-4-6"), []byte("my-deployment"), 1); !bytes.Equal(held.Bytes(), want) {
		t.Error("more than the model is another one")
	}
	held.Free()
	original.Free()
	noBuffers(t, before)
}
