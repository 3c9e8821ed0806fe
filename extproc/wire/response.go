package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrResponse is wrapped by the errors for a Response which says something that
// the protocol has no place for; nothing was sent then.
var ErrResponse = errors.New("wire: the answer cannot be encoded")

// HeaderField is a header to set or a string to keep in the state. Names are
// lower case. Header values may be any bytes, all other text must be UTF-8.
type HeaderField struct {
	Name  string
	Value string
}

// Response is one ProcessingResponse. The zero value with a Kind lets the phase
// pass unchanged. Not safe for concurrent use; after Send it can be used again.
type Response struct {
	Kind Kind // the phase that is answered, or KindImmediate

	Set    []HeaderField // each replaces all values of that header, or adds it
	Remove []string      // headers to remove

	// Body with Replace, in a headers answer, is the whole body from here on
	// (CONTINUE_AND_REPLACE). Envoy drops content-length then, also one that this
	// answer sets: x-crossdoor-length carries it on. In a body answer it replaces the chunk, or the whole body where
	// it is buffered. It is sent in place. Send takes over the reference.
	Body    *Buffer
	Replace bool
	// HasBody replaces with an empty body when Body is nil.
	HasBody bool
	// ClearBody drops the chunk, in a body answer without Body.
	ClearBody bool

	// AskBody, in a headers answer, asks for the whole body (mode_override:
	// request headers SEND, response headers SKIP, request body BUFFERED,
	// response body NONE).
	AskBody         bool
	ClearRouteCache bool

	Immediate *Immediate    // with KindImmediate
	Meta      []HeaderField // dynamic metadata: strings in the namespace "crossdoor"
}

// Immediate ends the request with an answer of the service's own. The caller
// keeps what it points to.
type Immediate struct {
	Status  int // 200 to 599: Envoy ignores an answer with a lower status
	Headers []HeaderField
	Body    []byte // copied
	Details string // for Envoy's access log (RESPONSE_CODE_DETAILS)
}

// Reset empties the Response for the next message and keeps its lists' memory.
// It drops the reference to a Body that was not sent.
func (m *Response) Reset() {
	m.Body.Free()
	*m = Response{Set: m.Set[:0], Remove: m.Remove[:0], Meta: m.Meta[:0]}
}

// mutatesBody says whether the answer carries a body mutation.
func (m *Response) mutatesBody() bool { return m.Body != nil || m.HasBody || m.ClearBody }

// validate refuses what Envoy would refuse or silently ignore.
func (m *Response) validate() error {
	if m.Kind == KindNone || m.Kind > KindImmediate {
		return fmt.Errorf("%w: kind %d is no phase", ErrResponse, m.Kind)
	}
	if err := m.validateBody(); err != nil {
		return err
	}
	if m.AskBody && !m.Kind.isHeaders() {
		return fmt.Errorf("%w: AskBody in an answer to %s, only headers can ask", ErrResponse, m.Kind)
	}
	if m.ClearRouteCache && !m.Kind.isHeaders() && !m.Kind.isBody() {
		return fmt.Errorf("%w: ClearRouteCache in an answer to %s", ErrResponse, m.Kind)
	}
	if err := m.validateImmediate(); err != nil {
		return err
	}
	return m.validateText()
}

func (m *Response) validateBody() error {
	switch {
	case m.Replace && !m.Kind.isHeaders():
		return fmt.Errorf("%w: Replace in an answer to %s, only headers can be answered so", ErrResponse, m.Kind)
	case m.Replace && !m.mutatesBody():
		return fmt.Errorf("%w: Replace without a body", ErrResponse)
	case m.mutatesBody() && !m.Kind.isBody() && !m.Replace:
		return fmt.Errorf("%w: a body in an answer to %s without Replace", ErrResponse, m.Kind)
	case m.ClearBody && (m.Body != nil || m.HasBody):
		return fmt.Errorf("%w: both ClearBody and a body", ErrResponse)
	case m.Body != nil && m.Body.refs.Load() <= 0:
		return fmt.Errorf("%w: the body was freed before it was sent", ErrResponse)
	}
	return nil
}

func (m *Response) validateImmediate() error {
	if m.Kind != KindImmediate {
		if m.Immediate != nil {
			return fmt.Errorf("%w: Immediate in an answer to %s", ErrResponse, m.Kind)
		}
		return nil
	}
	if m.Immediate == nil {
		return fmt.Errorf("%w: an immediate response without Immediate", ErrResponse)
	}
	if s := m.Immediate.Status; s < 200 || s > 599 {
		return fmt.Errorf("%w: an immediate response with status %d", ErrResponse, s)
	}
	if len(m.Set)+len(m.Remove) > 0 {
		return fmt.Errorf("%w: Set or Remove beside Immediate, which has its own Headers", ErrResponse)
	}
	return nil
}

// validateText: one invalid string makes Envoy drop the whole message and the
// stream with it. Header values can be any bytes. The errors carry no values.
func (m *Response) validateText() error {
	for i := range m.Set {
		if !validName(m.Set[i].Name) {
			return fmt.Errorf("%w: the name of a header to set is empty or not UTF-8", ErrResponse)
		}
	}
	for _, name := range m.Remove {
		if !validName(name) {
			return fmt.Errorf("%w: the name of a header to remove is empty or not UTF-8", ErrResponse)
		}
	}
	for i := range m.Meta {
		if !validName(m.Meta[i].Name) || !utf8.ValidString(m.Meta[i].Value) {
			return fmt.Errorf("%w: metadata %q has no name or is not UTF-8", ErrResponse, m.Meta[i].Name)
		}
	}
	if m.Immediate == nil {
		return nil
	}
	for i := range m.Immediate.Headers {
		if !validName(m.Immediate.Headers[i].Name) {
			return fmt.Errorf("%w: the name of a header of the immediate response is empty or not UTF-8", ErrResponse)
		}
	}
	if !utf8.ValidString(m.Immediate.Details) {
		return fmt.Errorf("%w: the details of the immediate response are not UTF-8", ErrResponse)
	}
	return nil
}

func validName(s string) bool { return s != "" && utf8.ValidString(s) }
