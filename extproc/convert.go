package extproc

import (
	"strconv"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/rewrite/eventstream"
	"github.com/crossdoor/crossdoor/rewrite/messages"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// maxFrame is the longest frame of an event stream that is converted. An event
// goes back to Envoy in one piece, and Envoy crashes on one of about its
// listener's buffer, 16 MiB (seen with 1.37 and 1.40). What Bedrock sends is some
// kilobytes.
const maxFrame = 10 << 20

// conversion is a 200 whose body the client gets in another form, chunk by
// chunk: one reply each, to the end of the answer (envoy.md, rule 20).
type conversion struct {
	// counting: a small JSON object, converted as a whole; else AWS's event stream.
	counting bool
	stream   eventstream.Converter
	whole    []byte   // of a count, until it is here
	out      []byte   // converted and not yet sent
	pending  int      // chunks without a reply
	over     bool     // the platform's last chunk came
	secrets  []string // that an error event must not repeat
}

// lookFor is what the attempt's x-crossdoor-look says: put the judge in for the
// whole answer. "" is its ordinary place. x.mu is held.
func (x *exchange) lookFor(a *policy.Attempt) string {
	if x.spec(a).Converts(x.operation(), x.run.Plan.Request.Stream) {
		return names.LookConvert
	}
	return ""
}

// spec is the platform of attempt a.
func (x *exchange) spec(a *policy.Attempt) *platform.Spec {
	spec, _ := platform.Get(x.target(a).Platform)
	return spec
}

func (x *exchange) operation() platform.Operation { return platform.OperationOf(x.client.path) }

// newConversion is that of the answer whose headers h holds, nil when it passes
// as it is. x.mu is held.
func newConversion(h *held, x *exchange, a *policy.Attempt) *conversion {
	if !h.provider() || h.answer.Status != 200 || h.opaque() {
		return nil
	}
	spec := x.spec(a)
	switch {
	case spec.Wraps(x.operation()) && isType(h.answer.ContentType, typeJSON):
		return &conversion{counting: true}
	case spec.Stream == platform.EventStream && isType(h.answer.ContentType, typeEventStream):
		return &conversion{stream: eventstream.Converter{MaxPayload: maxFrame}}
	}
	return nil
}

// take converts the next chunk; each is told of every event of a stream.
func (c *conversion) take(in chunk, each func(eventstream.Event)) {
	c.pending++
	c.over = c.over || in.last
	switch {
	case !c.counting:
		from := len(c.out)
		c.out, _ = c.stream.Convert(c.out, in.body, each)
		if c.stream.Account().Err != nil {
			c.out = append(c.out[:from], withoutSecrets(c.out[from:], c.secrets)...)
		}
		if in.last {
			c.out = c.stream.End(c.out)
		}
	case in.last:
		c.whole = append(c.whole, in.body...)
		c.out = c.whole
		if counted, err := platform.CountAnswer(c.whole); err == nil {
			c.out = counted
		}
	default:
		c.whole = append(c.whole, in.body...)
	}
}

// headers are what the converted answer's headers get.
func (c *conversion) headers() (set []field, remove []string) {
	remove = []string{"content-length"}
	if c.counting {
		return []field{{Name: names.Length, Value: strconv.Itoa(len(c.out))}}, remove
	}
	return []field{{Name: "content-type", Value: "text/event-stream; charset=utf-8"}}, append(remove, "x-amzn-bedrock-content-type")
}

// reply fills out with the answer to the oldest chunk without one. What is
// converted is spread over the chunks that wait, so that no piece is larger than
// need be.
func (c *conversion) reply(out *wire.Response) {
	out.Reset()
	out.Kind = wire.KindResponseBody
	n := (len(c.out) + c.pending - 1) / c.pending
	c.pending--
	if n == 0 {
		out.ClearBody = true
		return
	}
	out.Body = wire.NewBuffer(n)
	copy(out.Body.Bytes(), c.out)
	c.out = c.out[:copy(c.out, c.out[n:])]
}

// convert answers the headers and then every chunk, to the end of the answer.
func (j *judgeSession) convert(meta []field) error {
	c := j.held.conv
	var out wire.Response
	out.Kind, out.Meta = wire.KindResponseHeaders, meta
	out.Set, out.Remove = c.headers()
	if err := j.stream.Send(&out); err != nil {
		return err
	}
	j.letGo() // what follows goes on as it comes
	for {
		var last []field
		if c.over {
			last = j.account()
		}
		for c.pending > 0 {
			c.reply(&out)
			if c.pending == 0 {
				out.Meta = last
			}
			if err := j.stream.Send(&out); err != nil {
				return err
			}
		}
		if c.over {
			return nil
		}
		in, ok := <-j.chunks.c
		if !ok {
			return nil // cut: by the platform or the client
		}
		c.take(in, nil)
		j.chunks.done()
	}
}

// account tells the exchange how a converted stream ended: what the access log
// has of it is AWS's framing. It returns what the replica that planned has to know
// of it, where that is another one.
func (j *judgeSession) account() []field {
	if j.held.conv.counting {
		return nil
	}
	x := j.x
	x.mu.Lock()
	defer x.mu.Unlock()
	x.converted = &convertedEnd{n: j.n, ending: j.held.conv.stream.Account()}
	if a := x.now(); a != nil && a.N == j.n {
		return x.stateIfJoined(a)
	}
	return nil
}

// learnEnd takes what another replica's judge found out about a converted answer
// from the exchange's entry. x.mu is held.
func (x *exchange) learnEnd(e *entry) {
	if x.converted != nil || x.run == nil || x.run.Last() == nil || x.lookFor(x.run.Last()) == "" {
		return
	}
	if c := readState(e.state); c != nil {
		x.converted = c.Ended.end()
	}
}

// convertedElsewhere reports whether attempt a's answer was a stream that another
// replica converted, which has not told how it ended. x.mu is held.
func (x *exchange) convertedElsewhere(a *policy.Attempt) bool {
	return x.judged && x.converted == nil && !x.opaque && x.lookFor(a) != ""
}

// convertedEnd is how the converted answer of attempt n ended.
type convertedEnd struct {
	n      int
	ending messages.Ending
}
