package extproc

import (
	"strconv"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

const (
	// maxErrorBody is how much of an error body is read to classify it.
	maxErrorBody = 64 << 10
	// errorBodyWait is how long an error body may stall before it is classified
	// by what is there (envoy.md, rule 14).
	errorBodyWait = 2 * time.Second
)

// verdict is what a judge makes of what it has seen so far.
type verdict uint8

const (
	undecided verdict = iota
	release           // let it through: the commit, or as it is
	failed            // outcome says how
)

// judgeSession is one judge stream: an attempt's answer whose headers are held
// until it is decided.
type judgeSession struct {
	s      *Server
	stream counted
	x      *exchange
	n      int // our attempt number
	length string
	held   held
	chunks *receiver
	// counted: the answer is one of held_streams and held_bytes.
	counted bool
}

// judge serves the judge role. It answers the headers once and returns
// (envoy.md, rule 1), except where the answer is converted.
func (s *Server) judge(stream counted) error {
	var req wire.Request
	if err := stream.Recv(&req); err != nil {
		return nil // EOF and Canceled are how Envoy ends a stream
	}
	j := &judgeSession{s: s, stream: stream}
	if !j.open(&req) {
		req.Release()
		return j.answer(nil)
	}
	s.metrics.heldStreams.Inc()
	j.counted = true
	defer j.letGo()
	v := j.held.first(req.EndOfStream)
	req.Release()
	if v == undecided {
		j.chunks = receive(stream)
		defer j.chunks.stop()
		v = j.read()
	}
	if v == undecided {
		return nil // the stream broke, or the client left: whoever comes next knows
	}
	return j.conclude(v)
}

// open finds the exchange and reads the answer's headers. false: this answer is
// nobody's business any more.
func (j *judgeSession) open(req *wire.Request) bool {
	j.n, _ = strconv.Atoi(req.Meta(names.MetaAttempt))
	j.length = headerOf(req, "content-length")
	x := j.s.findForJudge(req)
	if x == nil {
		return false
	}
	j.x = x
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.now()
	if a == nil || a.N != j.n {
		return false
	}
	j.held = newHeld(req, x, a)
	j.held.hide(j.s.secretsOf(x.target(a).Keys[a.Key]))
	x.seen = seenAnswer{n: a.N, answer: j.held.answer}
	x.seenRequestID(a, req)
	if j.held.provider() {
		a.Status, a.Headers = j.held.answer.Status, time.Now()
	}
	if j.held.streaming {
		_ = x.run.Held(a.N, time.Now()) // cannot fail: a runs and nothing held it before
	}
	return true
}

// read feeds chunks to the held answer until it is decided or a timer is.
func (j *judgeSession) read() verdict {
	timer := time.NewTimer(time.Until(j.held.due()))
	defer timer.Stop()
	for {
		select {
		case c, ok := <-j.chunks.c:
			if !ok {
				return undecided
			}
			before := j.held.size
			v := j.held.feed(c)
			j.s.holds(j.held.size - before)
			j.chunks.done()
			if v != undecided {
				return v
			}
		case <-timer.C:
			if v := j.held.expired(time.Now()); v != undecided {
				return v
			}
		}
		timer.Reset(time.Until(j.held.due()))
	}
}

// holds counts n more bytes of held answers.
func (s *Server) holds(n int64) {
	s.metrics.heldBytes.Add(float64(n))
	s.table.hold(n)
}

// letGo counts the answer as held no more.
func (j *judgeSession) letGo() {
	if j.counted {
		j.counted = false
		j.s.metrics.heldStreams.Dec()
		j.s.holds(-j.held.size)
	}
}

// conclude tells the exchange and answers the headers.
func (j *judgeSession) conclude(v verdict) error {
	x := j.x
	x.mu.Lock()
	a := x.now()
	if a == nil || a.N != j.n { // the next attempt closed this one already
		x.mu.Unlock()
		return j.answer(nil)
	}
	now := time.Now()
	if v == release {
		// The commit is when the plan sees these headers: until then a reset can
		// still lead to the next attempt.
		x.judged, x.asIs, x.opaque = !j.held.counting(), j.held.asIs, j.held.opaque()
		meta := x.stateIfJoined(a)
		x.mu.Unlock()
		return j.answer(meta)
	}
	o := j.held.result(now)
	x.note(a, o, &j.held.answer)
	x.keep(a, o, &j.held)
	d := j.s.fail(x, a, o, now)
	if j.held.passable() {
		x.passable = j.n
		x.translate(a, &j.held)
	}
	if d.Verb == policy.VerbStop {
		meta := x.meta(a)
		x.mu.Unlock()
		return j.answer(meta)
	}
	until := x.waitUntil
	x.mu.Unlock()
	return j.goOn(until)
}

// goOn waits until the next attempt is due, begins it and marks the answer so
// that Envoy's router tries again; with nowhere left to go the answer passes.
func (j *judgeSession) goOn(until time.Time) error {
	if pause(j.stream.Context(), until) != nil {
		return nil //nolint:nilerr // the attempt that follows waits out the rest
	}
	x := j.x
	x.mu.Lock()
	if a := x.run.Last(); a.N != j.n || x.run.State() != policy.StateDeciding {
		x.mu.Unlock()
		return nil
	}
	next, ok := j.s.begin(x, time.Now())
	if !ok {
		x.mu.Unlock()
		return j.answer(nil)
	}
	meta := x.meta(next)
	x.mu.Unlock()
	return j.answer(meta, field{Name: names.Retry, Value: "1"})
}

// answer answers the headers, the only reply a judge gives, unless the answer
// passes and is to be converted.
func (j *judgeSession) answer(meta []field, set ...field) error {
	if j.held.conv != nil && j.chunks != nil && len(set) == 0 {
		return j.convert(meta)
	}
	var out wire.Response
	out.Kind, out.Set, out.Meta = wire.KindResponseHeaders, set, meta
	if len(set) == 0 && j.length != "" {
		out.Set = []field{{Name: names.Length, Value: j.length}}
	}
	return j.stream.Send(&out)
}

// fail closes attempt a, decides, and says so once in the log. x.mu is held.
func (s *Server) fail(x *exchange, a *policy.Attempt, o policy.Outcome, now time.Time) policy.Decision {
	t := x.target(a)
	if k := t.Keys[a.Key]; o.Kind == config.KindCredential {
		if s.issued.Outdated(k.Place(), a.Start) { // another value has come since: this one's end blames nothing
			o.Blame, o.Long = policy.BlameNothing, false
		}
		s.renew(k)
	}
	if o.Kind == config.KindModelUnavailable && x.operation() == platform.CountTokens {
		o.Blame, o.Long = policy.BlameNothing, false // a platform may serve a model whose tokens it does not count
	}
	d, err := x.run.Fail(a.N, o, now)
	if err != nil {
		s.log.Error("attempt failed", "id", x.id, "error", err)
		return policy.Decision{Verb: policy.VerbStop}
	}
	x.waitUntil = now.Add(d.Wait)
	if d.Verb == policy.VerbFailover || d.Verb == policy.VerbRetry {
		s.log.Info("attempt failed", "id", x.id, "route", x.run.Plan.Route.Name, "target", t.Name, "model", a.Model,
			"outcome", string(o.Kind), "reason", o.Reason, "status", o.Status, "decision", string(d.Verb), "wait_ms", d.Wait.Milliseconds())
	}
	if o.Kind == config.KindUnsupportedFeature {
		s.metrics.rewriteRefused.WithLabelValues(t.Name).Inc()
	}
	return d
}
