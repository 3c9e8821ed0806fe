package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// converting is the door whose streams are converted.
var converting = doors[5]

// frames are the events as the converted platform sends them.
func frames(events ...[]byte) fakeplatform.Answer {
	return fakeplatform.StreamFor(fakeplatform.Bedrock, events...)
}

// paused is an answer whose last part comes a moment after the others.
func paused(a fakeplatform.Answer) fakeplatform.Answer {
	a.Parts = append(slices.Clip(a.Parts), fakeplatform.Part{Wait: 300 * time.Millisecond})
	return a
}

// cutAnywhere sends the frames in pieces that begin and end anywhere.
func cutAnywhere(a fakeplatform.Answer, seed uint64) fakeplatform.Answer {
	all := a.Body()
	a.Parts = nil
	for r := rand.New(rand.NewPCG(seed, 7)); len(all) > 0; {
		n := min(len(all), 1+r.IntN(700))
		a.Parts = append(a.Parts, fakeplatform.Part{Data: all[:n:n]})
		all = all[n:]
	}
	return a
}

// TestConvertedStreams: what the client gets is what the same events would have
// been as server-sent events.
func TestConvertedStreams(t *testing.T) {
	deltas := func(n int) [][]byte {
		events := [][]byte{startEvent, ping, fakeplatform.BlockStart(0)}
		for i := range n {
			events = append(events, fakeplatform.TextDelta(0, fmt.Sprintf("word %d \u00e9\u2028 <&> ", i)))
		}
		return append(events, fakeplatform.BlockStop(0), fakeplatform.MessageDelta("end_turn"), fakeplatform.MessageStop())
	}
	tools := [][]byte{startEvent, fakeplatform.Event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`),
		fakeplatform.Delta(0, "input_json_delta", "partial_json", `{"a":`), fakeplatform.Delta(0, "input_json_delta", "partial_json", ` "\u0007\"}`), fakeplatform.BlockStop(0), fakeplatform.MessageDelta("tool_use"), fakeplatform.MessageStop()}
	thinking := [][]byte{startEvent, fakeplatform.BlockStartOf(0, `{"type":"thinking","thinking":"","signature":""}`), fakeplatform.Delta(0, "thinking_delta", "thinking", "hm"), fakeplatform.Delta(0, "signature_delta", "signature", "c2ln"), fakeplatform.BlockStop(0), fakeplatform.MessageDelta("end_turn"), fakeplatform.MessageStop()}
	big := [][]byte{startEvent, fakeplatform.TextDelta(0, strings.Repeat("y", 5<<20)), fakeplatform.BlockStop(0), fakeplatform.MessageDelta("end_turn"), fakeplatform.MessageStop()}
	var flows []flow
	add := func(name string, events [][]byte, a fakeplatform.Answer, route ...string) *flow {
		flows = append(flows, flow{
			lane: doorLane(name, []target{converting.target(), firstParty.target()}, route...), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
			status: 200, served: "a", outcome: "served", attempts: "a ok serve", body: bytes.Join(events, nil), ends: []string{"a ok"},
		})
		return &flows[len(flows)-1]
	}
	add("two-thousand", deltas(2000), frames(deltas(2000)...))
	add("one-write", deltas(2000), func() fakeplatform.Answer {
		a := frames(deltas(2000)...)
		a.Parts = []fakeplatform.Part{{Data: a.Body()}}
		return a
	}())
	for seed := range uint64(4) {
		add(fmt.Sprintf("cut-%d", seed), deltas(100), cutAnywhere(frames(deltas(100)...), seed))
	}
	add("tools", tools, frames(tools...))
	add("thinking", thinking, frames(thinking...))
	add("five-mebibytes", big, frames(big...))
	late := slices.Concat(deltas(3)[:5], big[1:2], deltas(3)[5:])
	add("big-later", late, frames(late...))
	add("with-length", deltas(5), withLength(frames(deltas(5)...)))
	kept := frames(deltas(2)...)
	kept.Parts = slices.Insert(slices.Clip(kept.Parts), 2, fakeplatform.Part{Data: fakeplatform.KeepAlive()}, fakeplatform.Part{Data: fakeplatform.Frame([]byte("{}"), fakeplatform.Field{Name: ":event-type", Value: "initial-response"}, fakeplatform.Field{Name: ":message-type", Value: "event"})})
	add("keep-alives", deltas(2), kept)
	slow := frames(deltas(6)...)
	for i := range slow.Parts {
		slow.Parts[i].Wait = 100 * time.Millisecond
	}
	add("word-by-word", deltas(6), slow)
	second := add("second", deltas(300), frames(deltas(300)...))
	second.lane.targets = []target{firstParty.target(), converting.target()}
	second.scripts = [][]fakeplatform.Answer{{fakeplatform.Stream(startEvent, fakeplatform.StreamError("overloaded_error", "x"))}, second.scripts[0]}
	second.served, second.outcome, second.attempts, second.ends = "b", "failed_over", "a overloaded failover, b ok serve", []string{"b ok"}
	for i := range flows {
		flows[i].call.h2 = i%2 == 1
	}
	runDoors(t, options{}, flows...)
}

// TestConvertedTimers: hold, first token, idle and total run for converted
// streams as for the others; a ping is one in any framing.
func TestConvertedTimers(t *testing.T) {
	framed := fakeplatform.Reframe
	pings := func(wait time.Duration, n int) fakeplatform.Part {
		return fakeplatform.Part{Data: framed(ping), Wait: wait, Repeat: n}
	}
	start := fakeplatform.Part{Data: framed(startEvent)}
	answer := func(parts ...fakeplatform.Part) fakeplatform.Answer {
		a := frames()
		a.Parts = parts
		return a
	}
	var flows []flow
	add := func(name, kind string, a fakeplatform.Answer, route string) *flow {
		f := flow{
			lane: doorLane(name, []target{converting.target(), firstParty.target()}, route), call: call{stream: true}, scripts: [][]fakeplatform.Answer{{a}},
			status: 200, served: "b", outcome: "failed_over", attempts: "a " + kind + " failover, b ok serve", body: firstParty.answer(questions[1], 1), ends: []string{"b ok"},
		}
		flows = append(flows, f)
		return &flows[len(flows)-1]
	}
	f := add("silence", "timeout", frames().Ending(fakeplatform.EndStall), "timeouts: {first_token: 2s}")
	f.min, f.max = 1950*time.Millisecond, 2*time.Second+slack
	f = add("pings-only", "timeout", answer(start, pings(50*time.Millisecond, -1)), "timeouts: {first_token: 2s, hold: 2s}")
	f.min, f.max = 1950*time.Millisecond, 2*time.Second+slack
	f = add("keep-alives-only", "timeout", answer(start, fakeplatform.Part{Data: fakeplatform.KeepAlive(), Wait: 50 * time.Millisecond, Repeat: -1}), "timeouts: {first_token: 2s, hold: 2s}")
	f.min, f.max = 1950*time.Millisecond, 2*time.Second+slack

	all := append([][]byte{startEvent}, wholeTail...)
	rest := partsOf(wholeTail)
	for i := range rest {
		rest[i].Data = framed(rest[i].Data)
	}
	f = add("hold", "", answer(slices.Concat([]fakeplatform.Part{start, pings(100*time.Millisecond, 24)}, rest)...), "timeouts: {hold: 1s, first_token: 10s}")
	f.served, f.outcome, f.attempts, f.ends = "a", "served", "a ok serve", []string{"a ok"}
	f.body = slices.Concat(all[0], bytes.Repeat(ping, 25), bytes.Join(all[1:], nil))
	f.min, f.max = 950*time.Millisecond, time.Second+slack

	begun := [][]byte{startEvent, fakeplatform.BlockStart(0), deltaEvent}
	f = add("idle", "", frames(begun...).Ending(fakeplatform.EndStall), "timeouts: {first_token: 1s, hold: 1s, idle: 1s}")
	f.served, f.outcome, f.attempts, f.ends = "a", "stream_failed", "a idle serve", []string{"a idle"}
	f.body, f.cut = bytes.Join(begun, nil), true

	alive := frames(begun...)
	alive.Parts = slices.Concat(alive.Parts, []fakeplatform.Part{pings(300*time.Millisecond, 5)}, rest[2:])
	f = add("idle-pings", "", alive, "timeouts: {first_token: 1s, hold: 1s, idle: 1s}")
	f.served, f.outcome, f.attempts, f.ends = "a", "served", "a ok serve", []string{"a ok"}
	f.body = slices.Concat(bytes.Join(begun, nil), bytes.Repeat(ping, 6), bytes.Join(wholeTail[2:], nil))

	endless := answer(start, pings(50*time.Millisecond, -1))
	f = add("total", "timeout", endless, "timeouts: {first_token: 1500ms, hold: 1500ms, total: 2s}")
	f.lane.targets[1] = converting.target()
	f.scripts = append(f.scripts, []fakeplatform.Answer{endless})
	f.status, f.served, f.outcome, f.attempts, f.kind, f.body, f.ends = 504, "", "exhausted", "a timeout failover, b *", "timeout_error", nil, nil
	f.min, f.max = 1950*time.Millisecond, 2*time.Second+slack
	runDoors(t, options{}, flows...)
}

// TestConvertedAtOnce: fifty at once, byte for byte; readers that are slow, and
// clients that leave.
func TestConvertedAtOnce(t *testing.T) {
	const clients, events = 50, 200
	e := startDoors(t, options{}, doorLane("many", []target{converting.target()}), doorLane("slow", []target{converting.target()}), doorLane("leaves", []target{converting.target()}))
	many := e.lane("many")
	want := fakeplatform.GoodStream("msg_many", doorModel, events)
	var all [][]byte
	for _, p := range want.Parts {
		all = append(all, p.Data)
	}
	many.fakes[0].Always(frames(all...))
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			a := many.send(many.through(call{stream: true, h2: i%2 == 1}))
			if a.status != 200 || a.err != nil || !bytes.Equal(a.body, want.Body()) {
				t.Errorf("client %d: %d, %v, %d bytes, want %d", i, a.status, a.err, len(a.body), len(want.Body()))
			}
		})
	}
	wg.Wait()
	e.metric(clients, "stream_ends_total", "target", "many-a", "end", "ok")
	e.checkSlowReader()
	e.checkLeaves()
	e.metric(0, "held_streams")
	e.metric(0, "held_bytes")
	e.metric(0, "inflight")
}

