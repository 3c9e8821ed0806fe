package scan

// MaxDepth is the deepest nesting of objects and arrays that a Scanner accepts;
// the outermost counts as 1 (policy reference, fine print on bodies).
const MaxDepth = 512

// Span is a range of bytes, End exclusive.
type Span struct{ Start, End int }

// Len is the number of bytes in the span.
func (p Span) Len() int { return p.End - p.Start }

// Fault is the first thing that was wrong with the input.
type Fault uint8

// The faults. FaultEnd is an input that stops before its value is whole.
const (
	None Fault = iota
	FaultSyntax
	FaultEnd
	FaultDepth
	FaultUTF8
)

// String says what is wrong, for people; it never quotes the input.
func (f Fault) String() string {
	switch f {
	case FaultSyntax:
		return "unexpected character"
	case FaultEnd:
		return "ends too early"
	case FaultDepth:
		return "nested deeper than 512 levels"
	case FaultUTF8:
		return "not valid UTF-8"
	}
	return "no fault"
}

// Scanner walks one JSON text. The zero value is an empty text; Reset gives it
// one. It reads the bytes and never keeps a copy; they must not change while it
// is in use. It is for one goroutine.
type Scanner struct {
	b     []byte
	i     int
	depth int
	at    int
	fault Fault
	fresh bool // just after Open: the next member or element has no comma before it
	// open has the bracket of each level, from the outermost: for skip alone.
	open [MaxDepth]byte
}

// Reset makes s read b from its beginning.
func (s *Scanner) Reset(b []byte) {
	s.b, s.i, s.depth, s.at, s.fault, s.fresh = b, 0, 0, 0, None, false
}

// Pos is the offset of the next byte to be read.
func (s *Scanner) Pos() int { return s.i }

// Fault is the first fault met, and the offset at which it was met.
func (s *Scanner) Fault() (Fault, int) { return s.fault, s.at }

// Peek skips blanks and returns the byte that begins the next token, 0 at the
// end of the text or after a fault. (A zero byte in the text begins no token.)
func (s *Scanner) Peek() byte {
	if s.fault == None && s.i < len(s.b) && s.b[s.i] > ' ' {
		return s.b[s.i]
	}
	return s.peek()
}

// peek is Peek where there may be blanks.
func (s *Scanner) peek() byte {
	if s.fault != None {
		return 0
	}
	s.space()
	if s.i == len(s.b) {
		return 0
	}
	return s.b[s.i]
}

// Open enters the object ('{') or array ('[') that comes next.
func (s *Scanner) Open(bracket byte) bool {
	switch s.Peek() {
	case bracket:
		return s.push()
	case 0:
		return s.short()
	}
	return s.fail(FaultSyntax)
}

// Member goes to the next member of the object that is open and returns the
// span of its name, with its quotes; what comes next is the member's value, to
// be taken by Value, Open or String. At the closing brace it leaves the object
// and returns false, as it does after a fault.
func (s *Scanner) Member() (name Span, more bool) {
	if !s.step('}') {
		return Span{}, false
	}
	return s.key()
}

// Element goes to the next element of the array that is open; at the closing
// bracket it leaves the array and returns false, as it does after a fault.
func (s *Scanner) Element() bool { return s.step(']') }

// End checks that nothing but blanks is left.
func (s *Scanner) End() bool {
	if s.fault != None {
		return false
	}
	s.space()
	if s.i < len(s.b) {
		return s.fail(FaultSyntax)
	}
	return true
}

// String takes the string that comes next and returns its span with its quotes.
func (s *Scanner) String() (Span, bool) {
	switch s.Peek() {
	case '"':
	case 0:
		return Span{}, s.short()
	default:
		return Span{}, s.fail(FaultSyntax)
	}
	start := s.i
	end := s.text(start + 1)
	if end < 0 {
		return Span{}, false
	}
	s.i = end
	return Span{start, end}, true
}

// Value takes the whole value that comes next, whatever it is, and returns its
// span without blanks around it.
func (s *Scanner) Value() (Span, bool) {
	if s.Peek() == 0 {
		return Span{}, s.short()
	}
	start := s.i
	if !s.skip() {
		return Span{}, false
	}
	return Span{start, s.i}, true
}

// step passes the comma between two members or elements; false at the end of
// the container.
func (s *Scanner) step(closing byte) bool {
	c := s.Peek()
	fresh := s.fresh
	s.fresh = false
	switch {
	case c == 0:
		return s.short()
	case c == closing:
		s.i++
		s.depth--
		return false
	case fresh:
		return true
	case c == ',':
		s.i++
		return true
	}
	return s.fail(FaultSyntax)
}

// key takes a name and its colon.
func (s *Scanner) key() (Span, bool) {
	if b, i := s.b, s.i; i < len(b) && b[i] == '"' {
		if j := short(b, i+1); j+1 < len(b) && b[j] == '"' && b[j+1] == ':' {
			s.i = j + 2
			return Span{i, j + 1}, true
		}
	}
	name, ok := s.String()
	if !ok {
		return Span{}, false
	}
	switch s.Peek() {
	case ':':
		s.i++
		return name, true
	case 0:
		return Span{}, s.short()
	}
	return Span{}, s.fail(FaultSyntax)
}

// push enters a container. What it is need not be kept: Member and Element know.
func (s *Scanner) push() bool {
	if s.depth == MaxDepth {
		return s.fail(FaultDepth)
	}
	s.depth++
	s.i++
	s.fresh = true
	return true
}

func (s *Scanner) space() { s.i = past(s.b, s.i) }

func (s *Scanner) fail(f Fault) bool {
	if s.fault == None {
		s.fault, s.at = f, s.i
	}
	return false
}

// short is what a missing token is: the end of the text, or a zero byte.
func (s *Scanner) short() bool {
	if s.i < len(s.b) {
		return s.fail(FaultSyntax)
	}
	return s.fail(FaultEnd)
}
