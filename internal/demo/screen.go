package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Display is how the tour is shown.
type Display uint8

// Plain writes lines, each once. Live is for terminals: colours, and lines that
// change while something runs.
const (
	Plain Display = iota
	Live
)

// maxWidth is the longest line in characters; rows are made for 80.
const maxWidth = 100

// unlimited is room for lines that are not cut: a command must stay whole.
const unlimited = 1 << 20

// redrawEvery is often enough to look alive.
const redrawEvery = 80 * time.Millisecond

// colour is what a terminal is told before a text.
type colour string

const (
	noColour colour = ""
	bold     colour = "\x1b[1m"
	faint    colour = "\x1b[2m"
	red      colour = "\x1b[31m"
	green    colour = "\x1b[32m"
	yellow   colour = "\x1b[33m"
	reset           = "\x1b[0m"
)

// cell is a piece of a line in one colour.
type cell struct {
	colour colour
	text   string
}

// line is one line of the screen.
type line []cell

func text(format string, args ...any) line { return line{{noColour, fmt.Sprintf(format, args...)}} }

// left and right pad a text to a width.
func left(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func right(s string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
}

// wrap breaks a text between words into lines of at most width characters; a
// longer word has a line of its own.
func wrap(s string, width int) []string {
	var lines []string
	for word := range strings.FieldsSeq(s) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// screen writes lines for good, and below them a region that is drawn again and
// again. It is safe for concurrent use.
type screen struct {
	w       io.Writer
	display Display
	width   int

	mu    sync.Mutex
	err   error         // the first one of writing
	draw  func() []line // nil when there is no region
	drawn int           // lines of the region that are on the screen
}

func newScreen(w io.Writer, d Display, width int) *screen {
	if width <= 0 || width > maxWidth {
		width = maxWidth
	}
	return &screen{w: w, display: d, width: width}
}

// print writes lines that stay.
func (s *screen) print(lines ...line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	s.erase(&b)
	for _, l := range lines {
		s.write(&b, l, unlimited)
	}
	s.region(&b)
	s.flush(&b)
}

// during shows draw's lines below everything else until the returned function is
// called; a plain screen shows nothing. There is one region at a time.
func (s *screen) during(draw func() []line) (end func()) {
	if s.display == Plain {
		return func() {}
	}
	s.mu.Lock()
	s.draw = draw
	s.mu.Unlock()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(redrawEvery)
		defer tick.Stop()
		for {
			s.print()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() {
			close(stop)
			<-stopped
			s.mu.Lock()
			s.draw = nil
			s.mu.Unlock()
			s.print()
		})
	}
}

// erase goes back to the region's first line and clears from there.
func (s *screen) erase(b *strings.Builder) {
	if s.drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dF\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *screen) region(b *strings.Builder) {
	if s.draw == nil {
		return
	}
	lines := s.draw()
	for _, l := range lines {
		s.write(b, l, s.width) // one that the terminal wraps would not be found again
	}
	s.drawn = len(lines)
}

// write is one line, cut when there is no room for it.
func (s *screen) write(b *strings.Builder, l line, room int) {
	var out strings.Builder
	for _, c := range l {
		runes := []rune(c.text)
		runes = runes[:min(len(runes), room)]
		room -= len(runes)
		switch {
		case len(runes) == 0:
		case s.display == Plain || c.colour == noColour:
			out.WriteString(string(runes))
		default:
			out.WriteString(string(c.colour) + string(runes) + reset)
		}
	}
	if s.display == Plain {
		b.WriteString(strings.TrimRight(out.String(), " "))
	} else {
		b.WriteString(out.String())
	}
	b.WriteByte('\n')
}

func (s *screen) flush(b *strings.Builder) {
	if b.Len() == 0 || s.err != nil {
		return
	}
	_, s.err = io.WriteString(s.w, b.String())
}

// failed is the first error of writing.
func (s *screen) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
