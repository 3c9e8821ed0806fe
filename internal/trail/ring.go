package trail

import "sync"

// Ring keeps the last records in memory. It is safe for concurrent use; Add
// holds its lock for two stores, Select for one copy of the pointers.
type Ring struct {
	mu    sync.Mutex
	slots []*Record
	next  int  // where the next record goes
	full  bool // every slot is used
}

// NewRing makes a ring of size records. A size of 0 or less keeps none.
func NewRing(size int) *Ring {
	return &Ring{slots: make([]*Record, max(size, 0))}
}

// Add takes r over: nobody changes it any more. The oldest record makes room.
func (g *Ring) Add(r *Record) {
	if len(g.slots) == 0 {
		return
	}
	g.mu.Lock()
	g.slots[g.next] = r
	g.next++
	if g.next == len(g.slots) {
		g.next, g.full = 0, true
	}
	g.mu.Unlock()
}

// Select is the records that f matches, oldest first, at most the newest
// f.Limit of them. The records are shared: do not change them.
func (g *Ring) Select(f Filter) []*Record {
	out := g.snapshot()
	n := 0
	for _, r := range out {
		if f.Match(r) {
			out[n] = r
			n++
		}
	}
	out = out[:n]
	if f.Limit > 0 && n > f.Limit {
		out = out[n-f.Limit:]
	}
	return out
}

// snapshot copies the pointers, oldest first, so that matching them needs no lock.
func (g *Ring) snapshot() []*Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.full {
		return append([]*Record(nil), g.slots[:g.next]...)
	}
	return append(append([]*Record(nil), g.slots[g.next:]...), g.slots[:g.next]...)
}
