package wire

import (
	"slices"
	"sync/atomic"
)

// live counts the buffers that somebody still holds.
var live atomic.Int64

// Live is the number of buffers in use in the process: 0 when all is idle.
// Safe for concurrent use.
func Live() int64 { return live.Load() }

// Buffer is a run of bytes in pooled memory with a reference count. Counting is
// safe for concurrent use; the bytes are too, as long as nobody writes. Write
// only between NewBuffer and the first sharing. The zero value and nil are
// empty buffers without memory.
//
// A Buffer itself is never reused, only its memory: a reference that is dropped
// once too often does nothing, instead of taking another request's memory.
type Buffer struct {
	refs  atomic.Int32
	data  []byte // what the holder sees: a window of array
	array []byte // the whole pooled array, given back by the last Free
}

// NewBuffer returns a buffer of n bytes with one reference, which the caller
// owns. The bytes are not zeroed: they hold whatever was there before. A
// negative n counts as 0.
func NewBuffer(n int) *Buffer {
	array := takeArray(max(n, 0))
	b := &Buffer{data: array[:max(n, 0)], array: array}
	b.refs.Store(1)
	live.Add(1)
	return b
}

// Bytes are the contents, valid while the caller holds a reference; nil once
// the last reference is gone. Not to be written to when the buffer is shared.
func (b *Buffer) Bytes() []byte {
	if b == nil {
		return nil
	}
	return b.data
}

// Len is the number of bytes.
func (b *Buffer) Len() int { return len(b.Bytes()) }

// Cap is the number of bytes of memory that the buffer keeps in use, which is
// what a memory limit counts. It is more than Len by the rest of the message
// and by the size class.
func (b *Buffer) Cap() int {
	if b == nil {
		return 0
	}
	return cap(b.array)
}

// Ref adds a reference, to be dropped with Free. The caller must hold one: a
// buffer whose last reference is gone stays gone, and empty.
func (b *Buffer) Ref() {
	if b == nil {
		return
	}
	for {
		n := b.refs.Load()
		if n <= 0 || b.refs.CompareAndSwap(n, n+1) {
			return
		}
	}
}

// Free drops a reference; the last one gives the memory back. Free of nil or
// of a buffer without references does nothing.
func (b *Buffer) Free() {
	if b == nil {
		return
	}
	for {
		n := b.refs.Load()
		if n <= 0 {
			return
		}
		if b.refs.CompareAndSwap(n, n-1) {
			if n == 1 {
				b.letGo()
			}
			return
		}
	}
}

func (b *Buffer) letGo() {
	array := b.array
	b.data, b.array = nil, nil
	giveArray(array)
	live.Add(-1)
}

// Resize changes the length to n and keeps the bytes up to there; new bytes are
// not zeroed. It moves to larger memory when n needs it. Only for the one
// holder of a buffer not yet shared; a buffer with other holders, or with none,
// stays as it is.
func (b *Buffer) Resize(n int) {
	if b == nil || n < 0 || b.refs.Load() != 1 {
		return
	}
	if n <= cap(b.data) {
		b.data = b.data[:n]
		return
	}
	array := takeArray(n)
	copy(array, b.data)
	giveArray(b.array)
	b.data, b.array = array[:n], array
}

// window narrows what holders see. The capacity ends with it, so that an append
// cannot run into the rest of the message.
func (b *Buffer) window(part []byte) { b.data = slices.Clip(part) }
