package test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// Shorthands for the parts of streams.
var (
	startEvent = fakeplatform.MessageStart("msg_held", "held")
	ping       = fakeplatform.Ping()
	deltaEvent = fakeplatform.TextDelta(0, "hello")
	wholeTail  = [][]byte{fakeplatform.BlockStart(0), deltaEvent, fakeplatform.BlockStop(0), fakeplatform.MessageDelta("end_turn"), fakeplatform.MessageStop()}
)

// broken breaks off in its body, after its headers were seen: a reset in the same
// packet would take them along.
func broken(a fakeplatform.Answer) fakeplatform.Answer {
	a = a.Ending(fakeplatform.EndReset)
	a.Parts = append(slices.Clip(a.Parts), fakeplatform.Part{Wait: 200 * time.Millisecond})
	return a
}

// heldFailure is a stream that fails over while it is held.
func heldFailure(name, kind string, a fakeplatform.Answer, route ...string) flow {
	return flow{
		lane: lane{name: name, route: route}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
		status: 200, served: "b", outcome: "failed_over", attempts: "a " + kind + " failover, b ok serve",
		body: goodAnswer(fakeplatform.ClaudeOnAWS, name, true, 1), max: 2 * time.Second,
	}
}

func TestHeldStreamsFailOver(t *testing.T) {
	t.Parallel()
	overloaded := fakeplatform.StreamError("overloaded_error", "Overloaded")
	brokenError := broken(fakeplatform.Error(529, "Overloaded"))
	stalledError := fakeplatform.Answer{Name: "stalled error", Status: 500, Length: 500, End: fakeplatform.EndStall,
		Header: []fakeplatform.Field{{Name: "content-type", Value: "application/json"}}, Parts: []fakeplatform.Part{{Data: []byte(`{"type":"error"`)}}}
	stream := fakeplatform.Stream
	flows := []flow{
		heldFailure("error-first", "overloaded", stream(overloaded)),
		heldFailure("error-first-open", "overloaded", stream(overloaded).Ending(fakeplatform.EndStall)),
		heldFailure("error-after-pings", "overloaded", stream(startEvent, ping, ping, ping, overloaded)),
		heldFailure("error-api", "server_error", stream(startEvent, fakeplatform.StreamError("api_error", "Internal"))),
		heldFailure("error-rate", "rate_limit", stream(startEvent, fakeplatform.StreamError("rate_limit_error", "slow"))),
		heldFailure("error-timeout", "timeout", stream(startEvent, fakeplatform.StreamError("timeout_error", "slow"))),
		heldFailure("error-after-empty-block", "overloaded", stream(startEvent, fakeplatform.BlockStart(0), ping, overloaded)),
		heldFailure("error-split", "overloaded", fakeplatform.SplitEvery(7, startEvent, ping, overloaded)),
		heldFailure("error-crlf", "overloaded", stream(fakeplatform.CRLF(startEvent), fakeplatform.CRLF(overloaded))),
		heldFailure("reset-first", "connection", stream().Ending(fakeplatform.EndReset)),
		heldFailure("reset-after-start", "connection", stream(startEvent, ping).Ending(fakeplatform.EndReset)),
		heldFailure("close-after-start", "connection", stream(startEvent).Ending(fakeplatform.EndClose)),
		heldFailure("end-after-start", "connection", stream(startEvent, ping)),
		heldFailure("end-empty", "connection", stream()),
		heldFailure("broken-error", "overloaded", brokenError),
		heldFailure("silence-after-200", "timeout", stream().Ending(fakeplatform.EndStall), "timeouts: {first_token: 700ms}"),
		heldFailure("pings-no-hold", "timeout", fakeplatform.StreamOf(fakeplatform.Part{Data: startEvent}, fakeplatform.Part{Data: ping, Wait: 50 * time.Millisecond, Repeat: -1}), "timeouts: {first_token: 900ms, hold: 900ms}"),
	}
	stalled := heldFailure("stalled-error", "server_error", stalledError)
	stalled.min, stalled.max = 1800*time.Millisecond, 2*time.Second+slack
	big := heldFailure("big-error", "overloaded", fakeplatform.Raw(529, "application/json", []byte(`{"type":"error","error":{"type":"overloaded_error","message":"`+strings.Repeat("z", 5<<20)+`"}}`)))
	long := heldFailure("start-then-silence", "timeout", stream(startEvent).Ending(fakeplatform.EndStall), "timeouts: {hold: 21s, first_token: 23s, idle: 1m}")
	long.min, long.max = 22900*time.Millisecond, 23*time.Second+slack
	for i := range flows {
		if strings.Contains(strings.Join(flows[i].lane.route, ""), "first_token") {
			flows[i].min = 690 * time.Millisecond
		}
	}
	runFlows(t, options{}, append(flows, stalled, big, long)...)
}