// checkSlowReader: a reader that stops holds the platform back, not the service's
// memory.
func (e *env) checkSlowReader() {
	e.t.Helper()
	l := e.lane("slow")
	delta := fakeplatform.TextDelta(0, strings.Repeat("s", 64<<10))
	a := frames(startEvent)
	a.Parts = append(a.Parts, fakeplatform.Part{Data: fakeplatform.Reframe(delta), Repeat: 500})
	l.fakes[0].Script(a)
	before := e.service().rss(e.t)
	resp, err := l.open(l.through(call{stream: true, client: ownClient()}))
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, 1<<20); err != nil {
		e.t.Fatal(err)
	}
	quiet := time.Now().Add(time.Second)
	waitUntil(e.t, quiet)
	if grown := e.service().rss(e.t) - before; grown > 128<<20 {
		e.t.Errorf("the service grew by %d MiB", grown>>20)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if want := int64(len(startEvent) + 501*len(delta)); n+1<<20 < want-(1<<20) || err != nil {
		e.t.Errorf("%d bytes of %d after a pause: %v", n, want, err)
	}
}

// checkLeaves: a client that leaves frees the platform and blames nothing.
func (e *env) checkLeaves() {
	e.t.Helper()
	l := e.lane("leaves")
	a := frames(startEvent, deltaEvent)
	a.Parts = append(a.Parts, fakeplatform.Part{Data: fakeplatform.Reframe(deltaEvent), Wait: 20 * time.Millisecond, Repeat: -1})
	l.fakes[0].Script(a)
	ctx, cancel := context.WithCancel(e.t.Context())
	resp, err := l.open(l.through(call{stream: true, ctx: ctx}))
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, int64(len(startEvent)+4*len(deltaEvent))); err != nil {
		e.t.Error(err)
	}
	cancel()
	_ = resp.Body.Close() // the client is gone
	if r := l.nth(1); r.Outcome != "client_gone" || r.summary() != "a client_gone serve" {
		e.t.Errorf("outcome %q, attempts %q", r.Outcome, r.summary())
	}
	eventually(e.t, 2*time.Second, "the platform is released", func() error {
		if r := l.fakes[0].Requests(); r[0].Gone.IsZero() {
			return errNotYet
		}
		return nil
	})
	e.checkOpened(map[string]string{"leaves-a": ""})
}

