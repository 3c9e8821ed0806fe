package test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestReport03_ErrorAsFirstEvent: a 200 whose stream begins with an error is a
// failed attempt like any other: the client gets one clean stream of the next
// target, and the attempt is counted as what it was.
func TestReport03_ErrorAsFirstEvent(t *testing.T) {
	overloaded := fakeplatform.Stream([]byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"))
	closed := broken(overloaded).Ending(fakeplatform.EndClose)
	rate := fakeplatform.Stream(fakeplatform.Ping(), fakeplatform.StreamError("rate_limit_error", "slow down"))
	moved := func(name, kind string, a fakeplatform.Answer) report {
		return report{flow: flow{
			lane: wrenLane(name, []string{fp, cpaws}), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a " + kind + " failover, b ok serve",
			body: goodOf(cpaws, true).Body(), ends: []string{"b ok"},
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				l.e.metric(0, "attempts_total", "target", l.targetName(0), "outcome", "ok")
			},
		}}
	}
	always := moved("r03-always", "overloaded", overloaded)
	always.scripts, always.ends = nil, nil
	always.prepare = func(l *laneRun) { l.fakes[0].Always(overloaded) }
	always.body = nil
	always.more = func(t testing.TB, l *laneRun, _ *answer, _ record) {
		for range 5 {
			if a := l.ask(call{stream: true}); a.status != 200 || !bytes.Contains(a.body, []byte("message_stop")) {
				t.Errorf("%d %.200s", a.status, a.body)
			}
		}
		if n := len(l.fakes[0].Requests()); n != 5 {
			t.Errorf("%d requests at a target that failed five streams, want 5", n)
		}
		l.opened(t, 0, "model")
	}
	runReports(t, options{}, moved("r03", "overloaded", overloaded), moved("r03-closed", "overloaded", closed), moved("r03-rate", "rate_limit", rate), always)
}

// TestReport05_StreamErrorsOpenTheBreaker: ten requests to a target that fails
// every stream half-way. The bytes pass unchanged, nothing is tried again, and
// after the breaker's count the target is left out though every status was 200.
func TestReport05_StreamErrorsOpenTheBreaker(t *testing.T) {
	e := startReports(t, options{}, wrenLane("r05", []string{fp, cpaws}))
	l := e.lane("r05")
	half := fakeplatform.Stream(
		fakeplatform.MessageStart("msg_a", wren), fakeplatform.TextDelta(0, "The qui"),
		[]byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Internal server error\"}}\n\n"),
	)
	l.fakes[0].Always(half)
	for i := range 10 {
		a := l.ask(call{stream: true})
		r := l.nth(i + 1)
		if i < 5 {
			if a.status != 200 || !bytes.Equal(a.body, half.Body()) || a.header.Get("x-crossdoor-served-by") != "r05-a" {
				t.Errorf("request %d: %d by %q: %q", i, a.status, a.header.Get("x-crossdoor-served-by"), a.body)
			}
			if r.summary() != "a stream_error serve" || r.Outcome != "stream_failed" {
				t.Errorf("request %d: %s", i, r.line)
			}
			continue
		}
		if i == 5 && a.header.Get("x-crossdoor-served-by") == "r05-a" {
			t.Fatalf("the sixth request went to a target that broke five streams")
		}
		if r.summary() != "b ok serve" || r.skips() != "a ejected" {
			t.Errorf("request %d: %s", i, r.line)
		}
	}
	if n, m := len(l.fakes[0].Requests()), len(l.fakes[1].Requests()); n != 5 || m != 5 {
		t.Errorf("%d and %d requests, want 5 and 5", n, m)
	}
	l.opened(t, 0, "model")
	e.metric(5, "stream_ends_total", "target", "r05-a", "end", "stream_error")
	e.metric(5, "attempts_total", "target", "r05-a", "outcome", "stream_error")
	e.metric(0, "attempts_total", "target", "r05-a", "outcome", "ok")
	e.metric(1, "breaker_opened_total", "target", "r05-a", "reason", "stream_error")
}

// TestReport07_OneMessageStart: what a failed attempt said before its first
// content was never passed on, so the client sees one message_start: that of the
// attempt that served.
func TestReport07_OneMessageStart(t *testing.T) {
	start := fakeplatform.MessageStart("msg_a", wren)
	good := fakeplatform.GoodStream("msg_b", wren, 5)
	once := func(name, kind string, parts ...[]byte) report {
		end := fakeplatform.EndReset
		if kind != "connection" {
			end = fakeplatform.EndClean
		}
		return report{flow: flow{
			lane: wrenLane(name, []string{fp, cpaws}), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{broken(fakeplatform.Stream(parts...)).Ending(end)}, {good}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a " + kind + " failover, b ok serve", body: good.Body(), ends: []string{"b ok"},
			more: func(t testing.TB, _ *laneRun, a *answer, _ record) {
				if bytes.Count(a.body, []byte("event: message_start")) != 1 || bytes.Contains(a.body, []byte("msg_a")) {
					t.Errorf("body %q", a.body)
				}
			},
		}}
	}
	runReports(t, options{},
		once("r07", "connection", start),
		once("r07-pings", "connection", start, fakeplatform.Ping(), fakeplatform.Ping()),
		once("r07-block", "connection", start, fakeplatform.BlockStart(0)),
		once("r07-error", "server_error", start, fakeplatform.StreamError("api_error", "x")),
	)
}

