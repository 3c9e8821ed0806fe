package extproc

import (
	"sync"
	"time"

	"github.com/crossdoor/crossdoor/extproc/wire"
)

// tombstoneFor is how long an ended exchange's id is remembered, so that an
// entry or a message that comes late is told from one of another replica.
const tombstoneFor = 5 * time.Second

// Table maps ids to the exchanges that run on this replica and counts the bytes
// of their bodies. It is safe for concurrent use.
type Table struct {
	limit int64

	mu    sync.Mutex
	live  map[string]*exchange
	gone  map[string]time.Time // id -> when it ended
	taken int64                // by bodies
	held  int64                // by streams that are held
	swept time.Time

	expected int64       // bodies that are announced and on their way
	hinted   int64       // what pressure was last told
	pressure func(int64) // nil: nobody wants to know
}

// exchangeBytes is what an exchange takes beside its body, generously: streams,
// headers, an unfinished event.
const exchangeBytes = 64 << 10

// hintStep is by how much bodies must grow or shrink before pressure is told.
const hintStep = 32 << 20

// NewTable returns an empty table whose bodies and held streams may take limit
// bytes together.
func NewTable(limit int64) *Table {
	return &Table{limit: limit, live: map[string]*exchange{}, gone: map[string]time.Time{}}
}

// SetLimit changes the bound for bodies that are taken from now on.
func (t *Table) SetLimit(limit int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limit = limit
}

// Len is the number of exchanges that run and were planned here. Those that were
// joined can go on at any other replica.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, x := range t.live {
		if !x.joined {
			n++
		}
	}
	return n
}

// Bytes is what the bodies take.
func (t *Table) Bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

func (t *Table) add(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[x.id] = x
	t.hint()
}

// addIfNew adds x unless its id is there already, and returns the one that is.
func (t *Table) addIfNew(x *exchange) *exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.live[x.id]; ok {
		return old
	}
	t.live[x.id] = x
	return x
}

// get returns the exchange, or nil; ended says that it was here and is over.
func (t *Table) get(id string) (x *exchange, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x, ok := t.live[id]; ok {
		return x, false
	}
	_, ended = t.gone[id]
	return nil, ended
}

// remove takes the exchange out and leaves a tombstone.
func (t *Table) remove(id string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, id)
	t.hint()
	t.gone[id] = now
	if now.Sub(t.swept) < tombstoneFor/4 {
		return
	}
	t.swept = now
	for id, ended := range t.gone {
		if now.Sub(ended) > tombstoneFor {
			delete(t.gone, id)
		}
	}
}

// forget takes the exchange out as if it had never been here.
func (t *Table) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.live, id)
}

// expect counts a body of n bytes that is on its way; negative n takes that
// back. It reserves nothing: Envoy hands over whole bodies, and one that never
// comes must not keep others out.
func (t *Table) expect(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected += n
	t.hint()
}

// hold counts n more bytes of held streams; negative n takes that back.
func (t *Table) hold(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held += n
}

// hint tells pressure when what runs came to much more or much less. t.mu is
// held.
func (t *Table) hint() {
	total := t.taken + t.expected + int64(len(t.live))*exchangeBytes
	if t.pressure == nil || (total-t.hinted < hintStep && t.hinted-total < hintStep) {
		return
	}
	t.hinted = total
	t.pressure(total)
}

// fits reports whether n more bytes would be within the limit now.
func (t *Table) fits(n int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken+t.held+n <= t.limit
}

// lease counts a body's bytes for as long as it is held. Free may be called
// more than once.
type lease struct {
	table *Table
	buf   *wire.Buffer
	size  int64
	// decoded: the bytes are not those that the client sent.
	decoded bool
	once    sync.Once
}

// take counts buf, whose reference it takes over, or refuses it: then the
// caller still owns buf.
func (t *Table) take(buf *wire.Buffer) (*lease, bool) {
	size := int64(len(buf.Bytes()))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken+t.held+size > t.limit {
		return nil, false
	}
	t.taken += size
	t.hint()
	return &lease{table: t, buf: buf, size: size}, true
}

func (l *lease) free() {
	if l == nil {
		return
	}
	l.once.Do(func() {
		l.buf.Free()
		l.table.mu.Lock()
		l.table.taken -= l.size
		l.table.hint()
		l.table.mu.Unlock()
	})
}
