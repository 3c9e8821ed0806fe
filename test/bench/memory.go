package main

import (
	"context"
	"errors"
	"fmt"
)

// memoryCase is what -only knows the measurement by.
const memoryCase = "memory"

// held is how many bodies are in flight at once when memory is measured.
const held = 8

// footprint is what a fresh side's processes hold at most, in bytes.
type footprint struct {
	side                    int
	idleEnvoy, idleService  int64
	heldEnvoy, heldService  int64 // 8 x 32 MB before the commit
	retryEnvoy, retryServed int64 // and with a failed attempt each
}

// measureMemory starts side which afresh and puts 8 bodies of 32 MB in flight,
// none of which the platform answers before it has all of them.
func measureMemory(ctx context.Context, which int, bin programs, dir string, u *upstream) (f footprint, err error) {
	s, err := startSide(ctx, which, bin, dir, u)
	if err != nil {
		return f, err
	}
	defer s.stop()
	f.side = which
	small := newRequest(kib, 0, 0)
	if _, err = s.closedLoop(ctx, small, held, 8*held); err != nil {
		return f, err
	}
	if f.idleEnvoy, f.idleService, err = s.peaks(); err != nil {
		return f, err
	}
	req := newRequest(32*mib, 0, 0)
	req.hold = held
	var err1, err2 error
	_, err1 = s.closedLoop(ctx, req, held, 3*held)
	f.heldEnvoy, f.heldService, err2 = s.peaks()
	if err = errors.Join(err1, err2); err != nil {
		return f, fmt.Errorf("8 bodies of 32 MB: %w", err)
	}
	_, err1 = s.closedLoop(ctx, req.with(failing), held, 3*held)
	f.retryEnvoy, f.retryServed, err2 = s.peaks()
	return f, errors.Join(err1, err2)
}
