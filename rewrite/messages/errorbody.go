package messages

import (
	"bytes"
	"mime"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/rewrite/scan"
	"github.com/crossdoor/crossdoor/rewrite/sse"
)

// Envelope is the shape of an error body: whose it is. A body in no envelope
// comes from something in between (a CDN, a proxy).
type Envelope uint8

// The envelopes.
const (
	EnvelopeNone      Envelope = iota
	EnvelopeAnthropic          // {"type":"error","error":{"type","message","details"},"request_id"}
	EnvelopeAWS                // {"message"}, perhaps with __type or code
	EnvelopeGoogle             // {"error":{"code":429,"message","status","details"}}, perhaps in an array
	EnvelopeAzure              // {"error":{"code":"401","message"}} or {"statusCode":401,"message"}
)

// String is the envelope's name in logs.
func (e Envelope) String() string {
	switch e {
	case EnvelopeAnthropic:
		return "anthropic"
	case EnvelopeAWS:
		return "aws"
	case EnvelopeGoogle:
		return "google"
	case EnvelopeAzure:
		return "azure"
	}
	return "none"
}

// ErrorBody is what an error body says. Message is the platform's own text and
// may quote the request: it goes to classification, and elsewhere only through
// Redact.
type ErrorBody struct {
	Envelope Envelope
	// Type is error.type (Anthropic), error.status (Google), or the exception of
	// the body (AWS; the header x-amzn-errortype has precedence and is the
	// caller's to read, see AWSType).
	Type string
	// Code is error.details.error_code (Anthropic), error.code (Google, Azure),
	// code (AWS), or statusCode (Azure).
	Code      string
	Message   string
	RequestID string
	// RetryDelay is Google's RetryInfo; 0 is none.
	RetryDelay time.Duration
}

// maxField bounds what is kept of any field but the message, which may be as
// long as the body.
const maxField = 256

// ParseError reads an error body by its envelope. A body that is cut says what
// it said until then. Only the error object itself counts, never text of the
// request that a message or another member repeats. An event stream's body is
// its first error event. HTML and everything else that is not JSON is in no
// envelope, whatever words it has.
func ParseError(contentType string, body []byte) ErrorBody {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = strings.ToLower(contentType)
	}
	switch {
	case strings.HasPrefix(media, "text/html"):
		return ErrorBody{}
	case media == "text/event-stream":
		return firstErrorEvent(body)
	}
	body = bytes.TrimLeft(body, " \t\r\n")
	if len(body) > 0 && body[0] == '[' { // Google wraps errors of streaming routes
		var s scan.Scanner
		s.Reset(body)
		if s.Open('['); !s.Element() || s.Peek() != '{' {
			return ErrorBody{}
		}
		found := parseObject(body[s.Pos():])
		if found.Envelope != EnvelopeGoogle {
			return ErrorBody{}
		}
		return found
	}
	return parseObject(body)
}

func firstErrorEvent(body []byte) (found ErrorBody) {
	var p sse.Parser
	err := p.Feed(body, func(e sse.Event) bool {
		step, said := Read(e.Name, e.Data)
		if step == StepError {
			found = said
		}
		return step != StepError
	})
	if err != nil {
		return ErrorBody{}
	}
	return found
}

// AWSType is the exception named by an x-amzn-errortype header, or by __type or
// code in a body: the part after '#' and before ':'.
func AWSType(value string) string {
	if _, after, ok := strings.Cut(value, "#"); ok {
		value = after
	}
	value, _, _ = strings.Cut(value, ":")
	return strings.TrimSpace(value)
}
