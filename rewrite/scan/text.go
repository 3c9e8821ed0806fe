package scan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight bytes at a time: in each lane the high bit says "special". A borrow
// goes only upwards out of a lane that is special itself, so the lowest flagged
// lane is always right; bytes over 0x7f never borrow.
const (
	lanes  = 0x0101010101010101
	high   = 0x8080808080808080
	slants = '\\' * lanes
	// x^2 swaps a quote (0x22) with a blank (0x20) and keeps what is below a blank
	// there: then "less than 0x21" is "quote or control character".
	two    = 2 * lanes
	margin = 0x21 * lanes
)

// flags has the high bit of each lane that holds a quote, a backslash, a control
// character, and of some lanes over 0x7f.
func flags(x uint64) uint64 { return ((x ^ two) - margin) | ((x ^ slants) - lanes) }

// text takes the string whose text begins at i, just after the opening quote,
// and returns the offset after the closing one, or -1.
func (s *Scanner) text(i int) int {
	if j := short(s.b, i); j < len(s.b) && s.b[j] == '"' {
		return j + 1
	}
	return s.long(i)
}

// short is the first offset from i on that is no plain character, or 12 further.
func short(b []byte, i int) int {
	for end := i + 12; i < len(b) && i < end && plain[b[i]]; {
		i++
	}
	return i
}

// long is text without the short way: blocks of 32 bytes while there are such,
// then the rest byte by byte.
func (s *Scanner) long(start int) int {
	b, i := s.b, start
	var seen uint64 // all bytes or-ed: with a high bit there is more than ASCII
	for len(b)-i >= 32 {
		p := (*[32]byte)(b[i:])
		x0, x1 := binary.LittleEndian.Uint64(p[0:8]), binary.LittleEndian.Uint64(p[8:16])
		x2, x3 := binary.LittleEndian.Uint64(p[16:24]), binary.LittleEndian.Uint64(p[24:32])
		f0, f1, f2, f3 := flags(x0), flags(x1), flags(x2), flags(x3)
		if (f0|x0|f1|x1|f2|x2|f3|x3)&high == 0 {
			i += 32
			continue
		}
		seen |= x0 | x1 | x2 | x3
		met := gather(f0&^x0) | gather(f1&^x1)<<8 | gather(f2&^x2)<<16 | gather(f3&^x3)<<24
		n := walk(p, met)
		i += n
		if n >= 32 {
			continue
		}
		if b[i] == '"' {
			return s.close(start, i, seen)
		}
		if i = s.escape(i); i < 0 {
			return -1
		}
	}
	return s.rest(start, i, seen)
}

// gather makes one bit a lane of the high bits of m.
func gather(m uint64) uint32 {
	// The factor moves bit 8k of m>>7 to bit 56+k; no two products meet.
	return uint32((m & high >> 7) * 0x0102040810204080 >> 56)
}

// walk goes through the special characters of a block, by their bits, past short
// escapes. It returns the offset of the first that is something else, or 32.
func walk(p *[32]byte, met uint32) int {
	for met != 0 {
		n := bits.TrailingZeros32(met)
		if p[n] != '\\' || n == 31 || escapes[p[n+1]] == 0 {
			return n
		}
		met &^= 3 << n
	}
	return 32
}

// rest is long for what is shorter than a block.
func (s *Scanner) rest(start, i int, seen uint64) int {
	b := s.b
	for i < len(b) {
		c := b[i]
		switch {
		case c == '"':
			return s.close(start, i, seen)
		case c == '\\' || c < ' ':
			if i = s.escape(i); i < 0 {
				return -1
			}
		default:
			seen |= uint64(c)
			i++
		}
	}
	return s.stop(i)
}

// close ends a string at its closing quote.
func (s *Scanner) close(start, i int, seen uint64) int {
	if seen&high != 0 && !utf8.Valid(s.b[start:i]) {
		s.i = start
		s.fail(FaultUTF8)
		return -1
	}
	return i + 1
}

// escape takes the escape at i and returns the offset after it, or -1, as for a
// control character.
func (s *Scanner) escape(i int) int {
	b := s.b
	if b[i] != '\\' {
		return s.stop(i)
	}
	if i+1 < len(b) && escapes[b[i+1]] != 0 {
		return i + 2
	}
	n := unicode(b[i:])
	if n <= 0 {
		return s.stop(i - n)
	}
	return i + n
}

// unicode is the length of the escape \uXXXX at the beginning of b, which is its
// backslash. Zero or less is a fault, at offset -n. A lone surrogate is legal
// here, as in RFC 8259: what it means is for the platform to say.
func unicode(b []byte) int {
	if len(b) < 2 || b[1] != 'u' {
		return -1
	}
	for j := 2; j < 6; j++ {
		if j == len(b) || unhex(b[j]) < 0 {
			return -j
		}
	}
	return 6
}

func unhex(c byte) rune {
	switch {
	case c-'0' < 10:
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// Raw is the text between the quotes of the string at span, escapes and all. It
// aliases the scanned bytes.
func (s *Scanner) Raw(span Span) []byte { return s.b[span.Start+1 : span.End-1] }

// Bytes is what is at span, as it is. It aliases the scanned bytes.
func (s *Scanner) Bytes(span Span) []byte { return s.b[span.Start:span.End] }

// Text is what the string at span (with its quotes, as String and Member return
// it) says. It aliases the scanned bytes when the string has no escapes, else
// it is a new slice. Lone surrogates stay distinct: each is encoded as its own
// three bytes, which are not valid UTF-8.
func (s *Scanner) Text(span Span) []byte {
	raw := s.Raw(span)
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return unescape(raw)
}

// Is reports whether the string at span says want.
func (s *Scanner) Is(span Span, want string) bool {
	raw := s.Raw(span)
	if string(raw) == want {
		return true
	}
	// An escape is never shorter than what it stands for.
	if len(raw) <= len(want) || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	return string(unescape(raw)) == want
}

func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			j := bytes.IndexByte(raw[i:], '\\')
			if j < 0 {
				return append(out, raw[i:]...)
			}
			out = append(out, raw[i:i+j]...)
			i += j
			continue
		}
		if raw[i+1] != 'u' {
			out = append(out, escapes[raw[i+1]])
			i += 2
			continue
		}
		r := hex4(raw[i+2:])
		i += 6
		if utf16.IsSurrogate(r) && len(raw)-i >= 6 && raw[i] == '\\' && raw[i+1] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(raw[i+2:])); pair != utf8.RuneError {
				r, i = pair, i+6
			}
		}
		out = appendRune(out, r)
	}
	return out
}

// plain has the characters of ASCII that stand for themselves in a string.
var plain = func() (set [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		set[c] = c != '"' && c != '\\'
	}
	return set
}()

// escapes has what the short escapes stand for, by the character after the
// backslash.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func hex4(b []byte) rune {
	return unhex(b[0])<<12 | unhex(b[1])<<8 | unhex(b[2])<<4 | unhex(b[3])
}

func appendRune(out []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0xbf, 0x80|byte(r)&0xbf)
	}
	return utf8.AppendRune(out, r)
}
