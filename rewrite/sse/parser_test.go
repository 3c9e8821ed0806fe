package sse

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// feed gives the chunks to a parser and returns the events as text.
func feed(t *testing.T, p *Parser, chunks ...string) (events []string, err error) {
	t.Helper()
	for _, c := range chunks {
		chunk := []byte(c)
		err = p.Feed(chunk, func(e Event) bool {
			events = append(events, fmt.Sprintf("%s|%s", e.Name, e.Data))
			return true
		})
		for i := range chunk {
			chunk[i] = '#' // whatever still points here shows
		}
	}
	return events, err
}

func TestParser(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"one", "event: ping\ndata: {}\n\n", []string{"ping|{}"}},
		{"two", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", []string{"a|1", "b|2"}},
		{"no name", "data: 1\n\n", []string{"|1"}},
		{"the name does not last", "event: a\ndata: 1\n\ndata: 2\n\n", []string{"a|1", "|2"}},
		{"the last name counts", "event: a\nevent: b\ndata: 1\n\n", []string{"b|1"}},
		{"the name after the data", "data: 1\nevent: a\n\n", []string{"a|1"}},
		{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{"a|1", "|2"}},
		{"CR", "event: a\rdata: 1\r\rdata: 2\r\r", []string{"a|1", "|2"}},
		{"mixed ends", "event: a\rdata: 1\n\r\ndata: 2\r\n\n", []string{"a|1", "|2"}},
		{"CR and LF are two ends only in that order", "data: 1\n\rdata: 2\n\n", []string{"|1", "|2"}},
		{"byte order mark", "\ufeffdata: 1\n\n", []string{"|1"}},
		{"only one mark is taken", "\ufeff\ufeffdata: 1\n\ndata: 2\n\n", []string{"|2"}},
		{"half a mark is text", "\xef\xbbdata: 1\n\ndata: 2\n\n", []string{"|2"}},
		{"mark later is text", "data: 1\n\n\ufeffdata: 2\n\n", []string{"|1"}},
		{"lines joined", "data: 1\ndata: 2\ndata:3\n\n", []string{"|1\n2\n3"}},
		{"empty data lines", "data\n\ndata:\n\ndata\ndata\n\n", []string{"|", "|", "|\n"}},
		{"one blank after the colon goes", "data:  1 \n\n", []string{"| 1 "}},
		{"colons in data", "data: a: b:c\n\n", []string{"|a: b:c"}},
		{"comments", ": hello\n\n:\ndata: 1\n: between\ndata: 2\n\n:data: 3\n\n", []string{"|1\n2"}},
		{"unknown fields", "id: 1\nretry: 5\nfoo: x\nfoo\ndata: 1\nDATA: 2\n data: 3\n\n", []string{"|1"}},
		{"a name without data is none", "event: a\n\ndata: 1\n\n", []string{"|1"}},
		{"blank lines", "\n\n\r\n\rdata: 1\n\n\n\n", []string{"|1"}},
		{"unfinished", "data: 1\n\ndata: 2\n", []string{"|1"}},
		{"unfinished line", "data: 1\n\ndata: 2", []string{"|1"}},
		{"bytes that are no text", "data: \x00\xff\n\n", []string{"|\x00\xff"}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := feed(t, &Parser{}, c.stream)
			if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Fatalf("%q, %v; want %q", got, err, c.want)
			}
			for n := range len(c.stream) + 1 {
				got, err := feed(t, &Parser{}, c.stream[:n], "", c.stream[n:])
				if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
					t.Fatalf("cut at %d: %q, %v; want %q", n, got, err, c.want)
				}
			}
			if got, _ := feed(t, &Parser{}, strings.Split(c.stream, "")...); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Fatalf("one by one: %q, want %q", got, c.want)
			}
		})
	}
}

