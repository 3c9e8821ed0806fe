package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/internal/trail"
)

// want is what a request must come to.
type want struct {
	status int
	served string // x-crossdoor-served-by; "" when Crossdoor answers itself
	// attempts are the trail's, `anthropic overloaded, claude-aws ok`, and skipped
	// those that were left out, `anthropic ejected`.
	attempts, skipped string
	outcome           string // the trail's
	errType           string // of an error in the client's schema; "" for none
	retryAfter        span   // of the answer, in seconds; zero is not looked at
	took              span   // until the headers; zero is not looked at
}

// span is a range of times, both ends included.
type span struct{ from, to time.Duration }

// observed is all that is known about a request after its end.
type observed struct {
	answer

	kind     kind
	sentSHA  string
	arrivals []arrival
	record   *trail.Record // nil when there was none
}

// check is what is wrong, one line for people each; none when all is as it must
// be.
func (w want) check(o observed) []string {
	c := &checker{}
	if o.err != nil {
		c.failf("the answer broke off: %v", o.err)
	}
	c.same("status", o.status, w.status)
	if o.status == 0 {
		return c.problems
	}
	c.same("x-crossdoor-served-by", o.header.Get("x-crossdoor-served-by"), w.served)
	c.same("x-crossdoor-attempts", o.header.Get("x-crossdoor-attempts"), strconv.Itoa(len(list(w.attempts))))
	w.checkBody(c, o)
	w.checkTimes(c, o)
	w.checkArrivals(c, o)
	w.checkRecord(c, o.record)
	for name := range o.header {
		if strings.HasPrefix(strings.ToLower(name), "x-envoy-") {
			c.failf("the client got %s", name)
		}
	}
	if server := o.header.Get("server"); strings.Contains(server, "envoy") {
		c.failf("the client got server: %s", server)
	}
	return c.problems
}

func (w want) checkBody(c *checker, o observed) {
	if o.kind == asStream && o.status == 200 {
		for _, event := range []string{"message_start", "message_stop"} {
			c.same(event+" events", bytes.Count(o.body, []byte("event: "+event+"\n")), 1)
		}
	}
	if w.served != "" {
		i := len(o.arrivals) - 1
		if i < 0 || o.arrivals[i].target != w.served {
			c.failf("%s did not get the request last", w.served)
		} else if !bytes.Equal(o.body, o.arrivals[i].body) {
			c.failf("the client's %d bytes are not the %d that %s sent", len(o.body), len(o.arrivals[i].body), w.served)
		}
	}
	if w.errType == "" {
		return
	}
	var e struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(o.body, &e); err != nil || e.Type != "error" || e.Error.Message == "" {
		c.failf("no error in the client's schema: %.120q", o.body)
	}
	c.same("error type", e.Error.Type, w.errType)
	if w.served == "" {
		c.same("x-should-retry", o.header.Get("x-should-retry"), "false")
	}
}

func (w want) checkTimes(c *checker, o observed) {
	if w.took != (span{}) && (o.headers < w.took.from || o.headers > w.took.to) {
		c.failf("the answer came after %v, not within %v to %v", o.headers.Round(time.Millisecond), w.took.from, w.took.to)
	}
	if w.retryAfter == (span{}) {
		return
	}
	text := o.header.Get("retry-after")
	seconds, err := strconv.Atoi(text)
	if d := time.Duration(seconds) * time.Second; err != nil || d < w.retryAfter.from || d > w.retryAfter.to {
		c.failf("retry-after is %q, not within %v to %v", text, w.retryAfter.from, w.retryAfter.to)
	}
}

// checkArrivals: the platforms got what the trail must say, and the client's
// bytes where nothing has to change.
func (w want) checkArrivals(c *checker, o observed) {
	got := make([]string, 0, len(o.arrivals))
	for _, a := range o.arrivals {
		got = append(got, a.target)
		if a.Refusal != "" {
			c.failf("%s refused the request: %s", a.target, a.Refusal)
		}
		if a.target != targetFoundry && a.BodySHA256 != o.sentSHA {
			c.failf("%s did not get the bytes that the client sent", a.target)
		}
	}
	var wanted []string
	for _, one := range list(w.attempts) {
		if target, _, _ := strings.Cut(one, " "); target != targetUnreachable {
			wanted = append(wanted, target)
		}
	}
	if !slices.Equal(got, wanted) {
		c.failf("the platforms that got it: %s, not %s", orNone(got), orNone(wanted))
	}
}

func (w want) checkRecord(c *checker, r *trail.Record) {
	if r == nil {
		c.failf("the trail has no record of it")
		return
	}
	attempts := make([]string, 0, len(r.Attempts))
	for _, a := range r.Attempts {
		attempts = append(attempts, a.Target+" "+a.Outcome)
	}
	var skipped []string
	for _, p := range r.Plan {
		if p.Skipped != "" {
			skipped = append(skipped, p.Target+" "+p.Skipped)
		}
	}
	c.same("attempts in the trail", strings.Join(attempts, ", "), w.attempts)
	c.same("left out, says the trail", strings.Join(skipped, ", "), w.skipped)
	c.same("outcome in the trail", r.Outcome, w.outcome)
	c.same("served_by in the trail", r.ServedBy, w.served)
	c.same("status in the trail", r.Status, w.status)
}

// checker collects problems.
type checker struct{ problems []string }

func (c *checker) failf(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) same(what string, got, wanted any) {
	if got != wanted {
		c.failf("%s: %s, not %s", what, said(got), said(wanted))
	}
}

func said(v any) string {
	if v == "" {
		return "none"
	}
	return fmt.Sprint(v)
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}
