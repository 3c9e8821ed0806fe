package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// After is what happens when the tour is over.
type After uint8

// Stop ends everything. KeepRunning leaves it running, with commands to try,
// until the context ends, and leaves the folder.
const (
	Stop After = iota
	KeepRunning
)

// Options say how a demo is run.
type Options struct {
	// Binary is the crossdoor binary that `serve` is started from.
	Binary string
	// Envoy is the Envoy binary, 1.37 to 1.40.
	Envoy   string
	Out     io.Writer
	Display Display
	// Width is that of the terminal; 0, or more than 100, is 100.
	Width int
	After After
}

// ErrMisbehaved is the error of a tour that was shown, but not all of its steps
// went as they must.
var ErrMisbehaved = errors.New("the demo did not go as it must")

// Run gives the tour and returns when nothing of it runs any more. The error is
// nil when every step behaved. When ctx ends, everything is stopped; that is an
// error during the tour, and none when it was only kept running.
func Run(ctx context.Context, o Options) error {
	s := newScreen(o.Out, o.Display, o.Width)
	w, err := newWorld(o.Binary, o.Envoy)
	if err == nil {
		err = w.tour(ctx, s, o.After)
	}
	ending := s.during(func() []line {
		return []line{{{faint, spinner(time.Now()) + " stopping"}}}
	})
	w.close()
	ending()
	if o.After == KeepRunning && w.dir != "" {
		s.print(text("stopped; policy, Envoy config and logs are in %s", w.dir))
	} else {
		err = errors.Join(err, w.forget())
	}
	return errors.Join(err, s.failed())
}

func (w *world) tour(ctx context.Context, s *screen, after After) error {
	began := time.Now()
	if err := w.open(ctx, s); err != nil {
		return interrupted(ctx, err)
	}
	t := &tour{w: w, s: s}
	results, err := t.walk(ctx, script)
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	s.print(summaryLines(results, len(script), time.Since(began))...)
	if bad := misbehaved(results, len(script)); bad > 0 {
		if after == Stop {
			s.print(text("run it with --keep to look at the logs of the service and of Envoy"))
		}
		err = errors.Join(fmt.Errorf("%w: %d of %d steps", ErrMisbehaved, bad, len(script)), err)
	}
	if after == KeepRunning {
		err = errors.Join(err, w.keep(ctx, s))
	}
	return err
}

// open starts everything and says what and where.
func (w *world) open(ctx context.Context, s *screen) error {
	began := time.Now()
	var err error
	if w.version, err = envoyVersion(ctx, w.envoyBin); err != nil {
		return err
	}
	if err := w.render(); err != nil {
		return err
	}
	what := "starting three fake platforms, crossdoor serve and Envoy " + w.version
	if s.display == Plain {
		s.print(text("%s ...", what))
	}
	end := s.during(func() []line {
		return []line{{{faint, spinner(time.Now()) + " " + what + ", " + seconds(time.Since(began))}}}
	})
	err = w.start(ctx)
	end()
	if err != nil {
		return err
	}
	s.print(
		text("ready in %s", seconds(time.Since(began))),
		text("client → Envoy %s (%s) → fakes: %s, %s, %s", w.version, local(w.listen), targetAnthropic, targetAWS, targetFoundry),
		text("         which asks crossdoor serve (%s) where each request goes", local(w.grpc)),
	)
	return nil
}

// interrupted is err, or that somebody ended the demo.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; everything is stopped")
	}
	return err
}
