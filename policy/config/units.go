package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	durationForm = regexp.MustCompile(durationPattern)
	sizeForm     = regexp.MustCompile(sizePattern)
)

// The notations, shared with the schema.
const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(KiB|MiB|GiB)?$`
)

var (
	errForm     = errors.New("not the notation")
	errTooLarge = errors.New("is too large a number")
)

func parseDuration(s string) (time.Duration, error) {
	if !durationForm.MatchString(s) {
		return 0, errForm
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errTooLarge
	}
	return d, nil
}

func parseSize(s string) (int64, error) {
	if !sizeForm.MatchString(s) {
		return 0, errForm
	}
	digits, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			digits, shift = rest, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, errTooLarge
	}
	return n << shift, nil
}

// durationText is the notation of the file: 5m, not 5m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func sizeText(n int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n != 0 && n%(1<<u.shift) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
