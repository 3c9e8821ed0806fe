package policy

import (
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

func TestBackoffCeilings(t *testing.T) {
	b := config.Backoff{Base: 250 * time.Millisecond, Max: 8 * time.Second}
	whole := func() float64 { return 1 } // never returned by a real source: shows the ceiling
	for n, want := range map[int]time.Duration{
		-1: 250 * time.Millisecond, 0: 250 * time.Millisecond, 1: 250 * time.Millisecond,
		2: 500 * time.Millisecond, 3: time.Second, 6: 8 * time.Second, 7: 8 * time.Second, 1 << 30: 8 * time.Second,
	} {
		if got := Backoff(b, n, whole); got != want {
			t.Errorf("retry %d: %v, want %v", n, got, want)
		}
	}
}

func TestBackoffIsFullJitter(t *testing.T) {
	b := config.Backoff{Base: time.Second, Max: 3 * time.Second}
	for share, want := range map[float64]time.Duration{0: 0, 0.25: 750 * time.Millisecond, 0.5: 1500 * time.Millisecond} {
		if got := Backoff(b, 3, func() float64 { return share }); got != want {
			t.Errorf("share %v: %v, want %v", share, got, want)
		}
	}
}

func TestBackoffOddRanges(t *testing.T) {
	half := func() float64 { return 0.5 }
	for _, c := range []struct {
		name string
		b    config.Backoff
		want time.Duration
	}{
		{"none", config.Backoff{}, 0},
		{"base above max", config.Backoff{Base: 10 * time.Second, Max: 2 * time.Second}, time.Second},
		{"huge", config.Backoff{Base: 1 << 62, Max: 1<<63 - 1}, 1 << 62},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Backoff(c.b, 9, half); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
