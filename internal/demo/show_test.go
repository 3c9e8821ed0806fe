package demo

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/internal/trail"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), `go test ./internal/demo -update` writes it:\n%s", path, diff)
	}
}

// sample is an observation as it would be shown.
func sample(w want, k kind, ms ...int64) observed {
	o := conforming(w, k)
	o.total = 14 * time.Millisecond
	for i := range o.record.Attempts {
		a := &o.record.Attempts[i]
		a.MS, a.Status = ms[i], w.status
		if i+1 < len(o.record.Attempts) {
			a.Decision, a.Status = trail.DecisionFailover, 529
		}
	}
	return o
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// show writes a small tour to a screen.
func show(s *screen) {
	s.print(heading(), titleLine(1, script[0], s.width))
	s.print(requestLines(1, sample(direct, asJSON, 3))...)
	s.print(requestLines(2, sample(direct, asStream, 240))...)
	s.print(verdictLines(nil, s.width)...)
	s.print(titleLine(10, script[9], s.width))
	s.print(requestLines(1, sample(exhausted, asJSON, 1, 2, 12000))...)
	s.print(noteLine("breaker of anthropic for demo-nothing: open"))
	s.print(requestLines(2, sample(noneLeft, asJSON))...)
	lost := conforming(moved("timeout"), asStream)
	lost.record, lost.status = nil, 0
	lost.arrivals[1].Answer = "stream"
	s.print(requestLines(3, lost)...)
	s.print(requestLines(4, observed{})...)
	s.print(verdictLines([]string{"#1: status: 200, not 529", strings.Repeat("long ", 30)}, s.width)...)
	s.print(summaryLines([]result{
		{step: script[0], requests: 2, attempts: 2, took: 400 * time.Millisecond},
		{step: script[9], requests: 3, attempts: 6, added: 4 * time.Millisecond, took: 90 * time.Second, problems: []string{"x"}},
	}, 10, 12345*time.Millisecond)...)
	s.print(summaryLines(nil, 0, time.Second)...)
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	show(newScreen(&out, Plain, 0))
	golden(t, "plain.golden", out.Bytes())
	for l := range strings.SplitSeq(out.String(), "\n") {
		if n := utf8.RuneCountInString(l); n > 100 {
			t.Errorf("%d characters: %s", n, l)
		}
		if strings.ContainsAny(l, "\x1b\r") {
			t.Errorf("not plain: %q", l)
		}
	}
}

func TestColours(t *testing.T) {
	var out bytes.Buffer
	show(newScreen(&out, Live, 80))
	golden(t, "colours.golden", bytes.ReplaceAll(out.Bytes(), []byte("\x1b"), []byte("^[")))
	for l := range strings.SplitSeq(escapes.ReplaceAllString(out.String(), ""), "\n") {
		if n := utf8.RuneCountInString(l); n > 80 {
			t.Errorf("%d characters: %s", n, l)
		}
	}
}

func TestInvitation(t *testing.T) {
	var out bytes.Buffer
	w := &world{binary: "bin/crossdoor", listen: 12345, admin: 12346, dir: "/tmp/demo"}
	newScreen(&out, Plain, 0).print(w.invitation()...)
	golden(t, "invitation.golden", out.Bytes())
}

// TestRegion: what is printed goes above the region, which is drawn again below
// and vanishes at the end.
func TestRegion(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, Live, 40)
	s.draw = func() []line { return []line{text("one"), text("two")} }
	s.print()
	s.print(text("above"))
	s.draw = nil
	s.print()
	if want := "one\ntwo\n\x1b[2F\x1b[Jabove\none\ntwo\n\x1b[2F\x1b[J"; out.String() != want {
		t.Errorf("%q\nwant\n%q", out.String(), want)
	}
}

func TestDuringEndsTwice(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, Live, 40)
	end := s.during(func() []line { return []line{text("working")} })
	end()
	end()
	if got := out.String(); !strings.HasPrefix(got, "working\n") || !strings.HasSuffix(got, "\x1b[1F\x1b[J") {
		t.Errorf("%q", got)
	}
}

func TestRunningLines(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	f := &flight{kind: asStream, began: now.Add(-50 * time.Millisecond)}
	done := arrival{target: targetAnthropic, Request: fakeplatform.Request{Answer: "error 529", Headed: now.Add(-40 * time.Millisecond), Ended: now.Add(-30 * time.Millisecond)}}
	runs := arrival{target: targetAWS, Request: fakeplatform.Request{Answer: "stream", Headed: now.Add(-20 * time.Millisecond)}}
	var out bytes.Buffer
	s := newScreen(&out, Plain, 0)
	s.print(runningLines(1, f, nil, now)...)
	s.print(runningLines(1, f, []arrival{done, runs}, now)...)
	f.update(func(a *answer) { a.status, a.body = 200, fakeplatform.MessageStart("m", "m") })
	s.print(runningLines(1, f, []arrival{runs}, now)...)
	golden(t, "running.golden", out.Bytes())
}
