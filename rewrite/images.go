package rewrite

import (
	"bytes"

	"github.com/crossdoor/crossdoor/rewrite/scan"
)

// The walk over messages follows the schema (messages, content, blocks, source)
// and nothing else: JSON in a tool's input that looks like an image is not one.
// Whatever does not have the expected shape is skipped; the platform judges it.
// Recursion is bounded by the scanner's depth.

// messages takes the value of "messages" and returns the decoded size of the
// largest base64 image in it.
func messages(s *scan.Scanner) (largest int64) {
	if s.Peek() != '[' {
		s.Value()
		return 0
	}
	s.Open('[')
	for s.Element() {
		if s.Peek() != '{' {
			s.Value()
			continue
		}
		s.Open('{')
		for key, more := s.Member(); more; key, more = s.Member() {
			if s.Is(key, "content") {
				largest = max(largest, blocks(s))
			} else {
				s.Value()
			}
		}
	}
	return largest
}

// blocks takes a content value: a string, or an array of blocks.
func blocks(s *scan.Scanner) (largest int64) {
	if s.Peek() != '[' {
		s.Value()
		return 0
	}
	s.Open('[')
	for s.Element() {
		if s.Peek() == '{' {
			largest = max(largest, block(s))
		} else {
			s.Value()
		}
	}
	return largest
}

// block takes one content block. Its type may come last, so sizes are kept
// until it is known.
func block(s *scan.Scanner) int64 {
	var kind string
	var data, inSource, inContent int64
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		switch {
		case s.Is(key, "type"):
			kind = word(s)
		case s.Is(key, "source") && s.Peek() == '{':
			data, inSource = source(s)
		case s.Is(key, "content"):
			inContent = blocks(s)
		default:
			s.Value()
		}
	}
	switch kind {
	case "image":
		return data
	case "tool_result":
		return inContent
	case "document":
		return inSource
	}
	return 0
}

// source takes the source object of a block: the decoded size of its base64
// data, and the largest image in the blocks that it carries itself.
func source(s *scan.Scanner) (data, nested int64) {
	base64 := false
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		switch {
		case s.Is(key, "type"):
			base64 = word(s) == "base64"
		case s.Is(key, "data") && s.Peek() == '"':
			if text, ok := s.String(); ok {
				data = decoded(s.Raw(text))
			}
		case s.Is(key, "content"):
			nested = blocks(s)
		default:
			s.Value()
		}
	}
	if !base64 {
		data = 0
	}
	return data, nested
}

// word takes a value and returns it when it is one of the types that matter.
func word(s *scan.Scanner) string {
	if s.Peek() != '"' {
		s.Value()
		return ""
	}
	text, ok := s.String()
	if !ok {
		return ""
	}
	for _, w := range [...]string{"image", "tool_result", "document", "base64"} {
		if s.Is(text, w) {
			return w
		}
	}
	return ""
}

// decoded is how many bytes base64 text stands for. text is as in the body:
// some encoders write every slash as an escape of two bytes.
func decoded(text []byte) int64 {
	n := len(text)
	for n > 0 && len(text)-n < 2 && text[n-1] == '=' {
		n--
	}
	n -= bytes.Count(text, []byte{'\\'})
	return int64(n) * 3 / 4
}
