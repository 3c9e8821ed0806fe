package main

import (
	"math"
	"slices"
)

// estimate is a median over blocks and the interval around it that holds the
// true one with 95 % (or what so few blocks can give).
type estimate struct {
	Mid, Low, High float64
	Blocks         int
}

// quantile is the q-quantile (0 to 1) of xs by linear interpolation; NaN of
// nothing. xs is left as it is.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	at := q * float64(len(s)-1)
	lo := int(math.Floor(at))
	hi := min(lo+1, len(s)-1)
	if at == float64(lo) || s[lo] == s[hi] { // also beside an infinity, which no factor makes 0
		return s[lo]
	}
	return s[lo] + (at-float64(lo))*(s[hi]-s[lo])
}

func median(xs []float64) float64 { return quantile(xs, 0.5) }

// estimateOf is the median of blocks with its distribution-free interval: two
// order statistics, chosen by the binomial distribution with p = 1/2. Noise of
// a shared machine has no shape to assume.
func estimateOf(blocks []float64) estimate {
	n := len(blocks)
	if n == 0 {
		return estimate{Mid: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	s := slices.Sorted(slices.Values(blocks))
	k := rank(n)
	return estimate{Mid: median(s), Low: s[k], High: s[n-1-k], Blocks: n}
}

// rank is the largest k for which the k-th smallest and the k-th largest of n
// (from 0) hold the median with at least 95 %; 0 where there is none.
func rank(n int) int {
	below, term, k := 0.0, math.Pow(0.5, float64(n)), 0
	for i := range n / 2 {
		below += term // P(Bin(n, 1/2) <= i)
		if below > 0.025 {
			break
		}
		k = i
		term *= float64(n-i) / float64(i+1)
	}
	return k
}

// ratios divides block by block. A side that came out at or below zero in the
// denominator, which noise can do to a difference of two sides, gives +Inf: it
// keeps its rank instead of vanishing.
func ratios(num, den []float64) []float64 {
	out := make([]float64, min(len(num), len(den)))
	for i := range out {
		if den[i] <= 0 {
			out[i] = math.Inf(1)
			continue
		}
		out[i] = num[i] / den[i]
	}
	return out
}

// minus subtracts block by block.
func minus(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}
