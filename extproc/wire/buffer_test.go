package wire

import (
	"sync"
	"testing"
)

func TestBufferReferences(t *testing.T) {
	b := NewBuffer(3000)
	copy(b.Bytes(), "hello")
	b.Ref()
	b.Free()
	if string(b.Bytes()[:5]) != "hello" || b.Len() != 3000 || b.Cap() != 4096 {
		t.Errorf("after one of two frees: %q, length %d, capacity %d", b.Bytes()[:5], b.Len(), b.Cap())
	}
	b.Free()
	wantLive(t, 0)

	other := NewBuffer(3000) // takes the same array
	b.Free()
	b.Ref()
	b.Free()
	b.Resize(10)
	if b.Bytes() != nil || b.Cap() != 0 {
		t.Error("a freed buffer still has bytes")
	}
	wantLive(t, 1)
	other.Free()
	wantLive(t, 0)
}

func TestBufferEmpty(t *testing.T) {
	var none *Buffer
	none.Ref()
	none.Resize(5)
	none.Free()
	var zero Buffer
	zero.Ref()
	zero.Resize(5)
	zero.Free()
	negative := NewBuffer(-1)
	if none.Len()+none.Cap()+zero.Len()+negative.Len() != 0 {
		t.Error("an empty buffer has bytes")
	}
	negative.Free()
	wantLive(t, 0)
}

func TestBufferResize(t *testing.T) {
	b := NewBuffer(5)
	copy(b.Bytes(), "hello")
	for _, n := range []int{3, 5, 512, 513, 70000, 1 << 20, 4} {
		b.Resize(n)
		if b.Len() != n {
			t.Errorf("length %d after Resize(%d)", b.Len(), n)
		}
		if string(b.Bytes()[:3]) != "hel" {
			t.Errorf("Resize(%d) lost the bytes: %q", n, b.Bytes()[:3])
		}
	}
	b.Resize(-1)
	b.Ref()
	b.Resize(2)
	if b.Len() != 4 {
		t.Errorf("a shared buffer changed its length to %d", b.Len())
	}
	b.Free()
	b.Free()
	wantLive(t, 0)
}

func TestBufferConcurrent(t *testing.T) {
	b := NewBuffer(100000)
	var done sync.WaitGroup
	for range 8 {
		b.Ref()
		done.Go(func() {
			for range 1000 {
				b.Ref()
				_ = b.Bytes()[0]
				b.Free()
			}
			b.Free()
		})
	}
	b.Free()
	done.Wait()
	wantLive(t, 0)
}

func TestSizeClasses(t *testing.T) {
	cases := []struct{ n, want int }{
		{0, 512}, {1, 512}, {512, 512}, {513, 1024}, {1025, 2048}, {64 << 10, 64 << 10},
		{64<<10 + 1, 64<<10 + 4096}, {64<<10 + 4096, 64<<10 + 4096}, {64<<10 + 4097, 72<<10 + 4096},
		{1<<20 + 200, 1<<20 + 4096}, {8<<20 + 200, 8<<20 + 4096}, {32<<20 + 300, 32<<20 + 4096}, {32<<20 + 4097, 36<<20 + 4096},
	}
	for _, c := range cases {
		array := takeArray(c.n)
		if len(array) != c.want {
			t.Errorf("%d bytes: array of %d, want %d", c.n, len(array), c.want)
		}
		giveArray(array)
	}
	for n := smallMax + 1; n < 80<<20; n += n/7 + 13 {
		size := largeSize(n)
		if size < n || size > n+n/8+largeSlack || largeSize(size) != size {
			t.Errorf("%d bytes: class %d, whose own class is %d", n, size, largeSize(size))
		}
	}
}

func TestLargeArraysBounded(t *testing.T) {
	l := largeArrays{idle: make(map[int][][]byte)}
	const mb = 1 << 20
	give := func(size, count int) {
		arrays := make([][]byte, count)
		for i := range arrays {
			arrays[i] = l.take(size)
		}
		for _, a := range arrays {
			l.give(a)
		}
	}
	give(8*mb, 10)
	if l.idleBytes != 40*mb || l.usedBytes != 0 {
		t.Fatalf("idle %d, used %d: not bounded", l.idleBytes, l.usedBytes)
	}
	first := l.take(8 * mb)
	if l.idleBytes != 32*mb {
		t.Errorf("an idle array is not used again: idle %d", l.idleBytes)
	}
	big := l.take(24 * mb) // another size: others go until all fits the bound
	if l.idleBytes != 8*mb || l.usedBytes != 32*mb {
		t.Errorf("idle %d, used %d after an array of another size", l.idleBytes, l.usedBytes)
	}
	huge := l.take(64 * mb)
	if l.idleBytes != 0 || len(l.idle) != 0 {
		t.Errorf("idle %d in %d sizes beside more than the bound in use", l.idleBytes, len(l.idle))
	}
	for _, a := range [][]byte{first, big, huge} {
		l.give(a)
	}
	if l.idleBytes != 32*mb || l.usedBytes != 0 {
		t.Errorf("idle %d, used %d at the end", l.idleBytes, l.usedBytes)
	}
}

func TestFramePool(t *testing.T) {
	var p framePool
	cases := []struct{ length, capacity int }{
		{1, 1024}, {1024, 1024}, {1025, 2048}, {16384, 16384}, {16385, 32768}, {1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + 1},
	}
	for _, c := range cases {
		b := p.Get(c.length)
		if len(*b) != c.length || cap(*b) < c.capacity {
			t.Errorf("Get(%d): length %d, capacity %d", c.length, len(*b), cap(*b))
		}
		*b = (*b)[:c.length/2] // gRPC gives back a prefix
		p.Put(b)
		if again := p.Get(c.length); c.length <= 1<<20 && (again != b || len(*again) != c.length) {
			t.Errorf("Get(%d) after Put: another buffer, or length %d", c.length, len(*again))
		}
	}
	odd := make([]byte, 0, 1500)
	p.Put(&odd)
	if b := p.Get(1400); cap(*b) != 2048 {
		t.Errorf("a buffer of a foreign size came back: capacity %d", cap(*b))
	}
	for range frameKeep>>frameBits + 10 {
		b := make([]byte, 1<<frameBits)
		p.Put(&b)
	}
	if n := len(p.tiers[frameIndex(1<<frameBits)].idle); n != frameKeep>>frameBits {
		t.Errorf("%d idle frames, bound %d", n, frameKeep>>frameBits)
	}
}
