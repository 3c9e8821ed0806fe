package wire

import "google.golang.org/protobuf/encoding/protowire"

// Kind is the phase that a message is about. A Request never has KindImmediate;
// it has KindNone when Envoy sent a message without any of the phases.
type Kind uint8

// The phases, and the immediate answer which ends a request in any phase.
const (
	KindNone Kind = iota
	KindRequestHeaders
	KindResponseHeaders
	KindRequestBody
	KindResponseBody
	KindRequestTrailers
	KindResponseTrailers
	KindImmediate
)

var kindTexts = [...]string{
	KindNone:             "none",
	KindRequestHeaders:   "request headers",
	KindResponseHeaders:  "response headers",
	KindRequestBody:      "request body",
	KindResponseBody:     "response body",
	KindRequestTrailers:  "request trailers",
	KindResponseTrailers: "response trailers",
	KindImmediate:        "immediate response",
}

// String is the phase in words, for logs and errors.
func (k Kind) String() string {
	if int(k) < len(kindTexts) {
		return kindTexts[k]
	}
	return "unknown"
}

// kindOfField maps the oneof members of ProcessingRequest (fields 2 to 7).
func kindOfField(num protowire.Number) Kind { return Kind(num - 1) }

// answerField is the oneof member of ProcessingResponse (fields 1 to 7).
func (k Kind) answerField() protowire.Number { return protowire.Number(k) }

func (k Kind) isHeaders() bool  { return k == KindRequestHeaders || k == KindResponseHeaders }
func (k Kind) isBody() bool     { return k == KindRequestBody || k == KindResponseBody }
func (k Kind) isTrailers() bool { return k == KindRequestTrailers || k == KindResponseTrailers }
