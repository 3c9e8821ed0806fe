package eventstream

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/crossdoor/crossdoor/rewrite/messages"
	"github.com/crossdoor/crossdoor/rewrite/scan"
)

// metricsMember is what Bedrock adds to the last event of a stream.
const metricsMember = "amazon-bedrock-invocationMetrics"

// strict refuses base64 with bits left over; line breaks, which it would take,
// are looked for.
var strict = base64.StdEncoding.Strict()

// decode takes the event out of a chunk's payload, {"bytes":"<base64>","p":…},
// with its line breaks made blanks. It is valid until the next one. Empty: there
// is none.
func (c *Converter) decode(payload []byte) (data []byte, ok bool) {
	var s scan.Scanner
	var text []byte
	s.Reset(payload)
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		if !s.Is(key, "bytes") || s.Peek() != '"' {
			s.Value()
			continue
		}
		if span, ok := s.String(); ok {
			text = s.Text(span)
		}
	}
	if !s.End() || broken(text) {
		return nil, false
	}
	if cap(c.inner) > keptBetween {
		c.inner = nil
	}
	n := strict.DecodedLen(len(text))
	c.inner = slices.Grow(c.inner[:0], n)
	n, err := strict.Decode(c.inner[:n], text)
	if err != nil {
		return nil, false
	}
	data = c.inner[:n]
	// In JSON a line break can only stand between tokens; a blank means the same.
	if broken(data) {
		for i, b := range data {
			if b == '\r' || b == '\n' {
				data[i] = ' '
			}
		}
	}
	return data, true
}

// broken reports whether text has line breaks.
func broken(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// inner is what matters of an event. Spans of length 0 are absent.
type inner struct {
	kind    scan.Span // its type, with the quotes
	metrics scan.Span // the value of Bedrock's own member
	cut     scan.Span // that member, with the comma that goes with it
}

// tidy is an event's name and the event without Bedrock's member; that member's
// counts go to the account. No name: it has no type. false: it is no JSON, or
// its type would break the line. Both are valid until the next event.
func (c *Converter) tidy(data []byte) (name, tidied []byte, ok bool) {
	var s scan.Scanner
	s.Reset(data)
	in, ok := readInner(&s)
	if !ok || in.kind.Len() == 0 {
		return nil, nil, ok
	}
	c.name = append(c.name[:0], s.Text(in.kind)...)
	if bytes.ContainsFunc(c.name, func(r rune) bool { return r < ' ' }) {
		return nil, nil, false
	}
	if in.cut.Len() > 0 {
		fill(&c.account, s.Bytes(in.metrics))
		data = slices.Delete(data, in.cut.Start, in.cut.End)
	}
	return c.name, data, true
}

// readInner reads an event; false: it is no JSON. The member that goes takes its
// following comma with it, the last one its preceding one.
func readInner(s *scan.Scanner) (in inner, ok bool) {
	if s.Peek() != '{' {
		s.Value()
		return in, s.End()
	}
	comma := -1 // before the member at hand
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		quoted := s.Peek() == '"'
		value, _ := s.Value()
		another := s.Peek() == ','
		switch {
		case s.Is(key, "type") && quoted && in.kind.Len() == 0:
			in.kind = value
		case s.Is(key, metricsMember) && in.cut.Len() == 0:
			in.metrics, in.cut = value, scan.Span{Start: key.Start, End: value.End}
			if another {
				in.cut.End = s.Pos() + 1
			} else if comma >= 0 {
				in.cut.Start = comma
			}
		}
		if another {
			comma = s.Pos()
		}
	}
	return in, s.End()
}

// fill takes token counts that no event states from Bedrock's metrics.
func fill(e *messages.Ending, metrics []byte) {
	var s scan.Scanner
	s.Reset(metrics)
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		value, _ := s.Value()
		count := counted(&e.Usage, s.Text(key))
		n, err := strconv.ParseInt(string(s.Bytes(value)), 10, 64)
		if count == nil || err != nil || n < 0 {
			continue
		}
		e.HasUsage = true
		if *count == 0 {
			*count = n
		}
	}
}

// counted is the count that a member of the metrics has, nil for others.
func counted(u *messages.Usage, name []byte) *int64 {
	switch string(name) {
	case "inputTokenCount":
		return &u.InputTokens
	case "outputTokenCount":
		return &u.OutputTokens
	case "cacheReadInputTokenCount":
		return &u.CacheReadInputTokens
	case "cacheWriteInputTokenCount":
		return &u.CacheCreationInputTokens
	}
	return nil
}
