package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// aloneCase is what -only knows the rewriting alone by.
const aloneCase = "rewriting alone"

// What the other steps of a subject are measured against.
const (
	stepCopy    = "memcpy"
	stepUTF8    = "utf8.Valid"
	stepInspect = "inspect"
	stepFoundry = "to foundry: inspect, fit, edit, splice"
	stepBedrock = "to bedrock: inspect, fit, edit, strip, splice"
	stepNothing = "to anthropic: fit, edit: nothing changes"
	stepSign    = "SigV4"
	stepConvert = "event stream to SSE"
)

// step is one thing done to the bytes of a subject.
type step struct {
	name string
	run  func() error
}

// shape is what a subject is like.
type shape uint8

const (
	shapeText  shape = iota // long strings
	shapeCalls              // many small objects
	shapeTiny               // tokens of one to five characters
	shapeMarks              // more cache_control than the API takes
	shapeStream
)

// subject is some bytes and what is done to them, in this process and in one
// goroutine.
type subject struct {
	name  string
	shape shape
	size  int
	steps []step // the first one is memcpy
}

// alone is one step, measured.
type alone struct {
	subject, step string
	shape         shape
	size          int
	speed         []float64 // GB/s, one a block
	overCopy      []float64 // share of the speed of memcpy, one a block
	overUTF8      []float64
	allocated     float64 // bytes for each byte of the subject
}

// measureAlone measures the rewriting without Envoy and without a network.
func measureAlone(ctx context.Context, quick bool) ([]*alone, error) {
	blocks, small, large := 15, 32, 1
	if quick {
		blocks, small = 7, 8
	}
	var out []*alone
	for _, s := range subjects() {
		turns := large
		if s.size < 8*mib {
			turns = small
		}
		got, err := s.measure(ctx, blocks, turns)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		out = append(out, got...)
	}
	return out, nil
}

// measure runs every step and all again in reverse order, block by block.
func (s *subject) measure(ctx context.Context, blocks, turns int) ([]*alone, error) {
	out := make([]*alone, len(s.steps))
	for i, one := range s.steps {
		out[i] = &alone{subject: s.name, step: one.name, shape: s.shape, size: s.size}
		var err error
		if out[i].allocated, err = allocatedBy(one, s.size); err != nil {
			return nil, err
		}
	}
	took := make([]time.Duration, len(s.steps))
	for range blocks {
		clear(took)
		for k := range 2 * len(s.steps) {
			i := min(k, 2*len(s.steps)-1-k)
			begin := time.Now()
			for range turns {
				if err := s.steps[i].run(); err != nil {
					return nil, err
				}
			}
			took[i] += time.Since(begin)
		}
		for i, one := range out {
			one.speed = append(one.speed, float64(2*turns*s.size)/float64(took[i].Nanoseconds()))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for _, one := range out {
		one.overCopy = ratios(one.speed, speedOf(out, stepCopy))
		one.overUTF8 = ratios(one.speed, speedOf(out, stepUTF8))
	}
	return out, nil
}

func speedOf(all []*alone, name string) []float64 {
	for _, one := range all {
		if one.step == name {
			return one.speed
		}
	}
	return nil
}

// allocatedBy is what a step allocates for each byte, once it is warm.
func allocatedBy(s step, size int) (float64, error) {
	const turns = 4
	err := s.run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range turns {
		err = errors.Join(err, s.run())
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / turns / float64(size), err
}

// inspectGate is the least share of utf8.Valid's speed that Inspect should have;
// 0 is none.
func (a *alone) inspectGate() float64 {
	switch {
	case a.shape == shapeText && a.size > 8*mib:
		return gateProse
	case a.shape == shapeTiny:
		return gateTiny
	}
	return 0
}
