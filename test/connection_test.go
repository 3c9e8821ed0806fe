package test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// slack is what a timer of the contract may be late by, on a machine that runs
// race-enabled binaries and other cases beside.
const slack = 800 * time.Millisecond

// refusing is an address where nobody listens.
func refusing(t *testing.T) string { return fmt.Sprintf("http://127.0.0.1:%d", freePort(t)) }

// mute accepts connections and never says a word.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range all {
					_ = c.Close() // the test is over
				}
				return
			}
			all = append(all, c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the loop
		<-done
	})
	return l.Addr().String()
}

func TestConnectionFailures(t *testing.T) {
	aws := target{platform: fakeplatform.ClaudeOnAWS}
	ok := flow{status: 200, served: "b", outcome: "failed_over", attempts: "a connection failover, b ok serve", max: 2 * time.Second}
	at := func(name string, tg target, answers ...fakeplatform.Answer) []flow {
		f := ok
		f.lane = lane{name: name, targets: []target{tg, aws}}
		f.scripts = [][]fakeplatform.Answer{answers}
		return both(f)
	}
	var flows []flow
	add := func(more []flow) { flows = append(flows, more...) }
	add(at("refused", target{url: refusing(t)}))
	add(at("unresolvable", target{url: "http://nowhere.crossdoor-test.invalid:8080"}))
	add(at("tls-wrong-name", target{tls: []string{"elsewhere.example"}}))
	add(at("tls-unknown-ca", target{tls: []string{"localhost"}, noCA: true}))
	add(at("tls-mute", target{url: "https://" + mute(t), yaml: []string{"connect_timeout: 500ms"}}))
	add(at("reset", target{}, fakeplatform.ResetBeforeHeaders()))
	add(at("closed", target{}, fakeplatform.CloseBeforeHeaders()))
	for i := range flows {
		if flows[i].lane.name == "tls-mute-json" || flows[i].lane.name == "tls-mute-sse" {
			flows[i].min = 450 * time.Millisecond
		}
	}
	runFlows(t, options{}, flows...)
}

func TestTLSTarget(t *testing.T) {
	f := flow{
		lane:   lane{name: "tls", targets: []target{{tls: []string{"localhost"}}}},
		status: 200, served: "a", outcome: "served", attempts: "a ok serve",
		more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
			if r := l.fakes[0].Requests()[0]; r.Proto != "HTTP/2.0" || r.Get("host") != fmt.Sprintf("localhost:%d", l.fakes[0].Port()) {
				t.Errorf("%s to %q", r.Proto, r.Get("host"))
			}
		},
	}
	runFlows(t, options{}, both(f)...)
}

func TestNoAnswerInTime(t *testing.T) {
	silent := fakeplatform.Silence()
	runFlows(t, options{},
		flow{lane: lane{name: "attempt", route: []string{"timeouts: {attempt: 700ms}"}}, scripts: [][]fakeplatform.Answer{{silent}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a timeout failover, b ok serve", min: 700 * time.Millisecond, max: 700*time.Millisecond + slack},
		flow{lane: lane{name: "first-token", route: []string{"timeouts: {first_token: 700ms}"}}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{silent}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a timeout failover, b ok serve", min: 700 * time.Millisecond, max: 700*time.Millisecond + slack},
		flow{lane: lane{name: "entry", chain: "[{target: @a, timeouts: {attempt: 600ms}}, @b]"}, scripts: [][]fakeplatform.Answer{{silent}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a timeout failover, b ok serve", min: 600 * time.Millisecond, max: 600*time.Millisecond + slack},
		flow{lane: lane{name: "slow-but-in-time", route: []string{"timeouts: {attempt: 5s}"}}, scripts: [][]fakeplatform.Answer{{fakeplatform.Message("m", "m", "late").After(time.Second)}},
			status: 200, served: "a", outcome: "served", attempts: "a ok serve", min: time.Second, max: time.Second + slack},
	)
}

// TestNobodyAnswers is the contract's section 7 for attempts without an answer.
// `stopped` is an answer that went to the client; where there was none, the
// outcome is `exhausted` also when the action was stop.
func TestNobodyAnswers(t *testing.T) {
	limited := fakeplatform.Error(429, "slow down", fakeplatform.Field{Name: "retry-after", Value: "33"})
	dead := func() target { return target{url: refusing(t)} }
	quick := []string{"timeouts: {attempt: 500ms}"}
	runFlows(t, options{},
		flow{lane: lane{name: "refused-all", targets: []target{dead(), dead()}}, status: 529, kind: "overloaded_error", outcome: "exhausted", attempts: "a connection failover, b connection *"},
		flow{lane: lane{name: "timeout-all", route: quick}, scripts: [][]fakeplatform.Answer{{fakeplatform.Silence()}, {fakeplatform.Silence()}},
			status: 504, kind: "timeout_error", outcome: "exhausted", attempts: "a timeout failover, b timeout *"},
		flow{lane: lane{name: "limited-then-refused", targets: []target{{}, dead()}}, scripts: [][]fakeplatform.Answer{{limited}},
			status: 429, served: "a", outcome: "exhausted", attempts: "a rate_limit failover, b connection *", body: limited.Body(),
			more: func(t testing.TB, _ *laneRun, a *answer, _ record) {
				if got := a.header.Get("retry-after"); got != "33" {
					t.Errorf("retry-after %q is not that of the answer", got)
				}
			}},
		flow{lane: lane{name: "overloaded-then-silent", route: quick}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(529, "Overloaded")}, {fakeplatform.Silence()}},
			status: 529, served: "a", outcome: "exhausted", attempts: "a overloaded failover, b timeout *", body: fakeplatform.Error(529, "Overloaded").Body()},
		flow{lane: lane{name: "broken-then-refused", targets: []target{{}, dead()}}, scripts: [][]fakeplatform.Answer{{fakeplatform.Error(500, "boom")}},
			status: 529, kind: "overloaded_error", outcome: "exhausted", attempts: "a server_error failover, b connection *"},
		flow{lane: lane{name: "connection-stop", targets: []target{dead(), {}}, route: []string{"actions: {connection: stop}"}},
			status: 529, kind: "overloaded_error", outcome: "exhausted", attempts: "a connection stop"},
		flow{lane: lane{name: "timeout-stop", route: append([]string{"actions: {timeout: stop}"}, quick...)}, scripts: [][]fakeplatform.Answer{{fakeplatform.Silence()}},
			status: 504, kind: "timeout_error", outcome: "exhausted", attempts: "a timeout stop"},
	)
}
