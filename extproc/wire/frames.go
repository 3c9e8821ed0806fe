package wire

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Tiers of the frame pool: powers of two from 1 KiB, gRPC's pooling threshold,
// to 1 MiB. gRPC reads each HTTP/2 frame of up to 16 KiB into one buffer, and
// holds all frames of a message until it is whole.
const (
	frameMinBits = 10
	frameMaxBits = 20
	frameBits    = 14
	// frameKeep is one body of the default limit in frames; otherKeep is for
	// each other tier.
	frameKeep = 40 << 20
	otherKeep = 4 << 20
)

// framePool implements mem.BufferPool with bounded lists. gRPC's own pool zeroes
// each buffer on every Get and has nothing between 32 KiB and 1 MiB.
type framePool struct {
	tiers [frameMaxBits - frameMinBits + 1]frameTier
}

type frameTier struct {
	mu   sync.Mutex
	idle []*[]byte
}

var frames framePool

// BufferPool is the pool for gRPC's frames, for the server option
// experimental.BufferPool. One for the process; safe for concurrent use. Its
// buffers are not zeroed and are not counted by Live.
func BufferPool() mem.BufferPool { return &frames }

// Get returns a buffer of the given length, not zeroed.
func (p *framePool) Get(length int) *[]byte {
	if length > 1<<frameMaxBits {
		b := make([]byte, length)
		return &b
	}
	i := frameIndex(length)
	t := &p.tiers[i]
	t.mu.Lock()
	last := len(t.idle) - 1
	if last < 0 {
		t.mu.Unlock()
		b := make([]byte, length, 1<<(frameMinBits+i))
		return &b
	}
	b := t.idle[last]
	t.idle[last] = nil
	t.idle = t.idle[:last]
	t.mu.Unlock()
	*b = (*b)[:length]
	return b
}

// Put takes back what Get returned; anything of another size is let go.
func (p *framePool) Put(b *[]byte) {
	size := cap(*b)
	if size < 1<<frameMinBits || size > 1<<frameMaxBits || size&(size-1) != 0 {
		return
	}
	keep := otherKeep
	if size == 1<<frameBits {
		keep = frameKeep
	}
	t := &p.tiers[frameIndex(size)]
	t.mu.Lock()
	if (len(t.idle)+1)*size <= keep {
		t.idle = append(t.idle, b)
	}
	t.mu.Unlock()
}

func frameIndex(n int) int {
	if n <= 1<<frameMinBits {
		return 0
	}
	return bits.Len(uint(n-1)) - frameMinBits
}