// passes is a stream that reaches the client to the byte.
func passes(name string, a fakeplatform.Answer, route ...string) flow {
	return flow{
		lane: lane{name: name, route: route}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
		status: 200, served: "a", outcome: "served", attempts: "a ok serve", body: a.Body(), ends: []string{"a ok"},
	}
}

func TestHeldStreamsArePassed(t *testing.T) {
	all := append([][]byte{startEvent, ping}, wholeTail...)
	var crlf [][]byte
	for _, e := range all {
		crlf = append(crlf, fakeplatform.CRLF(e))
	}
	odd := append([][]byte{[]byte(": a comment\n\n"), startEvent, fakeplatform.Event("novelty", `{"type":"novelty"}`)}, wholeTail...)
	pingsThenContent := fakeplatform.StreamOf(append([]fakeplatform.Part{{Data: startEvent}, {Data: ping, Wait: 100 * time.Millisecond, Repeat: 11}}, partsOf(wholeTail)...)...)
	released := passes("pings-released", pingsThenContent, "timeouts: {hold: 500ms, first_token: 10s}")
	released.min, released.max = 450*time.Millisecond, 500*time.Millisecond+slack
	invalid := passes("invalid-event", fakeplatform.Stream(startEvent, fakeplatform.StreamError("invalid_request_error", "bad")))
	invalid.outcome, invalid.attempts, invalid.ends = "stopped", "a invalid_request stop", nil
	toolBlock := fakeplatform.Event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`)
	afterFailure := func(f flow) flow {
		f.lane.name += "-second"
		f.scripts = [][]fakeplatform.Answer{{fakeplatform.Stream(startEvent, fakeplatform.StreamError("overloaded_error", "x"))}, f.scripts[0]}
		f.served, f.outcome, f.attempts, f.ends = "b", "failed_over", "a overloaded failover, b ok serve", []string{"b ok"}
		return f
	}
	flows := []flow{
		passes("plain", fakeplatform.Stream(all...)),
		passes("crlf", fakeplatform.Stream(crlf...)),
		passes("every-byte", fakeplatform.SplitEvery(1, all...)),
		passes("every-byte-crlf", fakeplatform.SplitEvery(1, crlf...)),
		passes("odd-events", fakeplatform.Stream(odd...)),
		passes("one-write", fakeplatform.SplitEvery(1<<20, all...)),
		passes("big-first-event", fakeplatform.Stream(append([][]byte{startEvent, fakeplatform.TextDelta(0, strings.Repeat("y", 5<<20))}, wholeTail...)...)),
		passes("tool-first", fakeplatform.Stream(startEvent, toolBlock, fakeplatform.Delta(0, "input_json_delta", "partial_json", "{}"), fakeplatform.BlockStop(0), fakeplatform.MessageDelta("tool_use"), fakeplatform.MessageStop())),
		passes("length-known", withLength(fakeplatform.Stream(all...))),
		released, invalid,
	}
	for _, name := range []string{"plain", "crlf", "every-byte", "odd-events", "big-first-event"} {
		for _, f := range flows {
			if f.lane.name == name {
				flows = append(flows, afterFailure(f))
				break
			}
		}
	}
	runFlows(t, options{}, flows...)
}

func partsOf(events [][]byte) []fakeplatform.Part {
	var out []fakeplatform.Part
	for _, e := range events {
		out = append(out, fakeplatform.Part{Data: e})
	}
	return out
}

func withLength(a fakeplatform.Answer) fakeplatform.Answer {
	a.Length = fakeplatform.LengthAuto
	return a
}

// TestCommitIsAtTheFirstContent: the client has what came before the platform
// goes on after its first content event.
func TestCommitIsAtTheFirstContent(t *testing.T) {
	e := start(t, options{}, lane{name: "commit", targets: two()})
	shared := e.lane("commit")
	gate := make(chan struct{})
	s := fakeplatform.Stream(append([][]byte{startEvent, fakeplatform.BlockStart(0), deltaEvent}, wholeTail[1:]...)...)
	s.Mid, s.MidPart = gate, 3
	shared.fakes[0].Script(s)
	resp, err := shared.open(call{stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	want := bytes.Join([][]byte{startEvent, fakeplatform.BlockStart(0), deltaEvent}, nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("before the gate: %q, %v", got, err)
	}
	close(gate)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(slices.Concat(got, rest), s.Body()) {
		t.Errorf("the rest: %q, %v", rest, err)
	}
	if r := shared.nth(1); r.Committed == nil || r.Outcome != "served" {
		t.Errorf("committed_ms %v, outcome %q", r.Committed, r.Outcome)
	}
}

// TestNothingLeavesBeforeTheCommit: no header comes while a stream is held.
func TestNothingLeavesBeforeTheCommit(t *testing.T) {
	e := start(t, options{}, lane{name: "held", targets: two()})
	shared := e.lane("held")
	gate := make(chan struct{})
	s := fakeplatform.Stream(append([][]byte{startEvent, ping}, wholeTail...)...)
	s.Mid, s.MidPart = gate, 2
	shared.fakes[0].Script(s)
	done := make(chan *answer, 1)
	began := time.Now()
	go func() {
		a, err := shared.try(call{stream: true})
		if err != nil {
			a = &answer{err: err}
		}
		done <- a
	}()
	e.metric(1, "held_streams")
	timer := time.NewTimer(700 * time.Millisecond)
	defer timer.Stop()
	select {
	case a := <-done:
		t.Fatalf("an answer came after %v while the stream had no content: %d %q", time.Since(began), a.status, a.body)
	case <-timer.C:
	}
	close(gate)
	if a := <-done; a.err != nil || !bytes.Equal(a.body, s.Body()) {
		t.Errorf("got %q, %v", a.body, a.err)
	}
	e.metric(0, "held_streams")
	e.metric(0, "held_bytes")
}

// TestEndlessCommentsAreReleased: the hold is bounded in bytes.
func TestEndlessCommentsAreReleased(t *testing.T) {
	e := start(t, options{top: []string{"limits: {hold: 1MiB}"}}, lane{name: "comments", targets: two()})
	shared := e.lane("comments")
	comment := append(append([]byte(": "), bytes.Repeat([]byte("c"), 16<<10)...), '\n', '\n')
	shared.fakes[0].Script(fakeplatform.StreamOf(fakeplatform.Part{Data: comment, Repeat: -1}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := shared.open(call{stream: true, ctx: ctx})
	if err != nil {
		t.Fatalf("never released: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("x-crossdoor-served-by") != "comments-a" {
		t.Errorf("status %d by %q", resp.StatusCode, resp.Header.Get("x-crossdoor-served-by"))
	}
	if n, err := io.CopyN(io.Discard, resp.Body, 4<<20); err != nil {
		t.Errorf("cut after %d bytes: %v", n, err)
	}
	cancel()
	if r := shared.nth(1); r.Outcome != "client_gone" {
		t.Errorf("outcome %q", r.Outcome)
	}
	if n := len(shared.fakes[1].Requests()); n != 0 {
		t.Errorf("%d requests at the second target", n)
	}
}

// TestHeldOnTheLastAttempt: what is answered when the last attempt breaks while
// it is held.
func TestHeldOnTheLastAttempt(t *testing.T) {
	overloaded := fakeplatform.Error(529, "Overloaded")
	reset := fakeplatform.Stream(startEvent, ping).Ending(fakeplatform.EndReset)
	inStream := fakeplatform.Stream(startEvent, fakeplatform.StreamError("overloaded_error", "Overloaded"))
	mk := func(name string, status int, a, b fakeplatform.Answer) flow {
		return flow{lane: lane{name: name, route: []string{"timeouts: {first_token: 700ms}"}}, call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}, {b}}, status: status, outcome: "exhausted"}
	}
	first := mk("reset-after-529", 529, overloaded, reset)
	first.served, first.attempts, first.body = "a", "a overloaded failover, b connection *", overloaded.Body()
	second := mk("reset-after-reset", 529, reset, reset)
	second.kind, second.attempts = "overloaded_error", "a connection failover, b connection *"
	third := mk("silence-after-reset", 504, reset, fakeplatform.Stream().Ending(fakeplatform.EndStall))
	third.kind, third.attempts = "timeout_error", "a connection failover, b timeout *"
	fourth := mk("error-event-last", 200, overloaded, inStream)
	fourth.served, fourth.attempts, fourth.body = "b", "a overloaded failover, b overloaded *", inStream.Body()
	fifth := mk("broken-error-last", 529, reset, broken(overloaded))
	fifth.attempts = "a connection failover, b overloaded *"
	fifth.served = "*"
	runFlows(t, options{}, first, second, third, fourth, fifth)
}

// TestBreaksWhileWaiting: a failed answer that breaks off while its retry waits.
func TestBreaksWhileWaiting(t *testing.T) {
	limited := fakeplatform.Error(429, "slow down", fakeplatform.Field{Name: "retry-after", Value: "1"})
	limited = limited.Ending(fakeplatform.EndReset)
	limited.Parts = append(limited.Parts, fakeplatform.Part{Wait: 300 * time.Millisecond})
	f := flow{
		lane:    lane{name: "breaks", route: []string{"same_target_retries: 1", "actions: {rate_limit: retry}"}},
		scripts: [][]fakeplatform.Answer{{limited}},
		status:  200, served: "a", outcome: "served", attempts: "a rate_limit retry, a ok serve", min: time.Second, max: time.Second + slack,
	}
	runFlows(t, options{}, both(f)...)
}
