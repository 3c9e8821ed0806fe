package demo

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/policy/config"
)

// TestPolicy: the policy loads, says what the steps count on, and every model of
// the script has a route.
func TestPolicy(t *testing.T) {
	text, err := policyYAML(urls{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3", "http://127.0.0.1:4"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := config.Load("crossdoor.yaml", text, extproc.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	if p.Breaker.Window != breakerWindow || p.Breaker.Failures != 2 {
		t.Errorf("breaker %+v, the steps count on 2 failures and %v", p.Breaker, breakerWindow)
	}
	routed := map[string]string{}
	for _, r := range p.Routes {
		for _, m := range r.Models {
			routed[m] = r.Name
		}
	}
	for _, s := range script {
		if routed[s.model] == "" {
			t.Errorf("no route takes %s", s.model)
		}
	}
	if after := (fakeplatform.Request{Header: limited.Header}); after.Get("retry-after") != "3" || keyCooldown.Seconds() != 3 {
		t.Errorf("retry-after %s, the step waits %v", after.Get("retry-after"), keyCooldown)
	}
}

// call is a request to a fake as the service would send it.
func call(t *testing.T, f *fake, model string, k kind) *answer {
	t.Helper()
	fl := &flight{kind: k, done: make(chan struct{})}
	client := &http.Client{Transport: withKey{}}
	if err := fl.run(t.Context(), client, f.server.URL()+"/v1/messages", requestBody(model, k)); err != nil {
		t.Error(err)
	}
	a := fl.now()
	return &a
}

// withKey puts the fake's key in the place of the client's.
type withKey struct{}

func (withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("x-api-key", keyAnthropic)
	return http.DefaultTransport.RoundTrip(r)
}

func TestFaults(t *testing.T) {
	f, err := startFake(targetAnthropic, fakeplatform.Anthropic, keyAnthropic)
	if err != nil {
		t.Fatal(err)
	}
	defer f.server.Close()
	p := platforms{targetAnthropic: f}
	before := p.mark()
	ask := func(model string, want int) {
		t.Helper()
		if got := call(t, f, model, asJSON).status; got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
	ask(modelHealthy, 200)
	ask(modelBusy, 529)
	ask(modelLimited, 429)
	ask(modelBad, 400)
	f.mend(modelBusy)
	ask(modelBusy, 200)
	f.breakAgain()
	ask(modelBusy, 529)
	arrivals := p.since(before)
	models := make([]string, 0, len(arrivals))
	for _, a := range arrivals {
		models = append(models, a.Model)
	}
	want := []string{modelHealthy, modelBusy, modelLimited, modelBad, modelBusy, modelBusy}
	if diff := cmp.Diff(want, models); diff != "" {
		t.Error(diff)
	}
	if left := p.since(p.mark()); len(left) != 0 {
		t.Errorf("nothing came since, but %v", left)
	}
}

// TestGate: a held stream has its first words out, and its record the whole body.
func TestGate(t *testing.T) {
	f, err := startFake(targetAnthropic, fakeplatform.Anthropic, keyAnthropic)
	if err != nil {
		t.Fatal(err)
	}
	defer f.server.Close()
	gate := make(chan struct{})
	f.hold(gate)
	fl := &flight{kind: asStream, done: make(chan struct{})}
	go func() {
		defer close(fl.done)
		if err := fl.run(t.Context(), &http.Client{Transport: withKey{}}, f.server.URL()+"/v1/messages", requestBody(modelRestart, asStream)); err != nil {
			t.Error(err)
		}
	}()
	if err := poll(t.Context(), slow, "words", func() error {
		if fl.now().words() < wordsBeforeGate {
			return errNoWords
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := fl.now().words(); got != wordsBeforeGate {
		t.Errorf("%d words before the gate", got)
	}
	close(gate)
	if a := fl.wait(); a.words() != 6 || !slices.Equal(a.body, f.answered(1)) {
		t.Errorf("%d words, %q", a.words(), a.body)
	}
}

func TestProcess(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := spawn("it", log, []string{"WORD=boom"}, "/bin/sh", "-c", "echo one; echo $WORD; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	if err := p.ended(); err == nil || !strings.Contains(err.Error(), "it ended by itself (exit status 3); it said last:\n    one\n    boom") {
		t.Errorf("%v", err)
	}
	p.stop(slow) // gone already
	long, err := spawn("it", log, nil, "/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := long.ended(); err != nil {
		t.Error(err)
	}
	long.stop(margin)
	if err := long.ended(); err == nil {
		t.Error("it was not stopped")
	}
	if _, err := spawn("it", log, nil, "/no/such/program"); err == nil || !strings.Contains(err.Error(), "starting it") {
		t.Errorf("%v", err)
	}
}

func TestPoll(t *testing.T) {
	for _, c := range []struct {
		name string
		gone bool
		ok   func() error
		want string
	}{
		{"done", false, func() error { return nil }, ""},
		{"late", false, func() error { return errNoWords }, "x: not within 150ms: " + errNoWords.Error()},
		{"fatal", false, func() error { return fatalError{errNoPort} }, errNoPort.Error()},
		{"gone", true, func() error { return errNoWords }, "context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.gone {
				cancel()
			}
			got := ""
			if err := poll(ctx, margin, "x", c.ok); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestFreePorts(t *testing.T) {
	ports, err := freePorts(8)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 8 || ports[0] < firstPort || ports[len(ports)-1] > lastPort {
		t.Errorf("%v", ports)
	}
	if _, err := freePorts(2000); err == nil {
		t.Error("more ports than are looked at")
	}
}
