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

// skip takes the value at s.i. It is a loop over tokens: nesting costs one byte
// a level and no recursion. Everything is in local variables: s.depth is the same
// before and after, and a fault ends the scan whatever it was in between.
func (s *Scanner) skip() bool {
	b, i, depth := s.b, s.i, s.depth
	base := depth
	var open byte // the bracket that opened what is innermost
value:
	for i < len(b) {
		if open == '{' {
			if j := short(b, i+1); b[i] == '"' && j+1 < len(b) && b[j] == '"' && b[j+1] == ':' {
				i = j + 2
			} else if i = s.name(i); i < 0 {
				return false
			}
		}
		if i < len(b) && b[i] <= ' ' {
			i = past(b, i)
		}
		if i == len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			if j := short(b, i+1); j < len(b) && b[j] == '"' {
				i = j + 1
			} else if i = s.long(i + 1); i < 0 {
				return false
			}
		case c-'1' < 9:
			if i = run(b, i+1); i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
				if i = s.fraction(i); i < 0 {
					return false
				}
			}
		case c|0x20 == '{': // '[' as well
			if depth == MaxDepth {
				s.i = i
				return s.fail(FaultDepth)
			}
			if i++; i < len(b) && b[i] <= ' ' {
				i = past(b, i)
			}
			if i < len(b) && b[i] == c+2 { // in ASCII '}' is '{'+2 and ']' is '['+2
				i++
				break
			}
			open = c
			s.open[depth&(MaxDepth-1)] = c
			depth++
			continue
		case c == 't' && len(b)-i >= 4 && string(b[i:i+4]) == "true", c == 'n' && len(b)-i >= 4 && string(b[i:i+4]) == "null":
			i += 4
		default:
			if i = s.scalar(i, c); i < 0 {
				return false
			}
		}
		// A value ended: so may what it is in.
		for depth > base {
			if i == len(b) {
				break value
			}
			switch c := b[i]; {
			case c == ',':
				i++
				continue value
			case c == open+2:
				i++
				depth--
				open = s.open[(depth-1)&(MaxDepth-1)] // means nothing at the outermost
			case blank[c]:
				i++
			default:
				return s.stop(i) >= 0
			}
		}
		s.i = i
		return true
	}
	return s.stop(i) >= 0
}

// name takes a member's name, with blanks before it, and its colon.
func (s *Scanner) name(i int) int {
	b := s.b
	if i < len(b) && b[i] <= ' ' {
		i = past(b, i)
	}
	if i >= len(b) || b[i] != '"' {
		return s.stop(i)
	}
	if i = s.text(i + 1); i < 0 {
		return -1
	}
	if i < len(b) && b[i] <= ' ' {
		i = past(b, i)
	}
	if i >= len(b) || b[i] != ':' {
		return s.stop(i)
	}
	return i + 1
}

// stop notes that b[i], or the end of the text, is not what must come here.
func (s *Scanner) stop(i int) int {
	s.i = i
	s.short()
	return -1
}

// scalar takes a literal or a number.
func (s *Scanner) scalar(i int, c byte) int {
	switch c {
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	}
	return s.number(i)
}

// literal takes a word.
func (s *Scanner) literal(i int, word string) int {
	if end := i + len(word); end <= len(s.b) && string(s.b[i:end]) == word {
		return end
	}
	return s.broken(i, word)
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
	return s.fraction(i)
}

// fraction takes what may follow the digits before the point.
func (s *Scanner) fraction(i int) int {
	b := s.b
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
	end := run(s.b, i)
	if end == i {
		return s.stop(i)
	}
	return end
}

// run is the first offset at or after i that holds no digit.
func run(b []byte, i int) int {
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	return i
}
