package test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// procCounts are Envoy's counts of ext_proc, all filters together.
type procCounts struct{ streams, sent int64 }

func (e *env) procCounts() (procCounts, error) {
	var c procCounts
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/stats?filter=ext_proc", e.admin))
	if err != nil {
		return c, err
	}
	for line := range strings.SplitSeq(text, "\n") {
		name, v, _ := strings.Cut(line, ": ")
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			continue // a histogram
		}
		switch {
		case strings.HasSuffix(name, ".streams_started"):
			c.streams += n
		case strings.HasSuffix(name, ".stream_msgs_sent"):
			c.sent += n
		}
	}
	return c, nil
}

// TestExactCounts: what the service costs a request is a number, not a feeling.
func TestExactCounts(t *testing.T) {
	busy := entitlement
	one := fakeplatform.SplitEvery(1<<20, startEvent, wholeTail[0], wholeTail[1], wholeTail[2], wholeTail[3], wholeTail[4])
	cases := []struct {
		name          string
		stream        bool
		first         func() fakeplatform.Answer
		streams, sent int64
		most          int64 // messages; where chunks decide, between sent and most
	}{
		{"healthy", false, nil, 1, 3, 3},
		{"healthy-sse", true, func() fakeplatform.Answer { return one }, 2, 5, 7},
		{"one-failed", false, func() fakeplatform.Answer { return busy }, 3, 6, 8},
	}
	var lanes []lane
	for _, c := range cases {
		lanes = append(lanes, lane{name: c.name, targets: two()})
	}
	e := start(t, options{}, lanes...)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			shared := e.lane(c.name)
			l := shared.in(t)
			if c.first != nil {
				l.fakes[0].Always(c.first())
			}
			const n = 10
			before, err := e.procCounts()
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				if a := l.send(call{stream: c.stream}); a.status != 200 {
					t.Fatalf("status %d", a.status)
				}
			}
			var got procCounts
			if err := poll(2*time.Second, func() error {
				after, err := e.procCounts()
				got = procCounts{after.streams - before.streams, after.sent - before.sent}
				if err == nil && (got.streams != n*c.streams || got.sent < n*c.sent) {
					err = errNotYet
				}
				return err
			}); err != nil && got == (procCounts{}) {
				t.Fatalf("Envoy counts nothing: %v", err)
			}
			if got.streams != n*c.streams || got.sent < n*c.sent || got.sent > n*c.most {
				t.Errorf("%d requests: %d gRPC streams (want %d), %d messages (want %d to %d)", n, got.streams, n*c.streams, got.sent, n*c.sent, n*c.most)
			}
		})
	}
}
