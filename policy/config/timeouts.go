package config

import "time"

// timeouts compiles and compares a route's timeouts. Only what the file writes
// is compared, with the other's default where that is a time: auto is made to
// fit when a request is there.
func (c *compiler) timeouts(path string, f FileTimeouts) Timeouts {
	hold, first, total := join(path, "hold"), join(path, "first_token"), join(path, "total")
	t := Timeouts{
		Attempt: time.Duration(f.Attempt), FirstToken: time.Duration(f.FirstToken),
		Hold: time.Duration(f.Hold), HoldWritten: c.has(hold),
		Idle:  time.Duration(f.Idle),
		Total: time.Duration(f.Total), TotalWritten: c.has(total),
	}
	if t.FirstToken > 0 {
		if t.HoldWritten && c.ok(hold, first) && t.Hold > t.FirstToken {
			c.fail(hold, "is %s, above first_token (%s)", durationText(t.Hold), durationText(t.FirstToken))
		}
		if !t.HoldWritten {
			t.Hold = min(t.Hold, t.FirstToken)
		}
		c.longer(join(path, "idle"), first, t.Idle, t.FirstToken)
		c.beyond(total, first, t.Total, t.FirstToken)
	}
	if t.Attempt > 0 {
		c.beyond(total, join(path, "attempt"), t.Total, t.Attempt)
	}
	return t
}

// beyond is longer without equality: a total that ends with the attempt leaves
// no time for another one.
func (c *compiler) beyond(big, small string, bigValue, smallValue time.Duration) {
	switch {
	case bigValue > smallValue || !c.ok(big, small):
	case c.has(big):
		c.fail(big, "is %s; it must be above %s (%s)", durationText(bigValue), lastPart(small), durationText(smallValue))
	default:
		c.fail(small, "is %s; it must be below %s (%s by default)", durationText(smallValue), lastPart(big), durationText(bigValue))
	}
}

// entryTimeouts compares an entry's own limits with its route's. They break the
// rule, whatever the route writes.
func (c *compiler) entryTimeouts(path, route string, e *Entry, t Timeouts) {
	attempt, first := join(path, "attempt"), join(path, "first_token")
	for at, value := range map[string]time.Duration{attempt: e.Attempt, first: e.FirstToken} {
		if value > 0 && c.ok(at, join(route, "total")) && value >= t.Total {
			c.fail(at, "is %s; it must be below the route's total (%s)", durationText(value), durationText(t.Total))
		}
	}
	if e.FirstToken > t.Idle && c.ok(first, join(route, "idle")) {
		c.fail(first, "is %s, above the route's idle (%s)", durationText(e.FirstToken), durationText(t.Idle))
	}
}
