package demo

import (
	"context"
	"fmt"
	"strings"
)

// keep makes the platforms fail as at the beginning, says what can be tried, and
// waits until ctx ends. A child that ends before is an error.
func (w *world) keep(ctx context.Context, s *screen) error {
	for _, f := range w.fakes {
		f.breakAgain()
	}
	s.print(w.invitation()...)
	select {
	case <-w.envoy.done:
		return w.envoy.ended()
	case <-w.service.done:
		return w.service.ended()
	case <-ctx.Done():
		return nil
	}
}

// invitation is what can be tried while everything runs.
func (w *world) invitation() []line {
	lines := []line{text(""), {{bold, "Everything keeps running until Ctrl-C. Try:"}}}
	for _, c := range []struct{ what, flags, model, stream string }{
		{"a message from the primary", withHeaders, modelHealthy, ""},
		{"a stream", "-sN", modelHealthy, `"stream":true,`},
		{"the primary answers 529: the next target serves", withHeaders, modelBusy, ""},
		{"a stream that errors after its 200: the next target serves", "-siN", modelError, `"stream":true,`},
		{"everything fails", withHeaders, modelNothing, ""},
	} {
		lines = append(lines, text(""), line{{faint, "# " + c.what}})
		for one := range strings.SplitSeq(w.curl(c.flags, c.model, c.stream), "\n") {
			lines = append(lines, text("%s", one))
		}
	}
	return append(lines, text(""),
		line{{faint, "# what happened to each of them, and the state of the targets"}},
		text("%s trail --admin %s", w.binary, local(w.admin)),
		text("curl -s http://%s/readyz", local(w.admin)),
		text(""),
		text("more models: %s", strings.Join([]string{modelLimited, modelRefused, modelStalled, modelBad}, " ")),
		text("policy, Envoy config and logs: %s", w.dir),
	)
}

// withHeaders are the flags of curl that show an answer whole.
const withHeaders = "-si"

// curl is a command for a shell, in lines that are not too long.
func (w *world) curl(flags, model, stream string) string {
	return fmt.Sprintf(`curl %s http://%s/v1/messages \
  -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \
  -d '{"model":"%s","max_tokens":64,%s
       "messages":[{"role":"user","content":"Say hello."}]}'`, flags, local(w.listen), model, stream)
}
