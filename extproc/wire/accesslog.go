package wire

import (
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// LogMessage is one envoy.service.accesslog.v3.StreamAccessLogsMessage. The zero
// value is ready; pass the same one to Recv again and again. Not safe for
// concurrent use.
//
// The entries alias the message: they hold until the next Recv or Release. Copy
// what must outlive it.
type LogMessage struct {
	// Log is the identifier's log_name, a copy. Envoy sends the identifier with
	// the first message of a stream only; Identified says whether it came.
	Log        string
	Identified bool
	// Minor is the sending Envoy's minor version, with the identifier; 0 when it
	// does not say.
	Minor   int
	Entries []LogEntry // of HTTP, in Envoy's order; TCP entries are only checked

	msg *Buffer // the whole message
}

// LogEntry is what the service needs of one
// envoy.data.accesslog.v3.HTTPAccessLogEntry. All its bytes alias the message.
type LogEntry struct {
	Raw     []byte // the entry as it was encoded, for EncodeLog
	Status  uint32 // response code; 0 when there was no answer
	Details []byte // response code details
	Flags   LogFlags

	Start    Stamp // when the request came, by Envoy's clock
	LastByte Stamp // from Start to the last byte downstream
	Duration Stamp // from Start to the end of the request

	State []Header // the strings in filter_metadata["crossdoor"], in no order

	// Tail is filter_metadata["crossdoor.tail"]["text"], empty when that is no
	// string; HasTail says whether it is there. TailBytes is the number "bytes"
	// beside it, 0 when there is none.
	Tail      []byte
	HasTail   bool
	TailBytes float64
}

// LogFlags are the response flags that the service tells apart, named as
// Envoy's text logs name them.
type LogFlags struct {
	DC  bool // downstream connection termination
	SI  bool // stream idle timeout
	UC  bool // upstream connection termination
	UR  bool // upstream remote reset
	UPE bool // upstream protocol error
}

// Stamp is a google.protobuf.Timestamp or Duration as it was sent.
type Stamp struct { //nolint:recvcheck // it reads itself by pointer and is asked by value
	Seconds int64
	Nanos   int32
	Set     bool // whether it was sent at all
}

// Time is the Stamp as a point in time.
func (s Stamp) Time() time.Time {
	t := timestamppb.Timestamp{Seconds: s.Seconds, Nanos: s.Nanos}
	return t.AsTime()
}

// Span is the Stamp as a duration, the closest there is when it is out of range.
func (s Stamp) Span() time.Duration {
	d := durationpb.Duration{Seconds: s.Seconds, Nanos: s.Nanos}
	return d.AsDuration()
}

// Meta is the string with that name in the state, a copy; "" when absent.
func (e *LogEntry) Meta(name string) string { return metaOf(e.State, name) }

// Release lets go of the message and empties the LogMessage. It can be called
// at any time and more than once.
func (m *LogMessage) Release() {
	m.msg.Free()
	m.drop()
	*m = LogMessage{Entries: m.Entries}
}

// drop empties the list of entries and keeps its memory and that of their
// states, without pointers into messages.
func (m *LogMessage) drop() {
	for i := range m.Entries {
		m.Entries[i].reset()
	}
	m.Entries = m.Entries[:0]
}

// add returns a new, empty entry at the end of the list.
func (m *LogMessage) add() *LogEntry {
	if n := len(m.Entries); n < cap(m.Entries) {
		m.Entries = m.Entries[:n+1] // what was there is empty: see drop
	} else {
		m.Entries = append(m.Entries, LogEntry{})
	}
	return &m.Entries[len(m.Entries)-1]
}

func (e *LogEntry) reset() {
	clear(e.State)
	*e = LogEntry{State: e.State[:0]}
}

// unmarshal reads a message that gRPC frees after the call: the one copy of its
// bytes is made here. After an error the LogMessage is empty.
func (m *LogMessage) unmarshal(data mem.BufferSlice) error {
	m.Release()
	msg := NewBuffer(data.Len())
	data.CopyTo(msg.data)
	if err := check(msg.data, &logsShape, maxDepth); err != nil {
		msg.Free()
		return err
	}
	m.msg = msg
	m.read(msg.data)
	return nil
}
