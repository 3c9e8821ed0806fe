package main

import (
	"math"
	"strings"
	"testing"
)

func TestEstimateOf(t *testing.T) {
	count := func(n int) []float64 {
		out := make([]float64, 0, n)
		for i := range n {
			out = append(out, float64((i*7)%n+1)) // 1 to n, not in order; n is no multiple of 7
		}
		return out
	}
	// Ranks from the tables of the sign test: 1 and 6 of 6, 2 and 9 of 10, 6 and 15 of 20.
	cases := []struct {
		name           string
		blocks         []float64
		mid, low, high float64
	}{
		{"one", []float64{2}, 2, 2, 2},
		{"three is too few for 95 %: the extremes", []float64{3, 1, 2}, 2, 1, 3},
		{"six", count(6), 3.5, 1, 6},
		{"ten", count(10), 5.5, 2, 9},
		{"twenty", count(20), 10.5, 6, 15},
		{"an infinite block keeps its rank", []float64{1, math.Inf(1), 2}, 2, 1, math.Inf(1)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := estimateOf(c.blocks)
			if got.Mid != c.mid || got.Low != c.low || got.High != c.high || got.Blocks != len(c.blocks) {
				t.Errorf("got %+v, want %v (%v to %v)", got, c.mid, c.low, c.high)
			}
		})
	}
	if got := estimateOf(nil); !math.IsNaN(got.Mid) {
		t.Errorf("nothing gives %+v", got)
	}
}

func TestQuantile(t *testing.T) {
	xs := []float64{40, 10, 20, 30}
	for q, want := range map[float64]float64{0: 10, 0.5: 25, 0.99: 39.7, 1: 40} {
		if got := quantile(xs, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if xs[0] != 40 {
		t.Error("the values were sorted in place")
	}
}

func TestRatios(t *testing.T) {
	// P - D over N - D, block by block; noise put N below D in the last one.
	d, n, p := []float64{10, 12, 11}, []float64{20, 22, 10}, []float64{18, 17, 15}
	got := ratios(minus(p, d), minus(n, d))
	if got[0] != 0.8 || got[1] != 0.5 || !math.IsInf(got[2], 1) {
		t.Errorf("got %v", got)
	}
}

func TestRequestsHaveTheirSize(t *testing.T) {
	for _, size := range []int{kib, 100 * kib, mib} {
		for _, events := range []int{0, 200} {
			if r := newRequest(size, events, 0); len(r.body) != size || !strings.HasPrefix(r.sum, "1") {
				t.Errorf("%d bytes, %d events: %d bytes, %s", size, events, len(r.body), r.sum)
			}
		}
	}
}
