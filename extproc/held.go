package extproc

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/eventstream"
	"github.com/crossdoor/crossdoor/rewrite/messages"
	"github.com/crossdoor/crossdoor/rewrite/sse"
)

// held is an answer that is being judged: what came of it so far and when it is
// due. It does no I/O.
type held struct {
	answer    policy.Answer
	headers   []field
	streaming bool // a 200 of events, held until its first content
	parser    sse.Parser
	conv      *conversion // the client gets the body in another form
	secrets   []string    // of the attempt
	body      []byte      // of an error, up to maxErrorBody
	whole     bool        // the body is all here
	size      int64       // bytes seen

	limit      int64     // limits.hold
	lastByte   time.Time // when something last came
	firstToken time.Time // streams fail then
	holdEnds   time.Time // streams that show life are released then
	alive      time.Duration
	bodyDue    time.Time // errors are classified then by what is there

	outcome *policy.Outcome // of a stream that failed by itself
	asIs    string          // why a stream was released without a commit, for the metric
}

// newHeld reads the headers of attempt a's answer. x.mu is held.
func newHeld(req *wire.Request, x *exchange, a *policy.Attempt) held {
	now := time.Now()
	h := held{limit: x.policy.Limits.Hold, bodyDue: now.Add(errorBodyWait)}
	h.headers = make([]field, 0, len(req.Headers))
	for _, f := range req.Headers {
		h.headers = append(h.headers, field{Name: string(f.Name), Value: string(f.Value)})
	}
	status, _ := strconv.Atoi(h.header(":status"))
	h.answer = policy.Answer{
		Status:      status,
		Local:       h.header(names.Local),
		ContentType: h.header("content-type"),
		Header:      h.header,
		Platform:    x.target(a).Platform,
		Original:    x.original(a),
	}
	h.conv = newConversion(&h, x, a)
	h.streaming = h.provider() && status == http.StatusOK && !h.opaque() && (isType(h.answer.ContentType, typeSSE) || h.conv != nil && !h.conv.counting)
	h.firstToken = a.Start.Add(x.run.Plan.FirstToken(a.Place))
	if h.counting() {
		h.bodyDue = a.Start.Add(x.run.Plan.AttemptTimeout(a.Place))
	}
	hold := x.run.Plan.Hold(a.Place)
	h.holdEnds, h.alive = now.Add(hold), aliveWithin(hold)
	return h
}

func (h *held) header(name string) string {
	for i := range h.headers {
		if h.headers[i].Name == name {
			return h.headers[i].Value
		}
	}
	return ""
}

// provider reports whether the platform answered, not Envoy in its place.
func (h *held) provider() bool { return fromProvider(h.answer.Local) }

// passable reports whether the answer may go to the client although it failed:
// the platform gave it and it is all that it is going to be.
func (h *held) passable() bool { return h.provider() && h.outcome == nil }

// aliveWithin is how young the last byte of a held stream must be, when its hold
// ends, for it to be released: 20 s (contract, timeouts.hold). Of a hold that is
// no longer than that the first fifth does not count, as of the default of 25 s:
// else a message_start alone would pass for life.
func aliveWithin(hold time.Duration) time.Duration {
	const alive = 20 * time.Second
	if hold > alive {
		return alive
	}
	return hold * 4 / 5
}

// opaque reports whether the body cannot be read although identity was asked
// for: it passes as it is.
func (h *held) opaque() bool {
	e := h.header("content-encoding")
	return e != "" && !strings.EqualFold(e, "identity")
}

// first judges by the headers alone.
func (h *held) first(end bool) verdict {
	h.whole = end
	switch {
	case !h.provider():
		return failed
	case h.streaming && end:
		return h.ended()
	case h.streaming:
		return undecided
	case h.counting() && !end:
		return undecided
	case h.unreadable():
		return failed
	case h.answer.Status == http.StatusOK && policy.Classify(h.answer, time.Now()).Kind == config.KindOK:
		return release
	case h.answer.Status == http.StatusOK || end:
		return failed
	}
	return undecided
}

// feed takes the next bytes.
func (h *held) feed(c chunk) verdict {
	h.size += int64(len(c.body))
	if len(c.body) > 0 {
		h.lastByte = time.Now()
	}
	h.whole = c.last
	switch {
	case h.counting():
		return h.feedCount(c)
	case h.conv != nil:
		return h.feedConverted(c)
	case h.streaming:
		return h.feedStream(c)
	}
	if room := maxErrorBody - len(h.body); room > 0 {
		h.body = append(h.body, c.body[:min(room, len(c.body))]...)
	}
	if c.last || h.size >= maxErrorBody {
		h.readError()
		return failed
	}
	return undecided
}

func (h *held) feedStream(c chunk) verdict {
	v := undecided
	err := h.parser.Feed(c.body, func(e sse.Event) bool {
		step, failure := messages.Read(e.Name, e.Data)
		switch step {
		case messages.StepContent, messages.StepStop:
			v = release
		case messages.StepError:
			h.answer.Stream = true
			h.failedWith(failure)
			v = failed
		default:
			return true
		}
		return false
	})
	return h.undecidedYet(v, err, c.last)
}

// undecidedYet is v, or what bounds a held stream that has not decided itself.
func (h *held) undecidedYet(v verdict, err error, last bool) verdict {
	switch {
	case v != undecided:
		return v
	case err != nil || h.size > h.limit:
		h.asIs = "size"
		return release
	case last:
		return h.ended()
	}
	return undecided
}

