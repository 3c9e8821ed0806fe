package eventstream

import (
	"errors"

	"github.com/crossdoor/crossdoor/rewrite/messages"
	"github.com/crossdoor/crossdoor/rewrite/sse"
)

// ErrBadChunk is a frame with good checksums whose payload is not what Bedrock
// puts there: an event of the client's schema in base64.
var ErrBadChunk = errors.New("eventstream: a frame holds no event")

// ErrEnded is a stream that the platform ended without message_stop.
var ErrEnded = errors.New("eventstream: the stream ended before the message was complete")

// Event is an event that Convert appended. Name and Data are valid during the
// call that it is given to and must not be changed.
type Event struct {
	Step messages.Step // what it means for a held answer
	Name []byte
	Data []byte // one line of JSON
	// Err is what an error event says, for StepError alone: in AWS's envelope the
	// exception or error code as AWS spells it, in Anthropic's an event that the
	// model's layer sent, in none what this package found wrong.
	Err messages.ErrorBody
}

// Converter makes server-sent events of a Bedrock stream. The zero value is
// ready and expects the beginning of a stream. It is for one goroutine.
//
// An event is kept byte for byte, except that line breaks between its tokens
// become blanks and that Bedrock's own member, amazon-bedrock-invocationMetrics,
// is taken out. What has no type is a keep-alive and is dropped. Exceptions and
// errors of the platform, and whatever makes the stream unreadable, become one
// error event of the schema. After that, as after message_stop, nothing comes
// any more, whatever the platform sends.
type Converter struct {
	// MaxPayload is the longest payload of a frame in bytes; 0 is
	// DefaultMaxPayload.
	MaxPayload int

	parser  Parser
	inner   []byte // the event that a frame holds, decoded
	name    []byte // its type
	account messages.Ending
	done    bool
	err     error
}

// Convert takes the next bytes of the stream, appends to dst the events that
// they complete, and tells each of them, in order; each may be nil. done: the
// stream has had its last event. in is not kept and must not overlap dst. With
// room in dst nothing is allocated for an ordinary event.
func (c *Converter) Convert(dst, in []byte, each func(Event)) (out []byte, done bool) {
	if c.done {
		return dst, true
	}
	c.parser.MaxPayload = c.MaxPayload
	err := c.parser.Feed(in, func(f *Frame) bool {
		dst = c.frame(dst, f, each)
		return !c.done
	})
	if err != nil {
		dst = c.broken(dst, err, each)
	}
	return dst, c.done
}

// End takes the platform's end of the stream. When it comes before the last
// event, an error event that says so is appended to dst; the account does not
// count that one: the platform sent none.
func (c *Converter) End(dst []byte) []byte {
	if c.done {
		return dst
	}
	c.done, c.err = true, ErrEnded
	text := messages.EncodeError(messages.TypeAPI, "The platform ended the stream before the message was complete.", "")
	return sse.Append(dst, []byte("error"), text)
}

// Account is how the answer ended, by all events until now. Of token counts that
// no event states Bedrock's metrics are taken.
func (c *Converter) Account() messages.Ending { return c.account }

// Err is why the stream could not be converted to its end, one of this package's
// errors; nil for a stream that did not fail or that failed by an event of the
// platform.
func (c *Converter) Err() error { return c.err }

// frame appends what a frame comes to.
func (c *Converter) frame(dst []byte, f *Frame, each func(Event)) []byte {
	switch f.Kind {
	case KindEvent:
		if string(f.EventType) == "chunk" {
			return c.chunk(dst, f.Payload, each)
		}
		return dst // initial-response, and what is yet to come
	case KindException:
		said := messages.ParseError("application/json", f.Payload)
		return c.fail(dst, string(f.ExceptionType), said.Message, each)
	case KindError:
		return c.fail(dst, string(f.ErrorCode), string(f.ErrorMessage), each)
	}
	return c.broken(dst, ErrBadHeader, each)
}

// chunk appends the event that a chunk holds, if it does.
func (c *Converter) chunk(dst, payload []byte, each func(Event)) []byte {
	data, ok := c.decode(payload)
	var name []byte
	if ok && len(data) > 0 {
		name, data, ok = c.tidy(data)
	}
	switch {
	case !ok:
		return c.broken(dst, ErrBadChunk, each)
	case len(name) == 0:
		return dst
	}
	dst = sse.Append(dst, name, data)
	event := Event{Name: name, Data: dst[len(dst)-len("\n\n")-len(data) : len(dst)-len("\n\n")]}
	event.Step, event.Err = c.account.Add(event.Name, event.Data)
	c.done = event.Step == messages.StepStop || event.Step == messages.StepError
	if each != nil {
		each(event)
	}
	return dst
}

// fail appends an error that the platform reported, by AWS's name for it.
func (c *Converter) fail(dst []byte, name, message string, each func(Event)) []byte {
	text := messages.ForClient(message)
	if text == "" {
		text = "The platform ended the stream with an error."
	}
	said := messages.ErrorBody{Envelope: messages.EnvelopeAWS, Type: messages.AWSType(name), Message: message}
	return c.last(dst, messages.TypeForException(name), text, said, each)
}

// broken appends the error that an unreadable stream is.
func (c *Converter) broken(dst []byte, err error, each func(Event)) []byte {
	c.err = err
	const text = "The platform's stream could not be read: it is corrupt."
	return c.last(dst, messages.TypeAPI, text, messages.ErrorBody{Type: messages.TypeAPI, Message: text}, each)
}

// last appends the error event that ends the stream.
func (c *Converter) last(dst []byte, kind, text string, said messages.ErrorBody, each func(Event)) []byte {
	c.done, c.account.Err = true, &said
	event := Event{Step: messages.StepError, Name: []byte("error"), Data: messages.EncodeError(kind, text, ""), Err: said}
	if each != nil {
		each(event)
	}
	return sse.Append(dst, event.Name, event.Data)
}
