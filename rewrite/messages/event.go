package messages

import "github.com/crossdoor/crossdoor/rewrite/scan"

// Step is what one stream event means for an answer that is held.
type Step uint8

// The steps. StepNone neither begins, carries nor ends an answer (ping, unknown
// events, an empty content_block_start, content_block_stop).
const (
	StepNone    Step = iota
	StepStart        // message_start
	StepContent      // the first of these commits the answer
	StepStop         // message_stop: content too, and the answer is whole
	StepError        // an error event
)

// String is the step's name in logs.
func (s Step) String() string {
	switch s {
	case StepStart:
		return "start"
	case StepContent:
		return "content"
	case StepStop:
		return "stop"
	case StepError:
		return "error"
	}
	return "none"
}

// Read says what an event is. The data's own type counts; the event's name only
// where the data has none. Content is what the contract lists ("What happens to
// a request"): every content_block_delta, a content_block_start with text or of
// type tool_use, server_tool_use or redacted_thinking, message_delta and
// message_stop (as StepStop). A delta is known by its first member, so long ones
// cost nothing. The ErrorBody is filled for StepError alone.
func Read(name, data []byte) (Step, ErrorBody) {
	kind := eventType(data)
	if kind == "" {
		kind = eventName(name)
	}
	switch kind {
	case "content_block_delta", "message_delta":
		return StepContent, ErrorBody{}
	case "content_block_start":
		if startsContent(data) {
			return StepContent, ErrorBody{}
		}
	case "message_start":
		return StepStart, ErrorBody{}
	case "message_stop":
		return StepStop, ErrorBody{}
	case "error":
		return StepError, parseObject(data)
	}
	return StepNone, ErrorBody{}
}

// kinds are the event types that matter; "other" stands for all else.
var kinds = [...]string{"content_block_delta", "content_block_start", "message_delta", "message_start", "message_stop", "error"}

const other = "other"

func eventName(name []byte) string {
	for _, k := range kinds {
		if string(name) == k {
			return k
		}
	}
	return other
}

// eventType is the data's type member, "" when there is none. It stops at the
// member: in practice it is the first.
func eventType(data []byte) string {
	var s scan.Scanner
	s.Reset(data)
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		if !s.Is(key, "type") {
			s.Value()
			continue
		}
		if s.Peek() != '"' {
			return other
		}
		text, ok := s.String()
		if !ok {
			return ""
		}
		return eventName(s.Text(text))
	}
	return ""
}

// startsContent reports whether a content_block_start carries output.
func startsContent(data []byte) (content bool) {
	var s scan.Scanner
	s.Reset(data)
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		if !s.Is(key, "content_block") || s.Peek() != '{' {
			s.Value()
			continue
		}
		s.Open('{')
		for key, more := s.Member(); more; key, more = s.Member() {
			content = blockMember(&s, key) || content
		}
	}
	return content
}

func blockMember(s *scan.Scanner, key scan.Span) bool {
	isType, isText := s.Is(key, "type"), s.Is(key, "text")
	if s.Peek() != '"' || (!isType && !isText) {
		s.Value()
		return false
	}
	value, ok := s.String()
	if !ok {
		return false
	}
	if isText {
		return len(s.Raw(value)) > 0
	}
	return s.Is(value, "tool_use") || s.Is(value, "server_tool_use") || s.Is(value, "redacted_thinking")
}
