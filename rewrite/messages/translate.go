package messages

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

// MaxClientMessage is how many bytes of a platform's message a client is told.
const MaxClientMessage = 4 << 10

// Translate puts an error answer of any platform into the client's schema.
// header returns a response header by its lower-case name and may be nil. An
// answer that speaks the schema already is returned as it is, and so is one with
// a content coding, which cannot be read, and a 2xx of JSON or of events. When
// changed, out is the caller's own and application/json; the caller sets the
// headers that go with it. body may be cut: it says what it said until then.
//
// The status stays the platform's, except where it would make clients retry
// what must not be, or not what may (platform reference, sections 5.7 and 10):
//
//	ThrottlingException                   any     -> 429 rate_limit_error
//	ServiceQuotaExceededException         400     -> 402 billing_error
//	ModelNotReadyException                429     -> 529 overloaded_error
//	ModelErrorException, ModelStreamError 424     -> 500 api_error
//	a backend that gave up                424 499 -> 500 api_error
//	a redirect, a 2xx of something else   2xx 3xx -> 502 api_error
//
// A 403 about the platform's credential stays one: a 401 makes SDKs refresh the
// client's.
func Translate(status int, contentType string, header func(name string) string, body []byte) (newStatus int, out []byte, changed bool) {
	if header == nil {
		header = func(string) string { return "" }
	}
	if coding := header("content-encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return status, body, false
	}
	if status >= 200 && status < 300 && isAnswer(contentType) {
		return status, body, false
	}
	said := ParseError(contentType, body)
	if status >= 400 && speaksSchema(said, body) {
		return status, body, false
	}
	if said.Message == "" {
		said.Message = plainMessage(contentType, body)
	}
	exception := AWSType(header("x-amzn-errortype"))
	if exception == "" {
		exception = said.Type
	}
	newStatus, kind := translated(status, exception)
	if said.Envelope == EnvelopeAnthropic && snakeCase(said.Type) {
		kind = said.Type
	}
	message := ForClient(said.Message)
	if message == "" {
		message = fmt.Sprintf("The platform answered with status %d and no readable error message.", status)
	}
	return newStatus, EncodeError(kind, message, requestID(said, header)), true
}

// translated is the client's status and error type for a platform's.
func translated(status int, exception string) (newStatus int, kind string) {
	e := exceptionOf(exception)
	switch {
	case e.status != 0:
		status = e.status
	case status < 400:
		status = 502
	case status == 424, status == 499:
		status = 500
	}
	if e.kind != "" {
		return status, e.kind
	}
	return status, TypeForStatus(status)
}

// isAnswer reports whether a 2xx of this type can be what the client asked for.
func isAnswer(contentType string) bool {
	switch media, _, _ := mime.ParseMediaType(contentType); media {
	case "application/json", "text/event-stream", "application/vnd.amazon.eventstream":
		return true
	}
	return false
}

// speaksSchema reports whether body, which says said, is the client's own error
// object. Servers that imitate it name their own classes ("BadRequestError").
func speaksSchema(said ErrorBody, body []byte) bool {
	f := readObject(body)
	return said.Envelope == EnvelopeAnthropic && f.outer.kind.text == "error" && snakeCase(said.Type)
}

func snakeCase(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return name != ""
}

// plainMessage is the message of a body in no envelope: a member of this name,
// an error that is a string, or text as such.
func plainMessage(contentType string, body []byte) string {
	switch media, _, _ := mime.ParseMediaType(contentType); {
	case media == "text/plain":
		return string(bytes.TrimSpace(body[:min(len(body), scanned)]))
	case media == "", media == "application/json", strings.HasSuffix(media, "+json"):
		f := readObject(body)
		for _, m := range []field{f.inner.message, f.errorText, f.outer.message} {
			if m.string && m.text != "" {
				return m.text
			}
		}
	}
	return ""
}

// ForClient is a platform's message as a client may read it: valid UTF-8, cut at
// MaxClientMessage, credentials replaced by [redacted] (AWS answers a wrong
// signature with the canonical request, session token and all), markup "".
func ForClient(message string) string {
	message = strings.TrimSpace(strings.ToValidUTF8(message[:min(len(message), scanned)], ""))
	if strings.HasPrefix(message, "<") {
		return ""
	}
	message = secrets.ReplaceAllString(message, redacted)
	if len(message) <= MaxClientMessage {
		return message
	}
	n := MaxClientMessage
	for !utf8.RuneStart(message[n]) {
		n--
	}
	return message[:n]
}

// requestID is what the platform calls the request.
func requestID(said ErrorBody, header func(string) string) string {
	for _, id := range []string{said.RequestID, header("request-id"), header("x-amzn-requestid"), header("apim-request-id")} {
		if id != "" && len(id) <= maxField {
			return id
		}
	}
	return ""
}
