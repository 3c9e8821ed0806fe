package extproc

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// Entries of an exchange that another replica planned end it here when that one
// is gone.
func TestOrphan(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempt  *ended
		exchange ended
		want     string
		last     string // outcome and decision of the attempt; "" is not compared
	}{
		{"served", &ended{tail: `{"stop_reason":"end_turn"}`}, ended{}, trail.OutcomeServed, "ok serve"},
		{"served, the attempt's entry is missing", nil, ended{}, trail.OutcomeServed, "ok serve"},
		{"failed with the service", nil, ended{status: 503, details: "ext_proc_error_grpc_error_14"}, trail.OutcomeServiceDown, ""},
		{"client gone", &ended{status: -1, flag: "DC"}, ended{status: -1, flag: "DC"}, trail.OutcomeClientGone, ""},
		{"an error that nobody judged", &ended{status: 529, details: "via_upstream"}, ended{status: 529, details: "via_upstream"}, trail.OutcomeExhausted, "overloaded stop"},
		{"a refusal that nobody judged", &ended{status: 400, details: "via_upstream"}, ended{status: 400, details: "via_upstream"}, trail.OutcomeStopped, "invalid_request stop"},
		{"a refusal that nobody judged, the attempt's entry is missing", nil, ended{status: 429, details: "via_upstream"}, trail.OutcomeExhausted, "rate_limit stop"},
		{"an error, the attempt's entry is missing", nil, ended{status: 529, details: "via_upstream"}, trail.OutcomeServiceDown, ""},
		{"Envoy's error in place of an answer", &ended{status: 503, details: "upstream_reset_before_response_started"}, ended{status: 503, details: "via_upstream"}, trail.OutcomeServiceDown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTwo(t, twoTargets, func(a, b *replica) {
				e := a.post(plainBody)
				if c.attempt != nil {
					e.log(b, names.LogAttempt, *c.attempt)
				}
				e.log(b, names.LogExchange, c.exchange)
				e.log(b, names.LogExchange, c.exchange) // a tombstone
				rec := b.record()
				if rec.Outcome != c.want || rec.ID != e.headers[names.ID] || len(rec.Attempts) != 1 {
					t.Errorf("%+v", rec)
				}
				if got := rec.Attempts[0].Outcome + " " + rec.Attempts[0].Decision; c.last != "" && got != c.last {
					t.Errorf("the attempt is %q, want %q", got, c.last)
				}
				e.plan.leave()
			})
		})
	}
}

// The attempt's entry may come after its exchange's.
func TestOrphanToldInTheOtherOrder(t *testing.T) {
	inTwo(t, twoTargets, func(a, b *replica) {
		e := a.post(plainBody)
		failed := ended{status: 529, details: "via_upstream"}
		e.log(b, names.LogExchange, failed)
		pass(entriesWait / 2)
		e.log(b, names.LogAttempt, failed)
		rec := b.record()
		if rec.Outcome != trail.OutcomeExhausted || rec.Attempts[0].Outcome != "overloaded" || rec.ServedBy != "a" {
			t.Errorf("%+v", rec)
		}
		e.plan.leave()
	})
}

// While the replica that planned lives it gets the entries, also those of an
// exchange that was joined here.
func TestHandOn(t *testing.T) {
	for _, joined := range []bool{false, true} {
		t.Run(fmt.Sprintf("joined %v", joined), func(t *testing.T) {
			inTwo(t, twoTargets, func(a, b *replica) {
				queue := make(chan handover, 10)
				b.server.peers = NewPeers(nil, insecure.NewCredentials(), slog.New(slog.DiscardHandler))
				b.server.peers.known, b.server.peers.resolved = map[string]bool{"a.test:9002": true}, time.Now()
				b.server.peers.peers["a.test:9002"] = &peer{queue: queue}
				e := a.post(plainBody)
				if joined {
					e.judged(a, overloaded(), overloadedBody)
					e.attempt(b)
				}
				e.final(from(200, "application/json"))
				e.plan.leave()
				e.log(b, names.LogAttempt, ended{tail: "{}"})
				e.log(b, names.LogExchange, ended{})
				if n := b.server.table.all(); n != 0 {
					t.Errorf("%d exchanges are kept once their entry was handed on", n)
				}
				if len(queue) != 2 {
					t.Fatalf("%d entries handed on, want 2", len(queue))
				}
				var msg wire.LogMessage
				for range 2 { // what a's own access-log service does with them
					h := <-queue
					if err := (wire.Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(h.msg)}, &msg); err != nil {
						t.Fatal(err)
					}
					for i := range msg.Entries {
						a.server.logged(msg.Log, &msg.Entries[i])
					}
				}
				msg.Release()
				synctest.Wait()
				a.record()
				if n := len(b.records()); n != 0 {
					t.Errorf("%d records at b as well", n)
				}
			})
		})
	}
}
