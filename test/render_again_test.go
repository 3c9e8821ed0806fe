package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// followFiles starts Envoy again with the config whose parts it follows.
func (e *env) followFiles() {
	e.t.Helper()
	e.envoy.stop(5 * time.Second)
	p, err := startProcess("envoy", nil, envoyBin, "-c", filepath.Join(e.dir, "out", "dynamic", "envoy.yaml"), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning")
	if err != nil {
		e.t.Fatal(err)
	}
	e.envoy = p
	e.waitReady()
}

// rendered waits for what /readyz says of Envoy's config, which it learns from
// requests on new connections.
func (l *laneRun) rendered(want string) {
	l.e.t.Helper()
	eventually(l.e.t, 10*time.Second, "render: "+want, func() error {
		l.send(call{client: ownClient()})
		r, err := l.e.service().readiness()
		if err == nil && r.Render != want {
			err = fmt.Errorf("it is %q: %v", r.Render, r.Reasons)
		}
		return err
	})
}

// TestWhatIsNotRendered is left out, not tried in vain or at its old address;
// a new render that Envoy follows brings it in.
func TestWhatIsNotRendered(t *testing.T) {
	t.Parallel()
	spare, err := fakeplatform.New(fakeplatform.Anthropic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(spare.Close)
	e := start(t, options{}, lane{name: "more", targets: []target{{}, {}, {}}, chain: "[@c, @a, @b]"}, lane{name: "moved", targets: two()})
	more, moved := e.lane("more"), e.lane("moved")
	full := e.policyText()
	few := edited(t, without(t, full, "  more-c:\n", "  moved-a:\n"), "chain: [more-c, more-a, more-b]", "chain: [more-a, more-b]")
	e.reload(t, few)
	e.renderConfig()
	e.followFiles()
	more.rendered("matches")
	e.metric(0, "render_stale")

	e.reload(t, edited(t, full, moved.fakes[0].URL(), spare.URL()))
	if got := servedBy(more, call{client: ownClient()}); got != "200 more-a" {
		t.Errorf("with a new target: %s", got)
	}
	a := moved.send(call{client: ownClient()})
	if got := a.header.Get("x-crossdoor-served-by"); a.status != 200 || got != "moved-b" {
		t.Errorf("with a target that moved: %d %s", a.status, got)
	}
	if r := moved.byID(a.id()); r.skips() != "a not_rendered" || r.summary() != "b ok serve" {
		t.Errorf("skips %q, attempts %q", r.skips(), r.summary())
	}
	if n := len(moved.fakes[0].Requests()) + len(spare.Requests()); n != 0 {
		t.Errorf("%d requests to the target that moved", n)
	}
	r, err := e.service().readiness()
	if err != nil || !r.Ready || r.Render != "differs" || !strings.Contains(e.reasons(t), "render") {
		t.Errorf("/readyz: ready %v, render %q, %v (%v)", r.Ready, r.Render, r.Reasons, err)
	}
	e.metric(1, "render_stale")
	e.metric(1, "skipped_total", "target", "more-c", "reason", "not_rendered")

	e.renderConfig()
	more.rendered("matches")
	spare.SetRules(fakeplatform.Rules{Keys: moved.keys[0]})
	for _, l := range []*laneRun{more, moved} {
		want := map[*laneRun]string{more: "200 more-c", moved: "200 moved-a"}[l]
		eventually(t, 10*time.Second, want, func() error {
			if got := servedBy(l, call{client: ownClient()}); got != want {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}
	if len(spare.Requests()) == 0 || len(moved.fakes[0].Requests()) != 0 {
		t.Errorf("%d requests at the new address, %d at the old one", len(spare.Requests()), len(moved.fakes[0].Requests()))
	}
	if why := e.reasons(t); why != "" {
		t.Errorf("once it is rendered /readyz says %q", why)
	}
	e.metric(0, "render_stale")
}
