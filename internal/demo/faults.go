package demo

import (
	"fmt"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// fault is what one platform does to requests for one model.
type fault struct {
	target, model string
	answer        func() fakeplatform.Answer
}

// The short answers of platforms that fail.
var (
	overloaded = fakeplatform.Error(529, "Overloaded")
	outage     = fakeplatform.Error(503, "Service unavailable")
	limited    = fakeplatform.Error(429, "Number of request tokens has exceeded your per-minute rate limit",
		fakeplatform.Field{Name: "retry-after", Value: "3"})
	badRequest = fakeplatform.Error(400, "messages.0.content: Input should be a valid string")
)

// faults are all that go wrong in the demo; every other request is answered
// well. modelRefused is missing: its first target is not there at all.
var faults = []fault{
	{targetAnthropic, modelBusy, always(overloaded)},
	{targetAnthropic, modelLimited, always(limited)},
	{targetAnthropic, modelError, always(fakeplatform.Stream(
		fakeplatform.MessageStart("msg_demo_lost", modelError), fakeplatform.Ping(),
		fakeplatform.StreamError("overloaded_error", "Overloaded")))},
	{targetAnthropic, modelStalled, always(fakeplatform.Stream(
		fakeplatform.MessageStart("msg_demo_lost", modelStalled), fakeplatform.Ping()).Ending(fakeplatform.EndStall))},
	{targetAnthropic, modelBreaker, always(overloaded)},
	{targetAnthropic, modelBad, always(badRequest)},
	{targetAnthropic, modelNothing, always(overloaded)},
	{targetAWS, modelNothing, always(outage)},
	{targetFoundry, deploymentOut, always(overloaded)},
}

func always(a fakeplatform.Answer) func() fakeplatform.Answer {
	return func() fakeplatform.Answer { return a }
}

// good is what a healthy platform answers: a message, or a stream that takes a
// moment.
func good(target string, r fakeplatform.Request) fakeplatform.Answer {
	id := fmt.Sprintf("msg_demo_%s_%d", target, r.N)
	if !r.Stream {
		return fakeplatform.Message(id, r.Model, "hello from "+target)
	}
	parts := []fakeplatform.Part{
		{Data: fakeplatform.MessageStart(id, r.Model)},
		{Data: fakeplatform.BlockStart(0)},
		{Data: fakeplatform.Ping()},
	}
	for _, word := range []string{"hello ", "from ", target + ", ", "word ", "by ", "word"} {
		parts = append(parts, fakeplatform.Part{Wait: 40 * time.Millisecond, Data: fakeplatform.TextDelta(0, word)})
	}
	return fakeplatform.StreamOf(append(parts,
		fakeplatform.Part{Data: fakeplatform.BlockStop(0)},
		fakeplatform.Part{Data: fakeplatform.MessageDelta("end_turn")},
		fakeplatform.Part{Data: fakeplatform.MessageStop()},
	)...)
}

// gatePart is the part of a good stream that modelRestart is held back before:
// wordsBeforeGate words are out then.
const (
	wordsBeforeGate = 3
	gatePart        = 3 + wordsBeforeGate
)
