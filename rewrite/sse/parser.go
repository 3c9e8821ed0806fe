package sse

import (
	"bytes"
	"errors"
)

// DefaultMaxEvent is the longest event in bytes when a Parser sets no other.
const DefaultMaxEvent = 8 << 20

// ErrEventTooLong is an event whose lines, comments aside, are together longer
// than the parser allows.
var ErrEventTooLong = errors.New("sse: event longer than the limit")

// Event is one event. Both slices are valid during the call that they are
// yielded to and must not be changed.
type Event struct {
	Name []byte // empty when the stream gave none
	Data []byte // the data lines, joined by line feeds
}

// Parser holds what is unfinished between chunks. The zero value is ready and
// expects the beginning of a stream. It is for one goroutine.
type Parser struct {
	// MaxEvent is the longest event in bytes; 0 is DefaultMaxEvent.
	MaxEvent int

	name []byte // own copy
	data []byte // own copy of the data lines before the current chunk, or joined
	ref  []byte // the only data line so far, aliasing the current chunk
	line []byte // own copy of the beginning of a line that the chunk cut

	size    int // bytes of this event's whole lines
	mark    int // bytes of a byte order mark seen; 3 when past it
	lf, cr  int // within Feed: the next line feed and carriage return
	hasData bool
	comment bool // the unfinished line is a comment: its bytes are not kept
	afterCR bool // a line feed that comes next belongs to the line that ended
	stopped bool
	failed  error
}

// Feed takes the next bytes of the stream and yields each event that they
// complete. When yield returns false the parser stops for good: Feed returns
// nil, then and ever after, without looking at more. The only error is
// ErrEventTooLong, and it stays. chunk is not kept.
func (p *Parser) Feed(chunk []byte, yield func(Event) bool) error {
	if p.stopped || p.failed != nil {
		return p.failed
	}
	chunk = p.skipMark(chunk)
	p.lf, p.cr = -1, -1
	for at := 0; at < len(chunk); {
		if p.afterCR {
			p.afterCR = false
			if chunk[at] == '\n' {
				at++
				continue
			}
		}
		end := p.lineEnd(chunk, at)
		if end == len(chunk) {
			p.keep(chunk[at:])
			break
		}
		p.afterCR = chunk[end] == '\r'
		blank := p.take(chunk[at:end])
		at = end + 1
		if p.failed != nil {
			return p.failed
		}
		if blank && !p.dispatch(yield) {
			return nil
		}
	}
	p.settle()
	return p.failed
}

// skipMark takes a byte order mark off the beginning of the stream, also one
// that comes in pieces.
func (p *Parser) skipMark(chunk []byte) []byte {
	const bom = "\ufeff"
	for p.mark < len(bom) && len(chunk) > 0 {
		if chunk[0] != bom[p.mark] {
			p.line = append(p.line, bom[:p.mark]...)
			p.mark = len(bom)
			break
		}
		p.mark++
		chunk = chunk[1:]
	}
	return chunk
}

// lineEnd is the offset of the next line feed or carriage return, len(chunk) if
// there is none. Both are remembered, so that no byte is searched twice.
func (p *Parser) lineEnd(chunk []byte, at int) int {
	if p.lf < at {
		p.lf = index(chunk, at, '\n')
	}
	if p.cr < at {
		p.cr = index(chunk, at, '\r')
	}
	return min(p.lf, p.cr)
}

func index(chunk []byte, at int, c byte) int {
	if i := bytes.IndexByte(chunk[at:], c); i >= 0 {
		return at + i
	}
	return len(chunk)
}

// keep copies the beginning of a line that goes on in the next chunk.
func (p *Parser) keep(part []byte) {
	if p.comment || (len(p.line) == 0 && part[0] == ':') {
		p.comment = true
		return
	}
	p.line = append(p.line, part...)
	p.check(len(p.line))
}

// take reads a line whose end has come, and reports whether it is blank.
func (p *Parser) take(part []byte) (blank bool) {
	if p.comment {
		p.comment = false
		return false
	}
	if len(p.line) == 0 {
		p.field(part, p.first)
		return len(part) == 0
	}
	p.line = append(p.line, part...)
	p.field(p.line, p.join)
	p.line = p.line[:0]
	return false
}

// field reads one whole line; add takes the value of a data field.
func (p *Parser) field(line []byte, add func(value []byte)) {
	if len(line) == 0 || line[0] == ':' || !p.check(len(line)) {
		return
	}
	p.size += len(line)
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "event":
		p.name = append(p.name[:0], value...)
	case "data":
		add(value)
	}
}
