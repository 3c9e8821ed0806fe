package policy

import (
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

func TestRetryAfter(t *testing.T) {
	at := func(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }
	date := func(d time.Duration) string { return noon.Add(d).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	const left, reset = "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"
	for _, c := range []struct {
		name    string
		headers []string
		want    time.Duration
		ok      bool
	}{
		{"none", nil, 0, false},
		{"milliseconds", []string{"retry-after-ms", "1500"}, 1500 * time.Millisecond, true},
		{"milliseconds before seconds", []string{"retry-after-ms", "1500", "retry-after", "9"}, 1500 * time.Millisecond, true},
		{"fractional milliseconds", []string{"retry-after-ms", "0.5"}, 500 * time.Microsecond, true},
		{"bad milliseconds, good seconds", []string{"retry-after-ms", "soon", "retry-after", "9"}, 9 * time.Second, true},
		{"negative milliseconds, good seconds", []string{"retry-after-ms", "-1", "retry-after", "9"}, 9 * time.Second, true},
		{"seconds", []string{"retry-after", "20"}, 20 * time.Second, true},
		{"blanks", []string{"retry-after", " 20 "}, 20 * time.Second, true},
		{"fraction", []string{"retry-after", "1.5"}, 1500 * time.Millisecond, true},
		{"zero", []string{"retry-after", "0"}, 0, true},
		{"an hour", []string{"retry-after", "3600"}, time.Hour, true},
		{"absurd", []string{"retry-after", "99999999999999999999999999"}, longestRetryAfter, true},
		{"unit", []string{"retry-after", "120s"}, 0, false},
		{"empty", []string{"retry-after", ""}, 0, false},
		{"negative", []string{"retry-after", "-5"}, 0, false},
		{"not a number", []string{"retry-after", "NaN"}, 0, false},
		{"infinite", []string{"retry-after", "Inf"}, 0, false},
		{"exponent", []string{"retry-after", "1e3"}, 0, false},
		{"hexadecimal", []string{"retry-after", "0x10"}, 0, false},
		{"point", []string{"retry-after", "."}, 0, false},
		{"two points", []string{"retry-after", "1.2.3"}, 0, false},
		{"date", []string{"retry-after", date(30 * time.Second)}, 30 * time.Second, true},
		{"date now", []string{"retry-after", date(0)}, 0, true},
		{"date past", []string{"retry-after", date(-time.Second)}, 0, false},
		{"old date form", []string{"retry-after", noon.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT")}, time.Minute, true},
		{"asctime", []string{"retry-after", noon.Add(time.Minute).Format(time.ANSIC)}, time.Minute, true},
		{"exhausted bucket only", []string{left, "0", reset, at(20 * time.Second),
			"anthropic-ratelimit-input-tokens-remaining", "16000", "anthropic-ratelimit-input-tokens-reset", at(50 * time.Second)}, 20 * time.Second, true},
		{"latest exhausted", []string{left, "0", reset, at(20 * time.Second),
			"anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset", at(50 * time.Second)}, 50 * time.Second, true},
		{"nothing exhausted", []string{left, "1", reset, at(20 * time.Second)}, 0, false},
		{"no remaining", []string{reset, at(20 * time.Second)}, 0, false},
		{"bad reset", []string{left, "0", reset, "in a while"}, 0, false},
		{"past reset", []string{left, "0", reset, at(-time.Second)}, 0, false},
		{"seconds before reset", []string{"retry-after", "3", left, "0", reset, at(20 * time.Second)}, 3 * time.Second, true},
		{"bad seconds, then reset", []string{"retry-after", "-3", left, "0", reset, at(20 * time.Second)}, 20 * time.Second, true},
		{"past date, then reset", []string{"retry-after", date(-time.Hour), left, "0", reset, at(20 * time.Second)}, 20 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := RetryAfter(headers(c.headers...), noon)
			if got != c.want || ok != c.ok {
				t.Errorf("got %v %v, want %v %v", got, ok, c.want, c.ok)
			}
		})
	}
	if d, ok := RetryAfter(nil, noon); d != 0 || ok {
		t.Errorf("without headers: %v %v", d, ok)
	}
}

// The error object's own time is the last that is asked.
func TestRetryTimeOfAnErrorObject(t *testing.T) {
	const left, reset = "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"
	delayed := with(google(429, "RESOURCE_EXHAUSTED"), func(a *Answer) { a.RetryDelay = 12500 * time.Millisecond })
	for _, c := range []struct {
		name   string
		answer Answer
		want   time.Duration
		ok     bool
	}{
		{"alone", delayed, 12500 * time.Millisecond, true},
		{"after a header", with(delayed, func(a *Answer) { a.Header = headers("retry-after", "3") }), 3 * time.Second, true},
		{"after a stated 0", with(delayed, func(a *Answer) { a.Header = headers("retry-after", "0") }), 0, true},
		{"after a reset", with(delayed, func(a *Answer) {
			a.Header = headers(left, "0", reset, noon.Add(time.Minute).Format(time.RFC3339))
		}), time.Minute, true},
		{"malformed headers", with(delayed, func(a *Answer) { a.Header = headers("retry-after", "soon") }), 12500 * time.Millisecond, true},
		{"of an event", with(delayed, func(a *Answer) { a.Stream, a.Status, a.ErrorType = true, 200, "rate_limit_error" }), 12500 * time.Millisecond, true},
		{"absurd", with(delayed, func(a *Answer) { a.RetryDelay = 1 << 62 }), longestRetryAfter, true},
		{"none", google(429, "RESOURCE_EXHAUSTED"), 0, false},
		{"negative", with(delayed, func(a *Answer) { a.RetryDelay = -1 }), 0, false},
		{"not the platform's", with(delayed, func(a *Answer) { a.Local = "UF;upstream" }), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Classify(c.answer, noon)
			if o.RetryAfter != c.want || o.HasRetryAfter != c.ok {
				t.Errorf("got %v %v, want %v %v", o.RetryAfter, o.HasRetryAfter, c.want, c.ok)
			}
		})
	}
}

func TestCooldown(t *testing.T) {
	route := config.RetryAfter{Default: 2 * time.Second, Max: time.Minute}
	for _, c := range []struct {
		name  string
		o     Outcome
		route config.RetryAfter
		want  time.Duration
	}{
		{"stated", Outcome{RetryAfter: 7 * time.Second, HasRetryAfter: true}, route, 7 * time.Second},
		{"stated zero", Outcome{HasRetryAfter: true}, route, 0},
		{"stated above the limit", Outcome{RetryAfter: time.Hour, HasRetryAfter: true}, route, time.Minute},
		{"none", Outcome{}, route, 2 * time.Second},
		{"none, contract's default", Outcome{}, config.RetryAfter{}, 5 * time.Second},
		{"contract's limit", Outcome{RetryAfter: time.Hour, HasRetryAfter: true}, config.RetryAfter{}, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Cooldown(c.o, c.route); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
