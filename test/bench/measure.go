package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settle is longer than Envoy keeps access-log entries back, so that their cost
// falls on the case that caused it.
const settle = 300 * time.Millisecond

// series holds one value a block.
type series struct {
	p50, p99   []float64 // of whole answers
	first      []float64 // p50 of the times to the first byte
	event50    []float64 // of the single events
	event99    []float64
	throughput []float64 // answers a second
}

// cost is processor time, in microseconds.
type cost struct{ envoy, service float64 }

// result is one load, measured.
type result struct {
	load

	healthy [sides]series
	other   [sides]series // of load.also; crossing is side P's alone
	sent    [sides]int    // healthy requests
	others  [sides]int    // requests of load.also
	used    [sides]cost   // all of them together
	peaks   [sides]struct{ envoy, service int64 }
}

// bench is a run: the sides and the platform behind them.
type bench struct {
	sides    [sides]*side
	upstream *upstream
	inARow   [sides]int // failed attempts since the failing target last did well
}

// mostInARow is well below the 1,000 failures in a row that would eject the
// failing target (policy.yaml.tmpl).
const mostInARow = 400

// variant is a side and what becomes of the requests there.
type variant struct {
	side int
	fate fate
}

// measure runs the blocks of l.
func (b *bench) measure(ctx context.Context, l load) (*result, error) {
	r := &result{load: l}
	req := newRequest(l.size, l.events, l.pace)
	for i, s := range b.sides { // connections stand, code and pools are warm
		if _, err := s.closedLoop(ctx, req, l.clients, l.clients); err != nil {
			return nil, fmt.Errorf("%s: %w", l.title(), err)
		}
		b.sides[i].resetPeaks()
	}
	before, err := b.usages(ctx)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(l.limit)
	for n := 0; n < l.blocks && (n == 0 || time.Now().Before(deadline)) && err == nil; n++ {
		err = b.block(ctx, r, req)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.title(), err)
	}
	after, err := b.usages(ctx)
	for i, s := range b.sides {
		r.used[i] = cost{envoy: micros(after[i].envoy - before[i].envoy), service: micros(after[i].service - before[i].service)}
		var perr error
		r.peaks[i].envoy, r.peaks[i].service, perr = s.peaks()
		err = errors.Join(err, perr)
	}
	return r, err
}

// usages are what every side has used, once it has come to rest.
func (b *bench) usages(ctx context.Context) (out [sides]usage, err error) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	for i, s := range b.sides {
		var one error
		out[i], one = s.usage()
		err = errors.Join(err, one)
	}
	return out, err
}

// block runs every variant and then all again in reverse order.
func (b *bench) block(ctx context.Context, r *result, req *request) error {
	order := []variant{{side: sideD}, {side: sideN}, {side: sideP}}
	switch r.also {
	case failing:
		order = append(order, variant{sideD, failing}, variant{sideN, failing}, variant{sideP, failing})
	case crossing:
		order = append(order, variant{sideP, crossing})
	}
	samples := map[variant][]sample{}
	took := map[variant]time.Duration{}
	for i := range 2 * len(order) {
		v := order[min(i, 2*len(order)-1-i)]
		begin := time.Now()
		got, err := b.segment(ctx, r, req, v)
		if err != nil {
			return err
		}
		took[v] += time.Since(begin)
		samples[v] = append(samples[v], got...)
	}
	for _, v := range order {
		to := &r.healthy[v.side]
		if v.fate != healthy {
			to = &r.other[v.side]
		}
		to.add(samples[v], took[v])
	}
	return nil
}

// segment runs one variant for a short while.
func (b *bench) segment(ctx context.Context, r *result, req *request, v variant) ([]sample, error) {
	s := b.sides[v.side]
	want := 0
	if v.fate == failing {
		want = r.requests
		if err := b.heal(ctx, v.side, want); err != nil {
			return nil, err
		}
	}
	if v.fate == healthy {
		r.sent[v.side] += r.requests
	} else {
		r.others[v.side] += r.requests
	}
	req = req.with(v.fate)
	before, crossed := b.upstream.failed.Load(), b.upstream.crossed.Load()
	var out []sample
	var err error
	if r.rate > 0 {
		out, err = s.openLoop(ctx, req, r.requests, r.rate)
	} else {
		out, err = s.closedLoop(ctx, req, r.clients, r.requests)
	}
	if got := int(b.upstream.failed.Load() - before); err == nil && got != want {
		err = fmt.Errorf("%s: %d failed attempts, not %d", s.name, got, want)
	}
	if got := int(b.upstream.crossed.Load() - crossed); err == nil && (got == r.requests) != (v.fate == crossing) {
		err = fmt.Errorf("%s: %d of %d requests came to Amazon Bedrock", s.name, got, r.requests)
	}
	return out, err
}

// heal gives the failing target a success, when n further failures could eject
// it.
func (b *bench) heal(ctx context.Context, which, n int) error {
	if b.inARow[which] += n; b.inARow[which] < mostInARow {
		return nil
	}
	b.inARow[which] = n
	_, err := b.sides[which].closedLoop(ctx, healing(), 1, 1)
	return err
}

// add takes the samples of one block.
func (s *series) add(samples []sample, took time.Duration) {
	whole, first := make([]float64, 0, len(samples)), make([]float64, 0, len(samples))
	var events []float64
	for _, one := range samples {
		whole = append(whole, one.took)
		first = append(first, one.first)
		events = append(events, one.events...)
	}
	s.p50 = append(s.p50, median(whole))
	s.p99 = append(s.p99, quantile(whole, 0.99))
	s.first = append(s.first, median(first))
	s.throughput = append(s.throughput, float64(len(samples))/took.Seconds())
	if len(events) > 0 {
		s.event50 = append(s.event50, median(events))
		s.event99 = append(s.event99, quantile(events, 0.99))
	}
}
