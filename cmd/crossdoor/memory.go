package main

import (
	"os"
	"runtime/debug"
)

const (
	// restMemory is what the process needs beside the exchanges that run.
	restMemory = 16 << 20
	// leastMemory: below it the garbage collector is left alone.
	leastMemory = 256 << 20
)

// memoryPressure makes the garbage collector's soft limit follow the requests
// that run: large bodies come in bursts, and what one burst leaves behind would otherwise
// be held until the heap has doubled. GOMEMLIMIT in the environment wins.
func memoryPressure() func(running int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	set := func(running int64) { debug.SetMemoryLimit(max(leastMemory, restMemory+running+running/20)) }
	set(0)
	return set
}