// TestConvertedKilled: a held converted stream becomes 503, a committed one is
// cut: nothing of the platform's framing reaches a client.
func TestConvertedKilled(t *testing.T) {
	held, committed := doorLane("held", []target{converting.target()}), doorLane("committed", []target{converting.target()})
	held.uncounted, committed.uncounted = true, true
	e := startDoors(t, options{}, held, committed)
	gate := make(chan struct{})
	all := append([][]byte{startEvent, ping}, wholeTail...)
	gated := func(at int) fakeplatform.Answer {
		s := frames(all...)
		s.Mid, s.MidPart = gate, at
		return s
	}
	h, c := e.lane("held"), e.lane("committed")
	h.fakes[0].Script(gated(2))
	c.fakes[0].Script(gated(4))
	first := h.later(h.through(call{stream: true}))
	resp, err := c.open(c.through(call{stream: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	want := bytes.Join(all[:4], nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%q, %v", got, err)
	}
	e.metric(1, "held_streams")
	e.service().proc.kill()
	close(gate)
	a := <-first
	if kind, _, err := messagesError(a); a.status != 503 || kind != "overloaded_error" || err != nil {
		t.Errorf("held: %d %q (%v): %.200q", a.status, kind, err, a.body)
	}
	if rest, err := io.ReadAll(resp.Body); err == nil || len(rest) != 0 {
		t.Errorf("committed: %q, %v; it must be cut", rest, err)
	}
	e.service().start()
	e.waitReady()
	if got := servedBy(c, c.through(call{stream: true})); got != "200 committed-a" {
		t.Errorf("after the restart: %s", got)
	}
}

// TestConvertedDrain: SIGTERM lets a converted stream come to its end, and a held
// one fail over.
func TestConvertedDrain(t *testing.T) {
	e := startDoors(t, options{serve: []string{"--drain", "20s"}}, doorLane("running", []target{converting.target()}), doorLane("failing", []target{converting.target(), firstParty.target()}))
	gate := make(chan struct{})
	all := append([][]byte{startEvent, ping}, wholeTail...)
	running, failing := e.lane("running"), e.lane("failing")
	s := frames(all...)
	s.Mid, s.MidPart = gate, 4
	running.fakes[0].Script(s)
	bad := frames(startEvent, ping, fakeplatform.StreamError("overloaded_error", "x"))
	bad.Mid, bad.MidPart = gate, 2
	failing.fakes[0].Script(bad)
	first, second := running.later(running.through(call{stream: true})), failing.later(failing.through(call{stream: true}))
	running.at(0, 1)
	failing.at(0, 1)
	if err := e.service().proc.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Second, "/readyz says no", func() error {
		if _, err := get(fmt.Sprintf("http://127.0.0.1:%d/readyz", e.service().admin)); err == nil {
			return errNotYet
		}
		return nil
	})
	close(gate)
	if a := <-first; a.status != 200 || a.err != nil || !bytes.Equal(a.body, bytes.Join(all, nil)) {
		t.Errorf("running: %d %q %v", a.status, a.body, a.err)
	}
	if a := <-second; a.status != 200 || a.err != nil || !bytes.Equal(a.body, firstParty.answer(questions[1], 1)) {
		t.Errorf("failing: %d %q %v", a.status, a.body, a.err)
	}
	<-e.service().proc.done
	if r := running.nth(1); r.Outcome != "served" || r.Stop != "end_turn" {
		t.Errorf("record %s", r.line)
	}
}

// TestConvertedAtReplicas: the attempt, the judge and the entries of a converted
// stream land on a replica that did not plan it.
func TestConvertedAtReplicas(t *testing.T) {
	const requests = 24
	e := startDoors(t, options{replicas: 2, concurrency: "2"}, doorLane("replicas", []target{firstParty.target(), converting.target()}))
	l := e.lane("replicas")
	l.fakes[0].Always(entitlement)
	want := fakeplatform.GoodStream("msg_replicas", doorModel, 50)
	var events [][]byte
	for _, p := range want.Parts {
		events = append(events, p.Data)
	}
	l.fakes[1].Always(paused(frames(events...)))
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			a := l.send(l.through(call{stream: true, pad: 3000}))
			if a.status != 200 || a.err != nil || !bytes.Equal(a.body, want.Body()) {
				t.Errorf("%d, %v, %d bytes", a.status, a.err, len(a.body))
			}
		})
	}
	wg.Wait()
	l.nth(requests)
	for _, r := range l.records() {
		if r.summary() != "a entitlement failover, b ok serve" || r.Outcome != "failed_over" || r.Stop != "end_turn" || r.Usage == nil {
			t.Errorf("record %s", r.line)
		}
	}
	e.metric(requests, "stream_ends_total", "target", "replicas-b", "end", "ok")
	if n, err := e.sum("join_miss_total"); err != nil || n == 0 {
		t.Errorf("no attempt landed on the other replica (%v, %v): the case shows nothing", n, err)
	}
	e.metric(0, "inflight")
}
