package wire

import (
	"math/bits"
	"sync"
)

// Size classes. Small arrays (up to 64 KiB) come in powers of two. Larger ones
// come in eight steps a doubling, so that at most an eighth is unused, plus room
// for the message around the body: a body of a round size must not need the
// next class for its few bytes of framing and state.
const (
	smallMinBits = 9  // 512 B
	smallMaxBits = 16 // 64 KiB
	smallMax     = 1 << smallMaxBits
	smallKeep    = 2 << 20 // idle bytes kept of each small class

	largeSlack = 4 << 10
	largeMax   = 256 << 20 // larger arrays are not kept
	// largeKeep bounds the idle large arrays, and idle and used ones together
	// as long as the used ones alone are below it: two bodies of 20 MB, or one
	// of the default limit.
	largeKeep = 40 << 20
)

// smallClass is a stack of idle arrays of one size.
type smallClass struct {
	mu   sync.Mutex
	idle [][]byte
}

var (
	smalls [smallMaxBits - smallMinBits + 1]smallClass
	large  = largeArrays{idle: make(map[int][][]byte)}
)

// takeArray returns an array of at least n bytes, full length, not zeroed.
func takeArray(n int) []byte {
	if n > smallMax {
		return large.take(largeSize(n))
	}
	i := smallIndex(n)
	c := &smalls[i]
	c.mu.Lock()
	last := len(c.idle) - 1
	if last < 0 {
		c.mu.Unlock()
		return make([]byte, 1<<(smallMinBits+i))
	}
	array := c.idle[last]
	c.idle[last] = nil
	c.idle = c.idle[:last]
	c.mu.Unlock()
	return array
}

// giveArray takes back what takeArray returned.
func giveArray(array []byte) {
	n := len(array)
	if n > smallMax {
		large.give(array)
		return
	}
	c := &smalls[smallIndex(n)]
	c.mu.Lock()
	if (len(c.idle)+1)*n <= smallKeep {
		c.idle = append(c.idle, array)
	}
	c.mu.Unlock()
}

func smallIndex(n int) int {
	if n <= 1<<smallMinBits {
		return 0
	}
	return bits.Len(uint(n-1)) - smallMinBits
}

// largeSize is the size of the class for n bytes, n > smallMax.
func largeSize(n int) int {
	m := n - largeSlack
	step := 1 << (bits.Len(uint(m-1)) - 4) // an eighth of the power of two below
	return (m+step-1)&^(step-1) + largeSlack
}

// largeArrays keeps idle arrays by size.
type largeArrays struct {
	mu        sync.Mutex
	idle      map[int][][]byte
	idleBytes int
	usedBytes int
}

func (l *largeArrays) take(size int) []byte {
	l.mu.Lock()
	l.usedBytes += size
	if list := l.idle[size]; len(list) > 0 {
		last := len(list) - 1
		array := list[last]
		list[last] = nil
		l.idle[size] = list[:last]
		l.idleBytes -= size
		l.mu.Unlock()
		return array
	}
	l.evict()
	l.mu.Unlock()
	return make([]byte, size)
}

// evict lets idle arrays of other sizes go when the new one would take the sum
// over the bound: arrays of the sizes of an hour ago must not add to a peak.
func (l *largeArrays) evict() {
	for size, list := range l.idle {
		for len(list) > 0 && l.idleBytes+l.usedBytes > largeKeep {
			last := len(list) - 1
			list[last] = nil
			list = list[:last]
			l.idleBytes -= size
		}
		if len(list) == 0 {
			delete(l.idle, size)
			continue
		}
		l.idle[size] = list
	}
}

func (l *largeArrays) give(array []byte) {
	size := len(array)
	l.mu.Lock()
	l.usedBytes -= size
	if size <= largeMax && l.idleBytes+size <= largeKeep {
		l.idle[size] = append(l.idle[size], array)
		l.idleBytes += size
	}
	l.mu.Unlock()
}