// TestReport09_WhatCommits: everything that a client may have shown is content,
// not text and tools alone.
func TestReport09_WhatCommits(t *testing.T) {
	bad := fakeplatform.StreamError("overloaded_error", "Overloaded")
	begin := fakeplatform.MessageStart("msg_a", wren)
	delta := func(block, data string) [][]byte {
		return [][]byte{begin, fakeplatform.BlockStartOf(0, block), fakeplatform.Event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+data+`}`)}
	}
	var reports []report
	for _, c := range []struct {
		name   string
		events [][]byte
	}{
		{"thinking", delta(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"Let me weigh"}`)},
		{"signature", delta(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"EqQBq7=="}`)},
		{"redacted", [][]byte{begin, fakeplatform.BlockStartOf(0, `{"type":"redacted_thinking","data":"Zm9v"}`)}},
		{"tool", [][]byte{begin, fakeplatform.BlockStartOf(0, `{"type":"tool_use","id":"toolu_1","name":"ledger_lookup","input":{}}`)}},
		{"tool-json", delta(`{"type":"tool_use","id":"toolu_1","name":"ledger_lookup","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"row\":"}`)},
		{"server-tool", [][]byte{begin, fakeplatform.BlockStartOf(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`)}},
		{"citations", delta(`{"type":"text","text":""}`, `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x","document_index":0,"start_char_index":0,"end_char_index":1}}`)},
		{"text-start", [][]byte{begin, fakeplatform.BlockStartOf(0, `{"type":"text","text":"The"}`)}},
		{"unknown-delta", delta(`{"type":"zz_future"}`, `{"type":"zz_delta","zz":1}`)},
	} {
		stream := fakeplatform.Stream(append(slices.Clip(c.events), bad)...)
		stream.Parts[len(stream.Parts)-1].Wait = 50 * time.Millisecond
		reports = append(reports, report{flow: flow{
			lane: wrenLane("r09-"+c.name, []string{fp, cpaws}), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{stream}},
			status: 200, served: "a", outcome: "stream_failed", attempts: "a stream_error serve", body: stream.Body(), ends: []string{"a stream_error"},
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				if n := len(l.fakes[1].Requests()); n != 0 {
					t.Errorf("tried again: %d requests", n)
				}
			},
		}})
	}
	runReports(t, options{}, reports...)
}

// TestReport11_NoMessageStop: a stream that has everything but its end is
// no success: it ends without message_stop after whatever pings, or falls silent.
// Nothing is invented and nothing tried again. Pings are bytes: a platform that
// sends them has not fallen silent (contract, timeouts.idle).
func TestReport11_NoMessageStop(t *testing.T) {
	whole := fakeplatform.GoodStream("msg_a", wren, 3)
	events := whole.Parts[:len(whole.Parts)-1]
	left := func(name, kind string, end fakeplatform.End, more ...fakeplatform.Part) report {
		a := fakeplatform.StreamOf(append(slices.Clip(events), more...)...)
		a.End = end
		r := report{flow: flow{
			lane: wrenLane(name, []string{fp, cpaws}, "timeouts: {first_token: 1s, hold: 1s, idle: 1s, total: 3s}"), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
			status: 200, served: "a", outcome: "stream_failed", attempts: "a " + kind + " serve", ends: []string{"a " + kind}, cut: end != fakeplatform.EndClean,
			more: func(t testing.TB, l *laneRun, a *answer, _ record) {
				if !bytes.HasPrefix(a.body, fakeplatform.StreamOf(events...).Body()) || bytes.Contains(a.body, []byte("message_stop")) || l.total() != 1 {
					t.Errorf("body %q after %d requests", a.body, l.total())
				}
			},
		}}
		return r
	}
	pings := fakeplatform.Part{Data: fakeplatform.Ping(), Wait: 100 * time.Millisecond, Repeat: 5}
	healthy := report{flow: flow{
		lane: wrenLane("r11-healthy", []string{fp}), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{whole}},
		status: 200, served: "a", outcome: "served", attempts: "a ok serve", ends: []string{"a ok"}, body: whole.Body(),
	}}
	runReports(t, options{},
		left("r11-ends", "truncated", fakeplatform.EndClean),
		left("r11-pings-then-end", "truncated", fakeplatform.EndClean, pings),
		left("r11-silent", "idle", fakeplatform.EndStall),
		healthy,
	)
}
