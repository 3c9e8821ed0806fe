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
	body      []byte // of an error, up to maxErrorBody
	whole     bool   // the body is all here
	size      int64  // bytes seen

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
		Original:    x.unchanged(a),
	}
	h.streaming = h.provider() && status == http.StatusOK && isEventStream(h.answer.ContentType) && !h.opaque()
	h.firstToken = a.Start.Add(x.run.Plan.FirstToken(a.Place))
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
	if h.streaming {
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
	switch {
	case v != undecided:
		return v
	case err != nil || h.size > h.limit:
		h.asIs = "size"
		return release
	case c.last:
		return h.ended()
	}
	return undecided
}

// ended is a stream that closed before it had any content.
func (h *held) ended() verdict {
	o := policy.OutcomeOf(config.KindConnection, "ended_before_content")
	o.Status = h.answer.Status
	h.outcome = &o
	return failed
}

// readError reads the error object of what is there of the body.
func (h *held) readError() { h.failedWith(messages.ParseError(h.answer.ContentType, h.body)) }

func (h *held) failedWith(e messages.ErrorBody) {
	h.answer.Envelope = envelopes[e.Envelope]
	h.answer.ErrorType, h.answer.ErrorCode, h.answer.Message = e.Type, e.Code, e.Message
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

func isEventStream(contentType string) bool {
	const want = "text/event-stream"
	return len(contentType) >= len(want) && strings.EqualFold(contentType[:len(want)], want)
}
