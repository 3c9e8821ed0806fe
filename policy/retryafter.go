package policy

import (
	"strconv"
	"strings"
	"time"
)

// longestRetryAfter is where a stated time is cut, so that no sum of times
// overflows; every use of one is bounded far lower.
const longestRetryAfter = 366 * 24 * time.Hour

// rateLimits are the buckets X of anthropic-ratelimit-X-remaining and -reset.
var rateLimits = []string{"requests", "tokens", "input-tokens", "output-tokens"}

// RetryAfter is the wait that response headers ask for, counted from now. The
// order is the contract's (section 4): retry-after-ms; retry-after in seconds,
// also fractions, or as an HTTP date; the latest anthropic-ratelimit-*-reset
// whose -remaining is 0. What is malformed, negative or past is ignored, and the
// next form is asked. A stated 0 is a time: (0, true). header takes lower-case
// names and may be nil.
func RetryAfter(header func(name string) string, now time.Time) (time.Duration, bool) {
	if header == nil {
		return 0, false
	}
	if d, ok := decimal(header("retry-after-ms"), time.Millisecond); ok {
		return d, true
	}
	value := strings.TrimSpace(header("retry-after"))
	if d, ok := decimal(value, time.Second); ok {
		return d, true
	}
	if at, ok := httpDate(value); ok {
		if d, ok := until(at, now); ok {
			return d, true
		}
	}
	return latestReset(header, now)
}

// retryTime is the wait that an answer asks for: by its headers, else by its
// error object, the last in the contract's order.
func retryTime(a *Answer, now time.Time) (time.Duration, bool) {
	if d, ok := RetryAfter(a.Header, now); ok {
		return d, true
	}
	return min(max(a.RetryDelay, 0), longestRetryAfter), a.RetryDelay > 0
}

// latestReset is the last moment at which an exhausted bucket is filled again.
// Buckets that still hold something do not count: theirs is no reason to wait.
func latestReset(header func(string) string, now time.Time) (time.Duration, bool) {
	var latest time.Duration
	found := false
	for _, bucket := range rateLimits {
		left, ok := decimal(header("anthropic-ratelimit-"+bucket+"-remaining"), 1)
		if !ok || left != 0 {
			continue
		}
		at, err := time.Parse(time.RFC3339, strings.TrimSpace(header("anthropic-ratelimit-"+bucket+"-reset")))
		if err != nil {
			continue
		}
		if d, ok := until(at, now); ok {
			latest, found = max(latest, d), true
		}
	}
	return latest, found
}

// until is the time from now to at; false when at is past.
func until(at, now time.Time) (time.Duration, bool) {
	d := at.Sub(now)
	if d < 0 {
		return 0, false
	}
	return min(d, longestRetryAfter), true
}

// decimal reads digits with at most one point. strconv alone would also take
// signs, exponents, hexadecimals, "Inf" and "NaN", none of which a header means.
func decimal(s string, unit time.Duration) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	digits, points := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			points++
		default:
			return 0, false
		}
	}
	if digits == 0 || points > 1 {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f*float64(unit) > float64(longestRetryAfter) {
		// Only digits: the one error left is a number too large for a float.
		return longestRetryAfter, true
	}
	return time.Duration(f * float64(unit)), true
}

// httpDate reads the three forms of RFC 9110, section 5.6.7.
func httpDate(s string) (time.Time, bool) {
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
