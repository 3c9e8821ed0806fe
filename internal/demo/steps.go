package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// step is one thing that the tour shows.
type step struct {
	title, short string // for its own place and for the table at the end
	model        string
	run          func(context.Context, *tour) error
}

// Times of the demo's policy and faults, as policy.yaml.tmpl and faults.go have
// them, and how much later a slow machine may be.
const (
	breakerWindow = 3 * time.Second
	keyCooldown   = 3 * time.Second
	firstToken    = time.Second
	margin        = 150 * time.Millisecond
	slow          = 3 * time.Second
)

// script is the tour.
var script = []step{
	{"Healthy: a message and a stream from the first target", "healthy", modelHealthy, healthy},
	{"529 at the primary: the next target answers", "529 at the primary", modelBusy, busy},
	{"429 with Retry-After: the key rests for that long", "429 with Retry-After", modelLimited, rateLimited},
	{"Connection refused: nobody listens at the primary", "connection refused", modelRefused, refused},
	{"A stream opens with 200, then errors: nobody notices", "stream: 200, then an error", modelError, streamError},
	{"A stream opens and stalls: no first token for a second", "stream: 200, then silence", modelStalled, stalled},
	{"A breaker opens after two failures, probes, closes", "breaker opens and closes", modelBreaker, breaker},
	{"A 400 is the request's own fault: not tried elsewhere", "400 is not failed over", modelBad, bad},
	{"The service is killed and restarted under a stream", "service restarted under a stream", modelRestart, restart},
	{"Everything fails: a clear answer at once", "everything failing", modelNothing, nothing},
}

// moved is what a request comes to that the first target failed.
func moved(outcome string) want {
	return want{
		status: 200, served: targetAWS, attempts: targetAnthropic + " " + outcome + ", " + targetAWS + " ok",
		outcome: trail.OutcomeFailedOver, took: span{0, slow},
	}
}

// direct is what a healthy request comes to.
var direct = want{status: 200, served: targetAnthropic, attempts: targetAnthropic + " ok", outcome: trail.OutcomeServed, took: span{0, slow}}

// around is what a request comes to while the first target is left out.
var around = want{
	status: 200, served: targetAWS, attempts: targetAWS + " ok", skipped: targetAnthropic + " ejected",
	outcome: trail.OutcomeFailedOver, took: span{0, slow},
}

// stopped is what the request that is its own fault comes to.
var stopped = want{
	status: 400, served: targetAnthropic, attempts: targetAnthropic + " invalid_request",
	outcome: trail.OutcomeStopped, errType: "invalid_request_error", took: span{0, slow},
}

// patient is what the stalled stream comes to.
func patient() want {
	w := moved("timeout")
	w.took = span{firstToken - margin, firstToken + slow}
	return w
}

// unreached is what the refused connection comes to.
func unreached() want {
	w := moved("connection")
	w.attempts = targetUnreachable + " connection, " + targetAWS + " ok"
	return w
}

// each is every target of the chain with the same word.
func each(word string) string {
	return fmt.Sprintf("%s %s, %s %s, %s %s", targetAnthropic, word, targetAWS, word, targetFoundry, word)
}

// exhausted is what a request comes to that every target fails: the last one's
// answer. noneLeft is what it comes to once all of them are left out.
var (
	exhausted = want{
		status: 529, served: targetFoundry, attempts: each("overloaded"),
		outcome: trail.OutcomeExhausted, errType: "overloaded_error", took: span{0, slow},
	}
	noneLeft = want{
		status: 529, skipped: each("ejected"), outcome: trail.OutcomeExhausted, errType: "overloaded_error",
		retryAfter: span{time.Second, breakerWindow}, took: span{0, slow},
	}
)

func healthy(ctx context.Context, t *tour) error {
	t.ask(ctx, modelHealthy, asJSON, direct)
	t.ask(ctx, modelHealthy, asStream, direct)
	return nil
}

func busy(ctx context.Context, t *tour) error {
	t.ask(ctx, modelBusy, asJSON, moved("overloaded"))
	return nil
}

func rateLimited(ctx context.Context, t *tour) error {
	t.ask(ctx, modelLimited, asJSON, moved("rate_limit"))
	since := time.Now()
	t.ask(ctx, modelLimited, asJSON, around)
	t.w.fakes[targetAnthropic].mend(modelLimited)
	if err := t.until(ctx, since.Add(keyCooldown+margin), "the Retry-After to pass"); err != nil {
		return err
	}
	t.ask(ctx, modelLimited, asJSON, direct)
	return nil
}

func refused(ctx context.Context, t *tour) error {
	t.ask(ctx, modelRefused, asJSON, unreached())
	return nil
}

func streamError(ctx context.Context, t *tour) error {
	t.ask(ctx, modelError, asStream, moved("overloaded"))
	return nil
}

func stalled(ctx context.Context, t *tour) error {
	t.ask(ctx, modelStalled, asStream, patient())
	return nil
}

func breaker(ctx context.Context, t *tour) error {
	for range 2 {
		t.ask(ctx, modelBreaker, asJSON, moved("overloaded"))
	}
	opened := time.Now()
	t.breaker(ctx, targetAnthropic, modelBreaker, operate.StateOpen)
	t.ask(ctx, modelBreaker, asJSON, around)
	t.w.fakes[targetAnthropic].mend(modelBreaker)
	if err := t.until(ctx, opened.Add(breakerWindow+margin), "the window to end; the target works again"); err != nil {
		return err
	}
	t.ask(ctx, modelBreaker, asJSON, direct)
	t.breaker(ctx, targetAnthropic, modelBreaker, operate.StateClosed)
	t.ask(ctx, modelBreaker, asJSON, direct)
	return nil
}

func bad(ctx context.Context, t *tour) error {
	t.ask(ctx, modelBad, asJSON, stopped)
	return nil
}

func restart(ctx context.Context, t *tour) error {
	gate := make(chan struct{})
	t.w.fakes[targetAnthropic].hold(gate)
	defer t.w.fakes[targetAnthropic].hold(nil)
	r := t.begin(ctx, modelRestart, asStream)
	err := t.killUnder(ctx, r)
	close(gate)
	t.finish(ctx, r, direct)
	if err != nil {
		return err
	}
	t.ask(ctx, modelRestart, asJSON, direct)
	return nil
}

var errNoWords = errors.New("the client does not have them yet")

// killUnder kills the service while the client reads r, and starts it again.
func (t *tour) killUnder(ctx context.Context, r *request) error {
	err := poll(ctx, slow, "the stream's first words at the client", func() error {
		if r.now().words() < wordsBeforeGate {
			return errNoWords
		}
		return nil
	})
	if err != nil {
		return err
	}
	pid := t.w.service.pid()
	t.w.service.kill()
	t.notef("kill -9 %d: the service is gone, the client has %d words", pid, r.now().words())
	if err := t.w.startService(); err != nil {
		return err
	}
	if err := t.w.waitService(ctx); err != nil {
		return err
	}
	if err := t.w.waitEnvoy(ctx); err != nil {
		return err
	}
	t.notef("started again as %d; the platform goes on with the stream", t.w.service.pid())
	return nil
}

func nothing(ctx context.Context, t *tour) error {
	for range 2 {
		t.ask(ctx, modelNothing, asJSON, exhausted)
	}
	t.ask(ctx, modelNothing, asJSON, noneLeft)
	return nil
}
