package test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// runningStreams opens n streams that wait at the gate after their first content.
func runningStreams(t *testing.T, l *laneRun, n int, gate <-chan struct{}) ([]*http.Response, []byte) {
	t.Helper()
	whole := goodOf(fp, true)
	whole.Mid, whole.MidPart = gate, 4
	l.fakes[0].Always(whole)
	all := make([]*http.Response, n)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			resp, err := l.open(l.reported(call{stream: true, h2: true}))
			if err != nil {
				t.Errorf("stream %d: %v", i, err)
				return
			}
			all[i] = resp
		})
	}
	wg.Wait()
	l.fakes[0].Always(goodOf(fp, false))
	return all, whole.Body()
}

// wholly reads every stream to its end.
func wholly(t *testing.T, streams []*http.Response, want []byte) {
	t.Helper()
	for i, resp := range streams {
		if resp == nil {
			continue // reported already
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("stream %d: %d bytes of %d, %v", i, len(got), len(want), err)
		}
	}
}

// TestReport89_RestartKeepsStreams: SIGTERM to a replica drains it: its streams
// end whole, what is new goes to the other one.
func TestReport89_RestartKeepsStreams(t *testing.T) {
	e := startReports(t, options{replicas: 2, serve: []string{"--drain", "20s"}}, wrenLane("r89", []string{fp, cpaws}))
	l := e.lane("r89")
	gate := make(chan struct{})
	streams, want := runningStreams(t, l, 50, gate)
	first := e.services[0].proc
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("crossdoor::127.0.0.1:%d::health_flags::/failed_active_hc", e.services[0].grpc)
	eventually(t, 10*time.Second, "Envoy sees the drain", func() error {
		// Nothing fails while Envoy does not know yet.
		if a := l.ask(call{}); a.status != 200 {
			t.Errorf("a new request while a replica drains: %s", describe(a, a.err))
		}
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d/clusters", e.admin))
		if err == nil && !strings.Contains(text, stat) {
			err = errNotYet
		}
		return err
	})
	for range 5 {
		if a := l.ask(call{}); a.status != 200 {
			t.Errorf("a new request: %s", describe(a, a.err))
		}
	}
	close(gate)
	wholly(t, streams, want)
	select {
	case <-first.done:
	case <-time.After(10 * time.Second):
		t.Error("the drained replica did not end")
	}
	e.metric(0, "inflight")
}

// TestReport89_KilledKeepsStreams: SIGKILL leaves running streams as they are,
// and what is new goes unrewritten to the one target that the policy names for
// that (on_service_down), at once and visibly in Envoy's statistics.
func TestReport89_KilledKeepsStreams(t *testing.T) {
	direct := wrenLane("r89-killed", []string{fp, cpaws}, "clients: authenticated")
	direct.uncounted = true
	direct.targets[0].keyYAML = "[passthrough]"
	direct.targets[0].rules = nil
	e := startReports(t, options{top: []string{"on_service_down: {direct: r89-killed-a}"}}, direct)
	l := e.lane("r89-killed")
	l.fakes[0].SetRules(fakeplatform.Rules{Keys: []string{"sk-client-r89-killed"}})
	gate := make(chan struct{})
	streams, want := runningStreams(t, l, 50, gate)
	e.service().proc.kill()
	for i := range 5 {
		a := l.ask(call{})
		if a.status != 200 || a.total > 4*time.Second {
			t.Errorf("request %d without the service: after %v %s", i, a.total, describe(a, a.err))
		}
	}
	got := l.fakes[0].Requests()
	if last := got[len(got)-1]; !bytes.Equal(last.Body, r1()) || len(l.fakes[1].Requests()) != 0 {
		t.Errorf("the target got %s", last.Body)
	}
	close(gate)
	wholly(t, streams, want)
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/stats?filter=failure_mode_allowed", e.admin))
	if err != nil || !strings.Contains(text, "failure_mode_allowed: 5") {
		t.Errorf("Envoy's statistics do not show it: %v\n%s", err, text)
	}
	e.service().start()
	e.waitReady()
	eventually(t, 5*time.Second, "served by plan again", func() error {
		if got := l.ask(call{}).header.Get("x-crossdoor-served-by"); got != "r89-killed-a" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}
