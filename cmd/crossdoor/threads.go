package main

import (
	"os"
	"runtime"
)

// shareProcessors leaves half of the machine to Envoy, which takes about twice
// the service's processor time a request: more threads than that only wake one
// another at each message, which costs a fifth of the added latency. A limit
// that somebody set, by GOMAXPROCS or on the container, is left as it is.
func shareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == runtime.NumCPU() {
		runtime.GOMAXPROCS(max(1, runtime.NumCPU()/2))
	}
}
