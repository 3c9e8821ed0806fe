package main

import (
	"os"
	"runtime"
)

// shareProcessors leaves half of the machine to Envoy, which takes about twice
// the service's processor time a request: more threads than that only wake one
// another at each message. It is two at least: with one, the work on large bodies
// makes health checks late. A limit that somebody set, by GOMAXPROCS or on the
// container, is left as it is.
func shareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == runtime.NumCPU() {
		runtime.GOMAXPROCS(max(2, runtime.NumCPU()/2))
	}
}
