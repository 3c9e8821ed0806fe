package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// fate is what becomes of a request on its way.
type fate uint8

const (
	healthy  fate = iota
	failing       // the first attempt gets a 529
	crossing      // on side P it goes to Amazon Bedrock, in whose framing the answer comes
)

// load is one load that all sides are measured under.
type load struct {
	size     int           // of the request body
	events   int           // of the answer; 0 is JSON
	pace     time.Duration // between events
	clients  int
	also     fate    // what else is measured beside healthy requests
	rate     float64 // requests a second in an open loop; 0 is a closed one
	requests int     // a segment
	blocks   int     // at most
	limit    time.Duration
	quick    bool // part of the quick run
}

// loads are the cases of a run, small bodies first: memory that a large one
// takes does not show in the peaks of those before it. The limits add up to
// thirteen minutes, of which a quiet machine takes nine.
var loads = []load{
	{size: kib, clients: 1, requests: 40, blocks: 80, limit: 45 * time.Second, quick: true},
	{size: kib, clients: 16, requests: 160, blocks: 20, limit: 30 * time.Second, quick: true},
	{size: kib, clients: 1, requests: 30, rate: 100, blocks: 16, limit: 30 * time.Second},
	{size: kib, clients: 1, also: failing, requests: 20, blocks: 60, limit: 45 * time.Second, quick: true},
	{size: kib, clients: 16, also: failing, requests: 96, blocks: 12, limit: 30 * time.Second},
	{size: kib, events: 200, pace: time.Millisecond, clients: 1, requests: 1, blocks: 24, limit: 40 * time.Second, quick: true},
	{size: kib, events: 200, pace: time.Millisecond, clients: 1, also: failing, requests: 1, blocks: 8, limit: 30 * time.Second},
	{size: kib, events: 200, pace: 8 * time.Millisecond, clients: 16, requests: 16, blocks: 4, limit: 40 * time.Second, quick: true},
	{size: kib, events: 1000, pace: time.Millisecond, clients: 1, requests: 1, blocks: 6, limit: 40 * time.Second},
	{size: kib, events: 1000, pace: 4 * time.Millisecond, clients: 16, requests: 16, blocks: 2, limit: 50 * time.Second},
	{size: kib, clients: 1, also: crossing, requests: 30, blocks: 40, limit: 20 * time.Second, quick: true},
	{size: kib, events: 200, pace: time.Millisecond, clients: 1, also: crossing, requests: 1, blocks: 12, limit: 25 * time.Second, quick: true},
	{size: 100 * kib, clients: 1, requests: 20, blocks: 40, limit: 20 * time.Second, quick: true},
	{size: 100 * kib, clients: 16, requests: 64, blocks: 12, limit: 15 * time.Second},
	{size: 100 * kib, clients: 1, also: failing, requests: 10, blocks: 30, limit: 20 * time.Second},
	{size: mib, clients: 1, requests: 6, blocks: 40, limit: 20 * time.Second, quick: true},
	{size: mib, clients: 16, requests: 32, blocks: 8, limit: 20 * time.Second},
	{size: mib, clients: 1, also: failing, requests: 4, blocks: 20, limit: 20 * time.Second, quick: true},
	{size: mib, clients: 16, also: failing, requests: 32, blocks: 5, limit: 20 * time.Second},
	{size: mib, clients: 1, also: crossing, requests: 4, blocks: 20, limit: 15 * time.Second, quick: true},
	{size: 8 * mib, clients: 1, requests: 2, blocks: 30, limit: 25 * time.Second, quick: true},
	{size: 8 * mib, clients: 16, requests: 16, blocks: 5, limit: 25 * time.Second},
	{size: 8 * mib, clients: 1, also: failing, requests: 1, blocks: 20, limit: 25 * time.Second},
	{size: 32 * mib, clients: 1, requests: 1, blocks: 20, limit: 30 * time.Second, quick: true},
	{size: 32 * mib, clients: 16, requests: 16, blocks: 3, limit: 40 * time.Second},
	{size: 32 * mib, clients: 1, also: failing, requests: 1, blocks: 12, limit: 30 * time.Second},
	{size: 32 * mib, clients: 1, also: crossing, requests: 1, blocks: 12, limit: 20 * time.Second, quick: true},
}

// name is what the load is called in the table.
func (l load) name() string {
	if l.events > 0 {
		return fmt.Sprintf("SSE, %d events", l.events)
	}
	size := fmt.Sprintf("%d MB", l.size/mib)
	if l.size < mib {
		size = fmt.Sprintf("%d KB", l.size/kib)
	}
	if l.rate > 0 {
		return fmt.Sprintf("%s, %.0f requests/s", size, l.rate)
	}
	return size
}

func (l load) title() string {
	t := l.name() + ", one client"
	if l.clients > 1 {
		t = fmt.Sprintf("%s, %d clients", l.name(), l.clients)
	}
	switch l.also {
	case failing:
		t += ", one failed attempt"
	case crossing:
		t += ", crossing"
	}
	return t
}

// chosen are the loads of a run.
func chosen(quick bool, only string) []load {
	var out []load
	for _, l := range loads {
		if !strings.Contains(l.title(), only) || quick && !l.quick {
			continue
		}
		if quick {
			l.limit, l.blocks = l.limit/8, min(l.blocks, 8)
		}
		out = append(out, l)
	}
	return out
}
