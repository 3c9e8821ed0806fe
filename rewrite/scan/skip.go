package scan

// skip takes the value at s.i. It is a loop over tokens: nesting costs one bit
// a level and no stack.
func (s *Scanner) skip() bool {
	base := s.depth
	for {
		if !s.token() {
			return false
		}
		// A container that was just opened: its first member or element, or its end.
		if s.fresh {
			s.fresh = false
			if done, ok := s.first(); !ok {
				return false
			} else if !done {
				continue
			}
		}
		more, ok := s.after(base)
		if !ok || !more {
			return ok
		}
	}
}

// token takes a scalar or opens a container.
func (s *Scanner) token() bool {
	if s.i == len(s.b) {
		return s.fail(FaultEnd)
	}
	switch c := s.b[s.i]; c {
	case '"':
		return s.str()
	case '{', '[':
		return s.push(c)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// first is called in a container without members yet. done: it was empty and is
// left; else the next value follows.
func (s *Scanner) first() (done, ok bool) {
	object := s.inObject()
	closing := byte(']')
	if object {
		closing = '}'
	}
	switch c := s.Peek(); {
	case c == 0:
		return false, s.short()
	case c == closing:
		s.i++
		s.depth--
		return true, true
	case !object:
		return false, true
	}
	return false, s.next()
}

// next takes a name, its colon and the blanks before the value.
func (s *Scanner) next() bool {
	if _, ok := s.key(); !ok {
		return false
	}
	s.space()
	return true
}

// after is called behind a value: it closes what ends there and goes to the next
// value. more is false when the value at depth base is whole.
func (s *Scanner) after(base int) (more, ok bool) {
	for s.depth > base {
		c := s.Peek()
		object := s.inObject()
		switch {
		case c == ',':
			s.i++
			if object {
				return true, s.next()
			}
			s.space()
			return true, true
		case c == '}' && object, c == ']' && !object:
			s.i++
			s.depth--
		case c == 0:
			return false, s.short()
		default:
			return false, s.fail(FaultSyntax)
		}
	}
	return false, true
}

func (s *Scanner) literal(word string) bool {
	rest := s.b[s.i:]
	for j := 0; j < len(word); j++ {
		if j == len(rest) {
			s.i += j
			return s.fail(FaultEnd)
		}
		if rest[j] != word[j] {
			s.i += j
			return s.fail(FaultSyntax)
		}
	}
	s.i += len(word)
	return true
}

// number takes RFC 8259 section 6: no plus sign, no leading zero, digits on
// both sides of the point.
func (s *Scanner) number() bool {
	b := s.b
	if b[s.i] == '-' {
		s.i++
	}
	if s.i < len(b) && b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.i < len(b) && b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if s.i < len(b) && b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(b) && (b[s.i] == '+' || b[s.i] == '-') {
			s.i++
		}
		return s.digits()
	}
	return true
}

// digits takes one digit or more.
func (s *Scanner) digits() bool {
	b, i := s.b, s.i
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	if i == s.i {
		return s.short()
	}
	s.i = i
	return true
}