func TestTooLong(t *testing.T) {
	line := "data: " + strings.Repeat("x", 94) + "\n" // 100 bytes before its end
	for _, c := range []struct {
		name, stream string
		err          error
		events       int
	}{
		{"at the limit", line + line + "\n", nil, 1},
		{"above it", line + line + "data\n\n", ErrEventTooLong, 0},
		{"one long line that does not end", "data: " + strings.Repeat("x", 300), ErrEventTooLong, 0},
		{"unknown fields count", strings.Repeat("foo: bar\n", 100), ErrEventTooLong, 0},
		{"comments do not", strings.Repeat(": comment\n", 100) + ":" + strings.Repeat("x", 900) + "\n" + line + "\n", nil, 1},
		{"each event anew", strings.Repeat(line+line+"\n", 5), nil, 5},
		{"those before it are yielded", line + "\n" + strings.Repeat(line, 3), ErrEventTooLong, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, chunks := range [][]string{{c.stream}, strings.Split(c.stream, ""), {c.stream[:50], c.stream[50:]}} {
				got, err := feed(t, &Parser{MaxEvent: 200}, chunks...)
				if !errors.Is(err, c.err) || len(got) != c.events {
					t.Errorf("in %d chunks: %d events, %v; want %d, %v", len(chunks), len(got), err, c.events, c.err)
				}
			}
		})
	}
}

func TestStop(t *testing.T) {
	p, seen := Parser{}, 0
	yield := func(Event) bool { seen++; return seen < 2 }
	for range 3 {
		if err := p.Feed([]byte("data: 1\n\ndata: 2\n\ndata: 3\n\n"), yield); err != nil {
			t.Fatal(err)
		}
	}
	if seen != 2 {
		t.Errorf("%d events after yield said stop at the second", seen)
	}
}

func TestWholeEventsAreNotCopied(t *testing.T) {
	p := Parser{}
	chunk := []byte(strings.Repeat("event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n", 50))
	yield := func(Event) bool { return true }
	if n := testing.AllocsPerRun(20, func() {
		if err := p.Feed(chunk, yield); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a chunk of 50 events, want none", n)
	}
}

func TestAppendReadsBack(t *testing.T) {
	stream := Append(Append(nil, []byte("ping"), []byte("{}")), nil, []byte(" x "))
	if want := "event: ping\ndata: {}\n\ndata:  x \n\n"; string(stream) != want {
		t.Errorf("%q, want %q", stream, want)
	}
	if got, err := feed(t, &Parser{}, string(stream)); err != nil || fmt.Sprintf("%q", got) != `["ping|{}" "| x "]` {
		t.Errorf("%q, %v", got, err)
	}
}

// plain is the standard's algorithm, word for word, on the whole stream.
func plain(stream []byte) (events []string) {
	text := strings.TrimPrefix(string(stream), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var name, data string
	has := false
	for _, line := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if has {
				events = append(events, name+"|"+strings.TrimSuffix(data, "\n"))
			}
			name, data, has = "", "", false
		case field == "event":
			name = value
		case field == "data":
			data, has = data+value+"\n", true
		}
	}
	return events
}

func FuzzParser(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: 1\r\n\r\n: c\ndata\ndata: 2\n\n"), 7)
	f.Add([]byte("\ufeffdata: 1\r\rdata:2\n\n"), 2)
	f.Add([]byte("\xef\xbbdata: 1\n\n"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		want := fmt.Sprintf("%q", plain(stream))
		if cut < 0 || cut > len(stream) {
			cut = len(stream) / 2
		}
		got, err := feed(t, &Parser{}, string(stream[:cut]), string(stream[cut:]))
		if err != nil || fmt.Sprintf("%q", got) != want {
			t.Fatalf("cut at %d of %q: %q, %v; want %s", cut, stream, got, err, want)
		}
	})
}

func BenchmarkParser(b *testing.B) {
	chunk := bytes.Repeat([]byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n"), 100)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	p := Parser{}
	for b.Loop() {
		if err := p.Feed(chunk, func(Event) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
