package envoy

import "github.com/crossdoor/crossdoor/policy/config"

const (
	gibibyte = 1 << 30
	// maxConnections is far above what one Envoy serves here (each exchange is
	// long and few share a connection) and far below what exhausts a machine's
	// file descriptors.
	maxConnections = 50000
)

// maxHeap is what Envoy may use before it refuses new requests. The service
// lets limits.memory bytes of bodies in; Envoy was seen to need up to 2.4 times
// the bodies in flight while each first attempt failed.
func maxHeap(l config.Limits) int64 { return gibibyte + 3*l.Memory }
