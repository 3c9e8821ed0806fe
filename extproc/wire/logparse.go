package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// The readers here go through bytes that were checked before, so no cursor can
// fail. Field numbers are those of Envoy's als.proto and accesslog.proto. A
// submessage that comes again is merged into the first.

// read reads StreamAccessLogsMessage into m, which is empty.
func (m *LogMessage) read(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		switch {
		case c.bytes(1): // identifier
			m.Identified = true
			m.readIdentifier(c.val)
		case c.bytes(2): // http_logs, of a oneof
			m.readEntries(c.val)
		case c.bytes(3): // tcp_logs, of the same oneof
			m.drop()
		}
	}
}

func (m *LogMessage) readIdentifier(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		switch {
		case c.bytes(1): // node
			m.readVersion(c.val, nodeBuild, buildVersion)
		case c.bytes(2):
			m.Log = string(c.val)
		}
	}
}

// Field numbers on the way to the version: Node.user_agent_build_version and
// BuildVersion.version, of which 2 is the minor number.
const (
	nodeBuild    = 8
	buildVersion = 1
)

// readVersion follows path into submessages and reads the minor number in the
// last.
func (m *LogMessage) readVersion(b []byte, path ...protowire.Number) {
	for c := (cursor{b: b}); c.next(); {
		switch {
		case len(path) > 0 && c.bytes(path[0]):
			m.readVersion(c.val, path[1:]...)
		case len(path) == 0 && c.varint(2):
			m.Minor = int(uint32(c.u))
		}
	}
}

// readEntries reads HTTPAccessLogEntries.
func (m *LogMessage) readEntries(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		if c.bytes(1) {
			m.add().read(c.val)
		}
	}
}

// read reads HTTPAccessLogEntry into e, which is empty.
func (e *LogEntry) read(b []byte) {
	e.Raw = b
	for c := (cursor{b: b}); c.next(); {
		switch {
		case c.bytes(1):
			e.readCommon(c.val)
		case c.bytes(4):
			e.readResponse(c.val)
		}
	}
}

// readCommon reads AccessLogCommon.
func (e *LogEntry) readCommon(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		if c.typ != protowire.BytesType {
			continue
		}
		switch c.num {
		case 5:
			e.Start.read(c.val)
		case 12: // time_to_last_downstream_tx_byte
			e.LastByte.read(c.val)
		case 16:
			e.Flags.read(c.val)
		case 17:
			e.readMetadata(c.val)
		case 23:
			e.Duration.read(c.val)
		}
	}
}

// readResponse reads HTTPResponseProperties.
func (e *LogEntry) readResponse(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		switch {
		case c.bytes(1): // UInt32Value
			for v := (cursor{b: c.val}); v.next(); {
				if v.varint(1) {
					e.Status = uint32(v.u)
				}
			}
		case c.bytes(6):
			e.Details = c.val
		}
	}
}

// read reads Timestamp or Duration: their fields are the same.
func (s *Stamp) read(b []byte) {
	s.Set = true
	for c := (cursor{b: b}); c.next(); {
		switch {
		case c.varint(1):
			s.Seconds = int64(c.u)
		case c.varint(2):
			s.Nanos = int32(c.u)
		}
	}
}

// read reads ResponseFlags.
func (f *LogFlags) read(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		if c.typ != protowire.VarintType {
			continue
		}
		on := protowire.DecodeBool(c.u)
		switch c.num {
		case 5:
			f.UR = on
		case 7:
			f.UC = on
		case 15:
			f.DC = on
		case 17:
			f.SI = on
		case 24:
			f.UPE = on
		}
	}
}

// readMetadata reads config.core.v3.Metadata. A later entry with the same key
// replaces an earlier one.
func (e *LogEntry) readMetadata(b []byte) {
	for c := (cursor{b: b}); c.next(); {
		if !c.bytes(1) { // filter_metadata, a map
			continue
		}
		switch string(entryKey(c.val)) {
		case names.Namespace:
			e.State = readTexts(e.State[:0], c.val)
		case names.TailNamespace:
			e.readTail(c.val)
		}
	}
}

// readTail reads the tail filter's entry of filter_metadata.
func (e *LogEntry) readTail(entry []byte) {
	e.Tail, e.HasTail, e.TailBytes = nil, false, 0
	for c := (cursor{b: entry}); c.next(); {
		if !c.bytes(2) {
			continue
		}
		for s := (cursor{b: c.val}); s.next(); {
			if !s.bytes(1) {
				continue
			}
			switch string(entryKey(s.val)) {
			case names.TailText:
				e.Tail, e.HasTail = entryValue(s.val).text, true
			case names.TailBytes:
				e.TailBytes = entryValue(s.val).number
			}
		}
	}
}
