package rewrite

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

func span(start, end int) Span { return Span{Start: start, End: end} }

func TestSplice(t *testing.T) {
	for _, c := range []struct {
		name  string
		edits []Edit
		want  string
	}{
		{"nothing", nil, "0123456789"},
		{"replace", []Edit{{span(2, 4), []byte("xyz")}}, "01xyz456789"},
		{"remove", []Edit{{span(0, 3), nil}}, "3456789"},
		{"insert", []Edit{{span(5, 5), []byte("-")}}, "01234-56789"},
		{"ends", []Edit{{span(0, 0), []byte("<")}, {span(10, 10), []byte(">")}}, "<0123456789>"},
		{"two inserts at one place keep their order", []Edit{{span(1, 1), []byte("a")}, {span(1, 1), []byte("b")}}, "0ab123456789"},
		{"one that overlaps is left out", []Edit{{span(2, 5), []byte("x")}, {span(4, 6), []byte("y")}}, "01x56789"},
		{"one beyond the end is left out", []Edit{{span(8, 12), []byte("x")}}, "0123456789"},
		{"one turned round is left out", []Edit{{span(5, 3), []byte("x")}}, "0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte("0123456789")
			got := Splice([]byte("pre:"), body, c.edits)
			if string(got) != "pre:"+c.want || Length(body, c.edits) != len(c.want) {
				t.Errorf("%q of length %d, want %q", got, Length(body, c.edits), c.want)
			}
		})
	}
}

// Whatever the edits: what lies between them is there, in order, unchanged.
func TestSpliceTouchesOnlyItsSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		body := make([]byte, rng.IntN(200))
		for i := range body {
			body[i] = byte(rng.IntN(128))
		}
		var edits []Edit
		for at := 0; at < len(body); {
			start := at + rng.IntN(len(body)-at+1)
			end := start + rng.IntN(len(body)-start+1)
			// Bytes over 0x7f are the edits' own, so they can be told apart.
			edits = append(edits, Edit{span(start, end), bytes.Repeat([]byte{0xff}, rng.IntN(5))})
			at = end + 1
		}
		before := bytes.Clone(body)
		got := Splice(nil, body, edits)
		if !bytes.Equal(before, body) {
			t.Fatal("the original changed")
		}
		if len(got) != Length(body, edits) {
			t.Fatalf("length %d, announced %d", len(got), Length(body, edits))
		}
		var kept []byte
		at := 0
		for _, e := range edits {
			kept = append(kept, body[at:e.Start]...)
			at = e.End
		}
		kept = append(kept, body[at:]...)
		if left := bytes.ReplaceAll(got, []byte{0xff}, nil); !bytes.Equal(left, kept) {
			t.Fatalf("edits %v of %q gave %q", edits, body, got)
		}
	}
}

func TestSetModelChangesNothingElse(t *testing.T) {
	body := []byte("{ \"temperature\": 1.0e0,\n\t\"model\" : \"claude-opus-5-5\" , \"messages\":[ {\"role\":\"user\",\"content\":\"claude-opus-5-5 \\u00e9\"} ] }")
	f, err := Inspect(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"claude-haiku-5-5", `my "own" \ deployment`, "ümlaut"} {
		got := Splice(nil, body, []Edit{SetModel(f, id)})
		var m struct{ Model string }
		if err := json.Unmarshal(got, &m); err != nil || m.Model != id {
			t.Errorf("model %q, %v; want %q", m.Model, err, id)
		}
		before, after := body[:f.ModelSpan.Start], body[f.ModelSpan.End:]
		if !bytes.HasPrefix(got, before) || !bytes.HasSuffix(got, after) {
			t.Errorf("more than the model changed: %s", got)
		}
	}
}

func TestSpliceAllocatesNothingWithRoom(t *testing.T) {
	body := make([]byte, 1<<16)
	edits := []Edit{{span(10, 20), []byte("new")}}
	dst := make([]byte, 0, Length(body, edits))
	if n := testing.AllocsPerRun(50, func() { Splice(dst, body, edits) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
