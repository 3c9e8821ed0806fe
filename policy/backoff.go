package policy

import (
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Backoff is the wait before the n-th retry at the same target, n from 1 (less
// counts as 1): full jitter, anything from 0 to the ceiling, which is b.Base
// doubled with each further retry up to b.Max. rnd returns a number in [0, 1);
// math/rand/v2.Float64 is one.
func Backoff(b config.Backoff, n int, rnd func() float64) time.Duration {
	if b.Base <= 0 || b.Max <= 0 {
		return 0
	}
	ceiling := min(b.Base, b.Max)
	// Halving the limit instead of doubling past it keeps clear of overflow.
	for i := 1; i < n && ceiling < b.Max; i++ {
		if ceiling > b.Max/2 {
			ceiling = b.Max
			break
		}
		ceiling *= 2
	}
	return time.Duration(rnd() * float64(ceiling))
}
