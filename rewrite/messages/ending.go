package messages

import (
	"mime"
	"strings"

	"github.com/crossdoor/crossdoor/rewrite/scan"
	"github.com/crossdoor/crossdoor/rewrite/sse"
)

// Usage is the token counts of an answer.
type Usage struct {
	InputTokens              int64
	OutputTokens             int64
	CacheReadInputTokens     int64
	CacheCreationInputTokens int64
}

// Ending is how an answer ended: as its last bytes tell (ReadTail), or as all
// its events do (Add). "Seen" is among these.
type Ending struct {
	// Stop: the answer is whole: message_stop was there, or the JSON object ends.
	Stop       bool
	StopReason string     // "" when it was not seen
	Err        *ErrorBody // the last error event
	Usage      Usage      // counts that were not seen are 0
	HasUsage   bool
}

// ReadTail reads the last bytes of an answer, cut at the front anywhere, also
// inside a string. In an event stream it finds the events that are whole, and in
// the one that the cut went through what is left of it; in JSON the members of
// the outermost object, counted from its end, so that nothing that content
// repeats is taken for them. Other content types end in nothing.
func ReadTail(contentType string, tail []byte) Ending {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = strings.ToLower(contentType)
	}
	var e Ending
	switch {
	case media == "text/event-stream":
		e.readStream(tail)
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		e.Stop = backward(tail, e.member)
	}
	return e
}

func (e *Ending) readStream(tail []byte) {
	if line := firstLine(tail); len(line) > 0 {
		e.readCut(line)
	}
	p := sse.Parser{MaxEvent: len(tail) + 1}
	err := p.Feed(tail, func(event sse.Event) bool {
		if whole(event.Data) {
			e.Add(event.Name, event.Data)
		}
		return true
	})
	if err != nil { // cannot be: no event is longer than the tail
		*e = Ending{}
	}
}

// firstLine is the line that the cut may have gone through, without its end; ""
// when the tail is a single line.
func firstLine(tail []byte) []byte {
	for i, c := range tail {
		if c == '\n' || c == '\r' {
			return tail[:i]
		}
	}
	return nil
}

// readCut takes usage and stop reason from what is left of a data line. Only a
// message_delta has a usage of its own at the top.
func (e *Ending) readCut(line []byte) {
	var cutDelta Ending
	if backward(line, cutDelta.member) && cutDelta.HasUsage {
		e.Usage, e.HasUsage, e.StopReason = cutDelta.Usage, true, cutDelta.StopReason
	}
}

// Add takes the next event of a stream into account and says what it is, as
// Read does. Its data must be one JSON value.
func (e *Ending) Add(name, data []byte) (Step, ErrorBody) {
	step, said := Read(name, data)
	switch step {
	case StepError:
		kept := said
		e.Err = &kept
	case StepStop:
		e.Stop = true
	case StepStart:
		e.start(data)
	case StepContent:
		if eventType(data) == "message_delta" {
			backward(data, e.member)
		}
	}
	return step, said
}

// whole reports whether data is one JSON value: what the cut made may look like
// an event and is none.
func whole(data []byte) bool {
	var s scan.Scanner
	s.Reset(data)
	s.Value()
	return s.End()
}

// start takes the usage of message_start: {"message":{"usage":{…}}}.
func (e *Ending) start(data []byte) {
	backward(data, func(name, value []byte) {
		if string(name) == "message" {
			backward(value, func(name, value []byte) {
				if string(name) == "usage" {
					e.member(name, value)
				}
			})
		}
	})
}

// member takes one member of an answer, or of a message_delta.
func (e *Ending) member(name, value []byte) {
	switch string(name) {
	case "usage":
		e.HasUsage = e.Usage.read(value) || e.HasUsage
	case "stop_reason":
		if reason := text(value); reason != "" {
			e.StopReason = reason
		}
	case "delta":
		backward(value, func(name, value []byte) {
			if string(name) == "stop_reason" {
				e.member(name, value)
			}
		})
	}
}

// read takes the counts that an usage object states and leaves the others.
func (u *Usage) read(object []byte) (found bool) {
	var s scan.Scanner
	s.Reset(object)
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		value, ok := s.Value()
		if !ok {
			return found
		}
		n, counted := count(s.Bytes(value))
		if !counted {
			continue
		}
		found = true
		switch string(s.Text(key)) {
		case "input_tokens":
			u.InputTokens = n
		case "output_tokens":
			u.OutputTokens = n
		case "cache_read_input_tokens":
			u.CacheReadInputTokens = n
		case "cache_creation_input_tokens":
			u.CacheCreationInputTokens = n
		}
	}
	return found
}

func count(literal []byte) (n int64, ok bool) {
	for _, c := range literal {
		if c < '0' || c > '9' || n > 1<<50 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(literal) > 0
}

// text is the text of a short string value, else "".
func text(value []byte) string {
	var s scan.Scanner
	s.Reset(value)
	if s.Peek() != '"' {
		return ""
	}
	span, ok := s.String()
	if !ok || span.Len() > maxField {
		return ""
	}
	return string(s.Text(span))
}
