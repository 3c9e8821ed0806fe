package demo

import (
	"context"
	"fmt"
	"time"
)

// tour gives the steps, one after the other.
type tour struct {
	w *world
	s *screen
	// now is the step that runs.
	now *result
}

// walk runs the steps and shows them. A step that cannot go on ends it with an
// error; one that only misbehaves does not.
func (t *tour) walk(ctx context.Context, steps []step) ([]result, error) {
	var results []result
	t.s.print(text(""), heading())
	for i, s := range steps {
		began := time.Now()
		t.now = &result{step: s}
		t.s.print(titleLine(i+1, s, t.s.width))
		err := s.run(ctx, t)
		if ctx.Err() != nil {
			return results, context.Cause(ctx)
		}
		if err != nil {
			t.now.problems = append(t.now.problems, err.Error())
		}
		t.now.took = time.Since(began)
		t.s.print(verdictLines(t.now.problems, t.s.width)...)
		results = append(results, *t.now)
		if err != nil {
			return results, fmt.Errorf("step %d (%s): %w", i+1, s.short, err)
		}
	}
	return results, nil
}

// request is one request of a step, shown while it runs.
type request struct {
	*flight

	number int
	before marks
	end    func() // of its lines
}

// begin sends a request and shows it.
func (t *tour) begin(ctx context.Context, model string, k kind) *request {
	t.now.requests++
	r := &request{number: t.now.requests, before: t.w.fakes.mark()}
	r.flight = t.w.send(ctx, model, k)
	r.end = t.s.during(func() []line {
		return runningLines(r.number, r.flight, t.w.fakes.since(r.before), time.Now())
	})
	return r
}

// finish waits for the request's end and its trail record, shows both and checks
// them.
func (t *tour) finish(ctx context.Context, r *request, w want) {
	o := observed{answer: r.wait(), kind: r.kind, sentSHA: r.sentSHA}
	if id := o.header.Get("x-crossdoor-request-id"); id != "" {
		record, err := t.w.record(ctx, id)
		if err == nil {
			o.record = record
		}
	}
	r.end()
	o.arrivals = t.w.fakes.since(r.before)
	if ctx.Err() != nil {
		return
	}
	t.s.print(requestLines(r.number, o)...)
	t.now.count(o)
	for _, p := range w.check(o) {
		t.problemf("#%d: %s", r.number, p)
	}
}

// ask is begin and finish.
func (t *tour) ask(ctx context.Context, model string, k kind, w want) {
	t.finish(ctx, t.begin(ctx, model, k), w)
}

func (r *result) count(o observed) {
	if o.record == nil {
		r.attempts += len(o.arrivals)
		return
	}
	r.attempts += len(o.record.Attempts)
	if len(o.record.Attempts) > 1 {
		r.added = max(r.added, time.Duration(o.record.AddedMS)*time.Millisecond)
	}
}

func (t *tour) problemf(format string, args ...any) {
	t.now.problems = append(t.now.problems, fmt.Sprintf(format, args...))
}

func (t *tour) notef(format string, args ...any) { t.s.print(noteLine(fmt.Sprintf(format, args...))) }

// until waits for a moment, counting down, and says once what for.
func (t *tour) until(ctx context.Context, at time.Time, what string) error {
	t.notef("waiting %s for %s", seconds(time.Until(at)), what)
	defer t.s.during(func() []line {
		return []line{{{faint, indent + "   " + spinner(time.Now()) + " " + seconds(max(0, time.Until(at)))}}}
	})()
	return pause(ctx, time.Until(at))
}

// breaker waits at most a second until a breaker has the state (contract,
// "Fine print": effects of ends are there within a second).
func (t *tour) breaker(ctx context.Context, target, model, state string) {
	err := poll(ctx, time.Second, "breaker", func() error {
		got, err := t.w.breaker(ctx, target, model)
		if err == nil && got != state {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
	if err != nil {
		t.problemf("the breaker of %s for %s is not %s: %v", target, model, state, err)
		return
	}
	t.notef("breaker of %s for %s: %s", target, model, state)
}
