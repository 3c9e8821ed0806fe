package scan

// The functions of this file are the hot loop: they work on a copy of the
// position, which they take and return, and -1 is "a fault was noted". What is
// common in compact JSON (no blanks, short names) takes the first branch
// everywhere.

// blank has the four characters that may stand between tokens.
var blank = [256]bool{' ': true, '\n': true, '\t': true, '\r': true}

// past is the first offset at or after i that holds no blank.
func past(b []byte, i int) int {
	for i < len(b) && blank[b[i]] {
		i++
	}
	return i
}

// skip takes the value at s.i. It is a loop over tokens: nesting costs one bit
// a level and no stack.
func (s *Scanner) skip() bool {
	b, i, base := s.b, s.i, s.depth
	for {
		if i >= len(b) {
			return s.stop(i) >= 0
		}
		switch c := b[i]; c {
		case '"':
			i = s.text(i + 1)
		case '{', '[':
			var empty bool
			if i, empty = s.enter(i, c); i >= 0 && !empty {
				continue
			}
		default:
			i = s.scalar(i, c)
		}
		if i < 0 {
			return false
		}
		if s.depth > base {
			if i = s.leave(i, base); i < 0 {
				return false
			}
		}
		if s.depth == base {
			s.i = i
			return true
		}
	}
}

// enter opens a container and goes to its first value; an empty one is closed
// again.
func (s *Scanner) enter(i int, bracket byte) (next int, empty bool) {
	s.i = i
	if !s.push(bracket) {
		return -1, false
	}
	s.fresh = false
	b := s.b
	i = past(b, i+1)
	switch {
	case i == len(b):
		return s.stop(i), false
	case b[i] == bracket+2: // in ASCII '}' is '{'+2 and ']' is '['+2
		s.depth--
		return i + 1, true
	case bracket == '{':
		return s.name(i), false
	}
	return i, false
}

// leave is called behind a value inside a container: it closes what ends there
// and goes to the next value, or stops behind the one that brings the depth to
// base.
func (s *Scanner) leave(i, base int) int {
	b := s.b
	object := s.inObject()
	for {
		i = past(b, i)
		if i == len(b) {
			return s.stop(i)
		}
		switch c := b[i]; {
		case c == ',':
			i = past(b, i+1)
			if object {
				return s.name(i)
			}
			return i
		case c == '}' && object, c == ']' && !object:
			i++
			s.depth--
			if s.depth == base {
				return i
			}
			object = s.inObject()
		default:
			return s.stop(i)
		}
	}
}

// name takes a member's name, its colon and the blanks before its value.
func (s *Scanner) name(i int) int {
	b := s.b
	if i == len(b) || b[i] != '"' {
		return s.stop(i)
	}
	if i = s.text(i + 1); i < 0 {
		return -1
	}
	i = past(b, i)
	if i == len(b) || b[i] != ':' {
		return s.stop(i)
	}
	return past(b, i+1)
}

// stop notes that b[i], or the end of the text, is not what must come here.
func (s *Scanner) stop(i int) int {
	s.i = i
	s.short()
	return -1
}

// scalar takes a literal or a number.
func (s *Scanner) scalar(i int, c byte) int {
	rest := s.b[i:]
	switch {
	case c == 't' && len(rest) >= 4 && string(rest[:4]) == "true":
		return i + 4
	case c == 'f' && len(rest) >= 5 && string(rest[:5]) == "false":
		return i + 5
	case c == 'n' && len(rest) >= 4 && string(rest[:4]) == "null":
		return i + 4
	case c == 't':
		return s.broken(i, "true")
	case c == 'f':
		return s.broken(i, "false")
	case c == 'n':
		return s.broken(i, "null")
	}
	return s.number(i)
}

// broken finds where a literal goes wrong.
func (s *Scanner) broken(i int, word string) int {
	j := 0
	for j < len(word) && i+j < len(s.b) && s.b[i+j] == word[j] {
		j++
	}
	return s.stop(i + j)
}

// number takes RFC 8259 section 6: no plus sign, no leading zero, digits on
// both sides of the point.
func (s *Scanner) number(i int) int {
	b := s.b
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = s.digits(i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return s.digits(i)
	}
	return i
}

// digits takes one digit or more.
func (s *Scanner) digits(i int) int {
	b, start := s.b, i
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	if i == start {
		return s.stop(i)
	}
	return i
}
