package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sampleAlone is a rewriting at half of the speeds that are wanted.
func sampleAlone() []*alone {
	return []*alone{
		{subject: "tiny", step: stepInspect, shape: shapeTiny, size: mib, speed: []float64{1}, overCopy: []float64{0.05}, overUTF8: []float64{0.015}, allocated: 0.001},
		{subject: "prose", step: stepFoundry, shape: shapeText, size: mib, speed: []float64{0.5}, overCopy: []float64{0.02}, allocated: 0.2},
		{subject: "prose", step: stepNothing, shape: shapeText, size: mib, speed: []float64{1000}},
		{subject: "marks", step: stepFoundry, shape: shapeMarks, size: mib, speed: []float64{2}, allocated: 3},
	}
}

// sampleReport is a run in which Crossdoor adds half of what the no-op adds.
func sampleReport() *report {
	of := func(v float64) series {
		return series{p50: []float64{v, v, v}, p99: []float64{v, v, v}, first: []float64{v, v, v}, event50: []float64{v, v, v}, event99: []float64{v, v, v}, throughput: []float64{1, 1, 1}}
	}
	json := &result{load: load{size: kib, clients: 1}, sent: [sides]int{10, 10, 10}}
	json.healthy = [sides]series{of(100), of(300), of(200)}
	json.used = [sides]cost{{1000, 0}, {2000, 500}, {2000, 1000}}
	failed := &result{load: load{size: kib, clients: 1, also: failing}, healthy: json.healthy, sent: json.sent, others: json.sent}
	failed.other = [sides]series{of(150), of(400), of(320)}
	failed.used = [sides]cost{{3000, 0}, {6000, 1500}, {6000, 3000}}
	crossed := &result{load: load{size: kib, clients: 1, also: crossing}, healthy: json.healthy, sent: json.sent, others: [sides]int{sideP: 10}}
	crossed.other = [sides]series{sideP: of(260)}
	crossed.used = [sides]cost{{1000, 0}, {2000, 500}, {5000, 2500}}
	events := &result{load: load{size: kib, clients: 1, events: 200}, healthy: json.healthy, sent: json.sent}
	return &report{envoy: "1.40.0", machine: "a machine", results: []*result{json, failed, crossed, events}, alone: sampleAlone(), memory: []footprint{{side: sideP, heldService: gateMemory + 1}}}
}

func TestMarkdown(t *testing.T) {
	text := sampleReport().markdown()
	for _, want := range []string{
		"Added median latency at 1 KB, over the no-op's | **0.50** (0.50 to 0.50) | at most 0.80 | met",
		"Each further attempt at 1 KB, over the no-op's | **1.20** (1.20 to 1.20) | at most 1.15 | **missed**",
		"over Envoy alone, p50 | **2.00** (2.00 to 2.00) | at most 1.35 | **missed**",
		"in flight | 358 MB | at most 358 MB | **missed**",
		"1 KB, one client | 100 us / 200 us / 200 us | 50 us / 100 us | 1.20",
		"1 KB | 100 us / 300 us / 200 us | 260 us | **0.80** (0.80 to 0.80) | **1.30** (1.30 to 1.30) | - | 300 us / 150 us | 3",
		"share of the speed of utf8.Valid: tiny | **0.015** (0.015 to 0.015) | at least 0.03 | **missed**",
		"GB/s: prose | **0.500** (0.500 to 0.500) | at least 1.00 | **missed**",
		"changed or not | 0.2000 | at most 0.10 | **missed**",
		"tiny | inspect | **1.00** (1.00 to 1.00) | **0.050** (0.050 to 0.050) | **0.015** (0.015 to 0.015) | 0.0010 | 1",
		"no copy; 1.0 us | - | - | 0.0000 | 1",
		"1 KB, one client, one failed attempt | 200 us / 400 us / 400 us | 100 us / 200 us | 1.20",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("above\n"+markBegin+"\nold\n"+markEnd+"\nbelow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sampleReport().update(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); !strings.HasPrefix(s, "above\n"+markBegin) || !strings.HasSuffix(s, markEnd+"\nbelow\n") || strings.Contains(s, "old") {
		t.Errorf("the page became\n%s", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "performance.svg")); err != nil {
		t.Error(err)
	}
	if _, err := between("no marks", "text"); err == nil {
		t.Error("a page without marks was written to")
	}
}

func TestPlot(t *testing.T) {
	rows := append(sampleReport().rows(), row{group: "<&>", label: "far out", est: estimate{Mid: 1, Low: 0.5, High: math.Inf(1)}}, row{label: "nothing", est: estimateOf(nil)})
	text := plot(rows)
	dec := xml.NewDecoder(strings.NewReader(text))
	dots := 0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, text)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "circle" {
			dots++
		}
	}
	if dots != 5 {
		t.Errorf("%d dots for 5 rows with a value", dots)
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s in the plot", bad)
		}
	}
	if !strings.Contains(text, "prefers-color-scheme:dark") {
		t.Error("no colours for a dark page")
	}
}
