package config

import (
	"slices"
	"testing"
	"time"
)

func TestIdle(t *testing.T) {
	const idle = 5 * time.Minute
	for name, c := range map[string]struct {
		timeouts Timeouts
		entry    time.Duration
		want     time.Duration // of an answer that is not streamed
	}{
		"auto attempt":                    {Timeouts{Idle: idle, Total: 9 * time.Minute}, 0, 8 * time.Minute},
		"auto is half of a written total": {Timeouts{Idle: idle, Total: 14 * time.Minute, TotalWritten: true}, 0, 7 * time.Minute},
		"short total":                     {Timeouts{Idle: idle, Total: time.Minute, TotalWritten: true}, 0, idle},
		"attempt above idle":              {Timeouts{Idle: idle, Attempt: 6 * time.Minute}, 0, 6 * time.Minute},
		"attempt below idle":              {Timeouts{Idle: idle, Attempt: time.Minute}, 0, idle},
		"the entry's own":                 {Timeouts{Idle: idle, Attempt: 6 * time.Minute}, 20 * time.Minute, 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Route{Timeouts: c.timeouts}
			e := &Entry{Attempt: c.entry}
			if got := r.Idle(e, false); got != c.want {
				t.Errorf("not streamed: %v, want %v", got, c.want)
			}
			if got := r.Idle(e, true); got != idle {
				t.Errorf("streamed: %v, want %v", got, idle)
			}
		})
	}
}

func TestIdleValues(t *testing.T) {
	p := &Policy{Routes: []*Route{
		{Timeouts: Timeouts{Idle: time.Minute, Attempt: time.Second}, Chain: []*Entry{{}, {Attempt: 2 * time.Minute}}},
		{Timeouts: Timeouts{Idle: time.Minute, Attempt: time.Second}, Chain: []*Entry{{}}},
		{Timeouts: Timeouts{Idle: 2 * time.Second, Attempt: 2 * time.Minute}, Chain: []*Entry{{}}},
	}}
	want := []time.Duration{2 * time.Second, time.Minute, 2 * time.Minute}
	if got := p.IdleValues(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestIdleHeader(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "300s", 1500 * time.Millisecond: "1.5s", 20 * time.Millisecond: "0.02s", 0: "0s", time.Hour: "3600s",
	} {
		if got := IdleHeader(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