// feedConverted is feedStream for AWS's framing.
func (h *held) feedConverted(c chunk) verdict {
	v := undecided
	h.conv.take(c, func(e eventstream.Event) {
		switch {
		case v != undecided:
		case e.Step == messages.StepContent, e.Step == messages.StepStop:
			v = release
		case e.Step == messages.StepError && h.conv.stream.Err() != nil:
			h.brokeOff("corrupt_stream")
			v = failed
		case e.Step == messages.StepError:
			h.answer.Stream = true
			h.failedWith(e.Err)
			v = failed
		}
	})
	return h.undecidedYet(v, nil, c.last)
}

// counting: the answer is a count of tokens, to be converted as a whole.
func (h *held) counting() bool { return h.conv != nil && h.conv.counting }

func (h *held) feedCount(c chunk) verdict {
	h.conv.take(c, nil)
	switch {
	case c.last:
		return release
	case h.size > maxErrorBody:
		o := policy.OutcomeOf(config.KindServerError, "no_token_count")
		h.outcome = &o
		return failed
	}
	return undecided
}

// unreadable: the answer would have to be converted and has a coding that was
// not asked for.
func (h *held) unreadable() bool {
	if h.answer.Status != http.StatusOK || !h.opaque() || !isType(h.answer.ContentType, typeEventStream) {
		return false
	}
	o := policy.OutcomeOf(config.KindServerError, "content_encoding")
	h.outcome = &o
	return true
}

// ended is a stream that closed before it had any content.
func (h *held) ended() verdict {
	h.brokeOff("ended_before_content")
	return failed
}

// brokeOff is the outcome of a stream whose platform ended it, or sent what
// cannot be read, before it had any content: no answer that could be passed on.
func (h *held) brokeOff(reason string) {
	o := policy.OutcomeOf(config.KindConnection, reason)
	o.Status = h.answer.Status
	h.outcome = &o
}

// readError reads the error object of what is there of the body. AWS names its
// exceptions in a header, which goes before what the body says (platform
// reference, 5.7).
func (h *held) readError() {
	said := messages.ParseError(h.answer.ContentType, h.readable())
	if name := messages.AWSType(h.header("x-amzn-errortype")); name != "" && said.Envelope != messages.EnvelopeAnthropic {
		said.Envelope, said.Type = messages.EnvelopeAWS, name
	}
	h.failedWith(said)
}

// readable is the error body without the coding that some platforms use although
// none was asked for.
func (h *held) readable() []byte {
	return rewrite.Readable(h.header("content-encoding"), h.body, maxErrorBody)
}

// hide names what an error of this answer must not repeat in Crossdoor's words.
func (h *held) hide(secrets []string) {
	h.secrets = secrets
	if h.conv != nil {
		h.conv.secrets = secrets
	}
}

func (h *held) failedWith(e messages.ErrorBody) {
	h.answer.Envelope = envelopes[e.Envelope]
	h.answer.ErrorType, h.answer.ErrorCode = e.Type, e.Code
	h.answer.Message = string(withoutSecrets([]byte(e.Message), h.secrets))
	h.answer.RetryDelay = e.RetryDelay
}

var envelopes = map[messages.Envelope]policy.Envelope{
	messages.EnvelopeNone:      policy.EnvelopeNone,
	messages.EnvelopeAnthropic: policy.EnvelopeAnthropic,
	messages.EnvelopeAWS:       policy.EnvelopeAWS,
	messages.EnvelopeGoogle:    policy.EnvelopeGoogle,
	messages.EnvelopeAzure:     policy.EnvelopeAzure,
}

// due is when expired wants to be asked next.
func (h *held) due() time.Time {
	if !h.streaming {
		return h.bodyDue
	}
	if h.holdEnds.Before(h.firstToken) {
		return h.holdEnds
	}
	return h.firstToken
}

// expired judges at a moment at which something was due.
func (h *held) expired(now time.Time) verdict {
	if !h.streaming {
		if now.Before(h.bodyDue) {
			return undecided
		}
		if h.counting() {
			o := policy.OutcomeOf(config.KindTimeout, "body")
			h.outcome = &o
			return failed
		}
		h.readError()
		return failed
	}
	if !now.Before(h.firstToken) {
		o := policy.OutcomeOf(config.KindTimeout, "first_token")
		o.Status = h.answer.Status
		h.outcome = &o
		return failed
	}
	if now.Before(h.holdEnds) {
		return undecided
	}
	if now.Sub(h.lastByte) <= h.alive {
		h.asIs = "hold"
		return release
	}
	h.holdEnds = time.Unix(math.MaxInt32, 0) // silent: held on until the first token is due
	return undecided
}

// result is what the attempt came to, once it failed.
func (h *held) result(now time.Time) policy.Outcome {
	if h.outcome != nil {
		return *h.outcome
	}
	return classify(h.answer, now)
}

// The media types that tell answers apart.
const (
	typeJSON        = "application/json"
	typeSSE         = "text/event-stream"
	typeEventStream = "application/vnd.amazon.eventstream"
)

// isType reports whether a content-type is of a media type, parameters aside.
func isType(contentType, want string) bool {
	return len(contentType) >= len(want) && strings.EqualFold(contentType[:len(want)], want)
}
