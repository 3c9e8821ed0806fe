package eventstream

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// The longest that the format allows, in bytes of one frame.
const (
	DefaultMaxPayload = 24 << 20
	maxHeaders        = 128 << 10
)

const (
	preludeLen  = 12             // both lengths and their checksum
	overhead    = preludeLen + 4 // what a frame has besides headers and payload
	keptBetween = 1 << 20        // a longer buffer is let go when its frame is over
	checksumLen = overhead - preludeLen
)

// What makes a stream unreadable. Where the next frame begins is unknown then,
// so each of them ends it.
var (
	ErrCorruptPrelude = errors.New("eventstream: the beginning of a frame is corrupt")
	ErrCorruptMessage = errors.New("eventstream: the checksum of a frame is wrong")
	ErrTooLarge       = errors.New("eventstream: frame longer than the limit")
	ErrBadHeader      = errors.New("eventstream: malformed frame headers")
)

// Parser holds what is unfinished between chunks. The zero value is ready and
// expects the beginning of a stream. It is for one goroutine.
type Parser struct {
	// MaxPayload is the longest payload in bytes; 0 is DefaultMaxPayload.
	MaxPayload int

	part    []byte // own copy of a frame that the chunks cut
	frame   Frame
	stopped bool
	failed  error
}

// Feed takes the next bytes of the stream and yields each frame that they
// complete; the frame and its bytes are valid during the call alone. When yield
// returns false the parser stops for good: Feed returns nil, then and ever
// after, without looking at more. An error, one of this package's, stays. chunk
// is not kept.
func (p *Parser) Feed(chunk []byte, yield func(*Frame) bool) error {
	for !p.stopped && p.failed == nil && len(chunk) > 0 {
		var message []byte
		if message, chunk = p.next(chunk); message == nil {
			break
		}
		if p.failed = p.frame.read(message); p.failed == nil {
			p.stopped = !yield(&p.frame)
		}
		p.frame = Frame{}
		if len(message) > keptBetween {
			p.part = nil
		}
	}
	return p.failed
}

// next is the first whole frame of what is there, and the rest of the chunk. nil
// when none is whole: then the chunk has been copied, or the parser failed.
func (p *Parser) next(chunk []byte) (message, rest []byte) {
	if len(p.part) == 0 {
		if n := p.length(chunk); p.failed == nil && n > 0 && n <= len(chunk) {
			return chunk[:n], chunk[n:]
		}
	}
	chunk = p.keep(chunk, preludeLen)
	n := p.length(p.part)
	if p.failed != nil || n == 0 {
		return nil, nil
	}
	chunk = p.keep(chunk, n)
	if len(p.part) < n {
		return nil, nil
	}
	message, p.part = p.part, p.part[:0]
	return message, chunk
}

// keep copies bytes of the chunk until n of the frame are there, and returns
// what is left of the chunk.
func (p *Parser) keep(chunk []byte, n int) []byte {
	n = max(0, min(n-len(p.part), len(chunk)))
	p.part = append(p.part, chunk[:n]...)
	return chunk[n:]
}

// length is the total length that a frame states, 0 when its prelude is not all
// there or fails its checks.
func (p *Parser) length(frame []byte) int {
	if len(frame) < preludeLen {
		return 0
	}
	total, headers := uint64(binary.BigEndian.Uint32(frame)), uint64(binary.BigEndian.Uint32(frame[4:]))
	limit := p.MaxPayload
	if limit <= 0 || limit > DefaultMaxPayload {
		limit = DefaultMaxPayload
	}
	switch {
	case crc32.ChecksumIEEE(frame[:8]) != binary.BigEndian.Uint32(frame[8:]), total < overhead+headers:
		p.failed = ErrCorruptPrelude
	case headers > maxHeaders, total-overhead-headers > uint64(limit):
		p.failed = ErrTooLarge
	default:
		return int(total) //nolint:gosec // at most the two limits
	}
	return 0
}
