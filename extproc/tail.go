package extproc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
)

// entry is one access-log entry as far as it matters here: how an attempt or an
// exchange ended (envoy.md, section 4).
type entry struct {
	id      string
	node    string // the replica that planned
	state   string // what the service wrote into the exchange's metadata
	attempt string // Envoy's attempt count, of an attempt
	status  int
	flags   flags
	details string
	at      time.Time // when it came
	over    time.Time // when what it tells of ended, by Envoy's clock; zero when it does not say
	tail    []byte    // last bytes of the answer; nil when it was cut
	hasTail bool
}

// flags are the response flags that tell endings apart.
type flags struct {
	downstreamGone bool // DC
	idle           bool // SI
	upstreamBroke  bool // UPE, UC, UR
}

// logs is the access-log service for one Envoy worker, or a replica that hands
// an entry on: it never answers until the client closes, and drops what it
// cannot read.
func (s *Server) logs(stream wire.LogStream) error {
	var msg wire.LogMessage
	defer msg.Release()
	name := ""
	for {
		if err := stream.Recv(&msg); err != nil {
			return closed(stream, err)
		}
		if msg.Identified {
			name = msg.Log
			s.envoys.seen(msg.Minor)
		}
		for i := range msg.Entries {
			s.logged(name, &msg.Entries[i])
		}
	}
}

// closed answers a peer that ended its stream well; Envoy never reads it.
func closed(stream wire.LogStream, err error) error {
	if errors.Is(err, io.EOF) {
		return stream.Close()
	}
	return nil
}

// readEntry copies what is kept of an entry.
func readEntry(e *wire.LogEntry) *entry {
	out := &entry{
		id: e.Meta(names.MetaID), node: e.Meta(names.MetaNode), state: e.Meta(names.MetaState),
		attempt: e.Meta(names.MetaAttempt),
		status:  int(e.Status), details: string(e.Details), over: endOf(e),
		flags: flags{downstreamGone: e.Flags.DC, idle: e.Flags.SI, upstreamBroke: e.Flags.UC || e.Flags.UR || e.Flags.UPE},
	}
	if strings.HasPrefix(out.details, "upstream_reset_after_response_started") {
		out.flags.upstreamBroke = true
	}
	if e.HasTail {
		out.tail, out.hasTail = bytes.Clone(e.Tail), true
	}
	return out
}

// endOf is the moment of the last byte downstream.
func endOf(e *wire.LogEntry) time.Time {
	took := e.LastByte
	if !took.Set {
		took = e.Duration
	}
	if !e.Start.Set || !took.Set {
		return time.Time{}
	}
	return e.Start.Time().Add(took.Span())
}

// logged takes one entry: it belongs to an exchange of this replica, or to one
// that has ended, or to another replica's.
func (s *Server) logged(log string, raw *wire.LogEntry) {
	e := readEntry(raw)
	if e.id == "" {
		return // nothing of ours was planned for it
	}
	x, ended := s.table.get(e.id)
	switch {
	case x == nil && ended:
		return
	case x == nil:
		s.foreign(log, e, raw.Raw)
		return
	case x.joined:
		if !s.foreign(log, e, raw.Raw) && log == names.LogExchange {
			x.mu.Lock()
			defer x.mu.Unlock()
			s.dropJoined(x)
		}
		return
	}
	s.told(x, log, e)
}

// told adds an entry to what is known of the end of x.
func (s *Server) told(x *exchange, log string, e *entry) {
	x.mu.Lock()
	e.at = time.Now()
	if log == names.LogExchange {
		x.end.exchange = e
		x.learnEnd(e)
	} else if n := x.envoyN[e.attempt]; n > 0 {
		x.end.attempt, x.end.attemptN = e, n
	}
	x.mu.Unlock()
	s.tryEnd(x)
}

// planStreamLasts is the first minor version of Envoy that keeps the plan stream
// open until the answer is over. Older ones close it after the headers.
const planStreamLasts = 39

// versions remembers which Envoys have sent log entries.
type versions struct{ older, newer atomic.Bool }

func (v *versions) seen(minor int) {
	if minor == 0 || minor >= planStreamLasts {
		v.newer.Store(true)
		return
	}
	v.older.Store(true)
}

// planEndsEarly reports whether the end of a plan stream may not be the end of
// its answer: an older Envoy is there, or none has said yet what it is.
func (v *versions) planEndsEarly() bool { return v.older.Load() || !v.newer.Load() }
