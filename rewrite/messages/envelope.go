package messages

import (
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/rewrite/scan"
)

// fields are the members of an error body that any envelope knows.
type fields struct {
	outer struct{ kind, message, amzn, code, status, request field }
	inner struct{ kind, message, code, status, detail field }
	// hasError: there is an error object. errorText: the error is a string.
	hasError  bool
	errorText field
	retry     time.Duration
}

// field is a member's value: a string's text, or a number's literal.
type field struct {
	text   string
	string bool
	set    bool
}

// parseObject says what the object at the beginning of data says, as far as it
// goes.
func parseObject(data []byte) ErrorBody {
	f := readObject(data)
	return f.body()
}

func readObject(data []byte) (f fields) {
	var s scan.Scanner
	s.Reset(data)
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		switch {
		case s.Is(key, "error") && s.Peek() == '{':
			f.hasError = true
			f.readError(&s)
		case s.Is(key, "error"):
			f.errorText = take(&s, len(data))
		case s.Is(key, "type"):
			f.outer.kind = take(&s, maxField)
		case s.Is(key, "message"), s.Is(key, "Message"):
			f.outer.message = take(&s, len(data))
		case s.Is(key, "__type"):
			f.outer.amzn = take(&s, maxField)
		case s.Is(key, "code"):
			f.outer.code = take(&s, maxField)
		case s.Is(key, "statusCode"):
			f.outer.status = take(&s, maxField)
		case s.Is(key, "request_id"):
			f.outer.request = take(&s, maxField)
		default:
			s.Value()
		}
	}
	return f
}

func (f *fields) readError(s *scan.Scanner) {
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		switch {
		case s.Is(key, "type"):
			f.inner.kind = take(s, maxField)
		case s.Is(key, "message"):
			f.inner.message = take(s, 1<<30)
		case s.Is(key, "code"):
			f.inner.code = take(s, maxField)
		case s.Is(key, "status"):
			f.inner.status = take(s, maxField)
		case s.Is(key, "details") && s.Peek() == '{':
			f.readDetails(s)
		case s.Is(key, "details") && s.Peek() == '[':
			f.readRetry(s)
		default:
			s.Value()
		}
	}
}

// readDetails takes Anthropic's details: {"error_code": …}.
func (f *fields) readDetails(s *scan.Scanner) {
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		if s.Is(key, "error_code") {
			f.inner.detail = take(s, maxField)
		} else {
			s.Value()
		}
	}
}

// readRetry takes Google's details, of which RetryInfo matters:
// {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12.5s"}.
func (f *fields) readRetry(s *scan.Scanner) {
	s.Open('[')
	for s.Element() {
		if s.Peek() != '{' {
			s.Value()
			continue
		}
		var kind, delay field
		s.Open('{')
		for key, more := s.Member(); more; key, more = s.Member() {
			switch {
			case s.Is(key, "@type"):
				kind = take(s, maxField)
			case s.Is(key, "retryDelay"):
				delay = take(s, maxField)
			default:
				s.Value()
			}
		}
		if strings.HasSuffix(kind.text, "google.rpc.RetryInfo") {
			f.retry = seconds(delay.text)
		}
	}
}

// seconds reads the JSON form of a protobuf Duration, "12.5s"; 0 for anything
// else and for what is negative or beyond a day.
func seconds(text string) time.Duration {
	digits, ok := strings.CutSuffix(text, "s")
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n > 0 && n <= 86400) {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// take takes a value and keeps a string's text or a scalar's literal when it is
// no longer than limit.
func take(s *scan.Scanner, limit int) field {
	c := s.Peek()
	if c == '{' || c == '[' {
		s.Value()
		return field{}
	}
	if c != '"' {
		value, ok := s.Value()
		if !ok || c == 'n' || value.Len() > maxField {
			return field{}
		}
		return field{set: true, text: string(s.Bytes(value))}
	}
	text, ok := s.String()
	if !ok || text.Len() > limit {
		return field{}
	}
	return field{set: true, string: true, text: string(s.Text(text))}
}

// body tells whose envelope the fields make. The tests go from the most to the
// least particular shape.
func (f *fields) body() ErrorBody {
	switch {
	case f.hasError && f.inner.status.string && !f.inner.code.string:
		return ErrorBody{
			Envelope:   EnvelopeGoogle,
			Type:       f.inner.status.text,
			Code:       f.inner.code.text,
			Message:    f.inner.message.text,
			RetryDelay: f.retry,
		}
	case f.hasError && f.inner.kind.string && !f.inner.code.string:
		return ErrorBody{
			Envelope:  EnvelopeAnthropic,
			Type:      f.inner.kind.text,
			Code:      f.inner.detail.text,
			Message:   f.inner.message.text,
			RequestID: f.outer.request.text,
		}
	case f.hasError && f.inner.code.string:
		return ErrorBody{Envelope: EnvelopeAzure, Code: f.inner.code.text, Message: f.inner.message.text}
	case f.hasError:
		return ErrorBody{}
	case f.outer.status.set && f.outer.message.string:
		return ErrorBody{Envelope: EnvelopeAzure, Code: f.outer.status.text, Message: f.outer.message.text}
	case f.outer.message.string || f.outer.amzn.string:
		return f.aws()
	}
	return ErrorBody{}
}

// aws: the body's code comes before its __type, as in the AWS SDKs.
func (f *fields) aws() ErrorBody {
	found := ErrorBody{Envelope: EnvelopeAWS, Code: f.outer.code.text, Message: f.outer.message.text}
	for _, name := range []field{f.outer.code, f.outer.amzn} {
		if name.string && found.Type == "" {
			found.Type = AWSType(name.text)
		}
	}
	return found
}
