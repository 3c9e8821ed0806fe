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
// lane is always right; bytes over 0x7f are masked out and never borrow.
const (
	lanes  = 0x0101010101010101
	high   = 0x8080808080808080
	quotes = '"' * lanes
	slants = '\\' * lanes
	blanks = ' ' * lanes
)

// special flags quotes, backslashes and control characters.
func special(x uint64) uint64 {
	return (((x ^ quotes) - lanes) | ((x ^ slants) - lanes) | (x - blanks)) & ^x & high
}

// plain is the offset, at or after i, of the first quote, backslash or control
// character, len(b) if there is none. ascii is false when a byte over 0x7f
// comes before it, or within the eight bytes that hold it: then the caller has
// UTF-8 checked in full.
func plain(b []byte, i int) (at int, ascii bool) {
	var seen uint64
	if len(b)-i >= 8 {
		// Names and short values end here.
		x := binary.LittleEndian.Uint64(b[i:])
		seen = x
		if m := special(x); m != 0 {
			return i + bits.TrailingZeros64(m)/8, seen&high == 0
		}
		i += 8
	}
	for len(b)-i >= 32 {
		p := (*[32]byte)(b[i:])
		x0, x1 := binary.LittleEndian.Uint64(p[0:8]), binary.LittleEndian.Uint64(p[8:16])
		x2, x3 := binary.LittleEndian.Uint64(p[16:24]), binary.LittleEndian.Uint64(p[24:32])
		if special(x0)|special(x1)|special(x2)|special(x3) != 0 {
			break
		}
		seen |= x0 | x1 | x2 | x3
		i += 32
	}
	for len(b)-i >= 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		seen |= x
		if m := special(x); m != 0 {
			return i + bits.TrailingZeros64(m)/8, seen&high == 0
		}
		i += 8
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		seen |= uint64(c)
	}
	return i, seen&high == 0
}

// str takes the string whose opening quote is at s.i.
func (s *Scanner) str() bool {
	b, start := s.b, s.i+1
	i, ascii := plain(b, start)
	for i < len(b) && b[i] != '"' {
		if b[i] != '\\' {
			s.i = i
			return s.fail(FaultSyntax)
		}
		n := escape(b[i:])
		if n <= 0 {
			s.i = i - n
			return s.short()
		}
		var more bool
		i, more = plain(b, i+n)
		ascii = ascii && more
	}
	if i == len(b) {
		s.i = i
		return s.fail(FaultEnd)
	}
	if !ascii && !utf8.Valid(b[start:i]) {
		s.i = start
		return s.fail(FaultUTF8)
	}
	s.i = i + 1
	return true
}

// escape is the length of the escape at the beginning of b, which is its
// backslash. Zero or less is a fault, at offset -n. A lone surrogate is legal
// here, as in RFC 8259: what it means is for the platform to say.
func escape(b []byte) int {
	if len(b) < 2 {
		return -1
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for j := 2; j < 6; j++ {
			if j == len(b) || unhex(b[j]) < 0 {
				return -j
			}
		}
		return 6
	}
	return -1
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
