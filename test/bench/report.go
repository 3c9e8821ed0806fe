package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The gates of a run, and the marks between which it writes its numbers.
const (
	gateAdded   = 0.80 // (P-D)/(N-D) at 1 KB, one client
	gateEvent   = 1.35 // an event after the commit, P/D, p50
	gateEvent99 = 1.25 // the same, p99
	gateAttempt = 1.15 // a further attempt, added, P/N
	gateSpeed   = 1.00 // GB/s of a changed body, at least
	gateProse   = 0.20 // of utf8.Valid's speed at 32 MB, at least
	gateTiny    = 0.03 // the same for tiny tokens, 1 MB
	gateBytes   = 0.10 // allocated for each byte of a body
	gateMemory  = 64*mib + 115*held*32*mib/100

	markBegin = "<!-- bench: begin, written by `make bench` -->"
	markEnd   = "<!-- bench: end -->"
)

// report is a whole run.
type report struct {
	machine string
	envoy   string
	quick   bool
	took    time.Duration
	results []*result
	alone   []*alone
	memory  []footprint
}

// machine is the processor, as far as Linux tells it.
func machine() string {
	name := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				name = strings.TrimSpace(v)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores (%s), %s", runtime.NumCPU(), name, runtime.Version())
}

// added is what P adds to D over what N adds, block by block.
func (r *result) added() estimate {
	d, n, p := r.healthy[sideD].p50, r.healthy[sideN].p50, r.healthy[sideP].p50
	return estimateOf(ratios(minus(p, d), minus(n, d)))
}

// further is what a failed attempt adds on P over what it adds on N.
func (r *result) further() estimate {
	n := minus(r.other[sideN].p50, r.healthy[sideN].p50)
	p := minus(r.other[sideP].p50, r.healthy[sideP].p50)
	return estimateOf(ratios(p, n))
}

// crossed is what a request that crosses to Amazon Bedrock adds on P to D over
// what N adds, which changes nothing.
func (r *result) crossed() estimate {
	d, n, p := r.healthy[sideD].p50, r.healthy[sideN].p50, r.other[sideP].p50
	return estimateOf(ratios(minus(p, d), minus(n, d)))
}

// event50 and event99 are the latency of an event after the commit, P over D.
func (r *result) event50() estimate {
	return estimateOf(ratios(r.healthy[sideP].event50, r.healthy[sideD].event50))
}

func (r *result) event99() estimate {
	return estimateOf(ratios(r.healthy[sideP].event99, r.healthy[sideD].event99))
}

// throughput is answers a second, P over N.
func (r *result) throughput() estimate {
	return estimateOf(ratios(r.healthy[sideP].throughput, r.healthy[sideN].throughput))
}

// cost of one request of the load: of the healthy ones, or of those with another
// fate, whose healthy companions are taken off at the rate of twin, the same load
// with healthy ones alone. Nil twin: nothing can be said.
func (r *result) cost(which int, twin *result) (cost, bool) {
	if r.also == healthy {
		n := float64(r.sent[which])
		return cost{envoy: r.used[which].envoy / n, service: r.used[which].service / n}, true
	}
	if twin == nil || r.others[which] == 0 {
		return cost{}, false
	}
	one, _ := twin.cost(which, nil)
	companions, n := float64(r.sent[which]), float64(r.others[which])
	return cost{envoy: (r.used[which].envoy - companions*one.envoy) / n, service: (r.used[which].service - companions*one.service) / n}, true
}

// twin is the same load with healthy requests alone.
func (rep *report) twin(r *result) *result {
	for _, other := range rep.results {
		if other.also == healthy && other.rate == r.rate && other.name() == r.name() && other.clients == r.clients {
			return other
		}
	}
	return nil
}

// pick are the results that a table is about.
func (rep *report) pick(want func(*result) bool) []*result {
	var out []*result
	for _, r := range rep.results {
		if want(r) {
			out = append(out, r)
		}
	}
	return out
}

// duration writes microseconds in the unit that reads best.
func duration(us float64) string {
	switch {
	case math.IsNaN(us) || math.IsInf(us, 0):
		return "-"
	case math.Abs(us) < 9_950:
		return fmt.Sprintf("%.0f us", us)
	case math.Abs(us) < 995_000:
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return fmt.Sprintf("%.2f s", us/1e6)
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/mib) }

func (e estimate) String() string {
	return fmt.Sprintf("**%s** (%s to %s)", ratio(e.Mid), ratio(e.Low), ratio(e.High))
}

func ratio(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// update puts the numbers between the marks of performance.md, and the plot
// beside it.
func (rep *report) update(dir string) error {
	path := filepath.Join(dir, "performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := between(string(page), rep.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "performance.svg"), []byte(plot(rep.rows())), 0o600)
}

// between replaces what stands between the marks of page.
func between(page, text string) (string, error) {
	head, rest, ok := strings.Cut(page, markBegin)
	_, foot, ok2 := strings.Cut(rest, markEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("the marks %q and %q are not there", markBegin, markEnd)
	}
	return head + markBegin + "\n\n" + strings.TrimSpace(text) + "\n\n" + markEnd + foot, nil
}
