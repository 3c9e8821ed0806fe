package test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type sample struct {
	name   string
	labels map[string]string
	value  float64
}

var labelForm = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// samples scrapes the service.
func (s *service) samples() ([]sample, error) { return s.samplesOf("") }

// samplesOf are those of the metrics whose names begin so.
func (s *service) samplesOf(prefix string) ([]sample, error) {
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/metrics", s.admin))
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, prefix) {
				lines = append(lines, line)
			}
		}
		text = strings.Join(lines, "\n")
	}
	return parseSamples(text), nil
}

func parseSamples(text string) []sample {
	var out []sample
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			continue // a line with a timestamp: not ours
		}
		name, rest, _ := strings.Cut(line[:i], "{")
		s := sample{name: name, labels: map[string]string{}, value: v}
		for _, m := range labelForm.FindAllStringSubmatch(rest, -1) {
			s.labels[m[1]] = m[2]
		}
		out = append(out, s)
	}
	return out
}

// sum adds the samples of a metric that have the labels (name, value, ...), over
// all living replicas. The name goes without `crossdoor_`.
func (e *env) sum(name string, labels ...string) (float64, error) {
	total := 0.0
	for _, s := range e.services {
		if !s.proc.alive() {
			continue
		}
		all, err := s.samplesOf("crossdoor_" + name)
		if err != nil {
			return 0, err
		}
		for _, m := range all {
			if m.name == "crossdoor_"+name && has(m, labels) {
				total += m.value
			}
		}
	}
	return total, nil
}

func has(m sample, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if m.labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// metric waits for a sum: contract, within a second; two for a busy machine.
func (e *env) metric(want float64, name string, labels ...string) {
	e.t.Helper()
	if err := e.metricErr(want, name, labels...); err != nil {
		e.t.Error(err)
	}
}

func (e *env) metricErr(want float64, name string, labels ...string) error {
	return poll(2*time.Second, func() error {
		got, err := e.sum(name, labels...)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("metric crossdoor_%s%v = %v, want %v", name, labels, got, want)
		}
		return nil
	})
}

// breaker is the state of one scope: 0 closed, 1 half-open, 2 open; -1 when it
// has no series.
func (e *env) breaker(scope, target string) (float64, error) {
	all, err := e.service().samplesOf("crossdoor_breaker_state")
	if err != nil {
		return -1, err
	}
	worst := -1.0
	for _, m := range all {
		if m.name == "crossdoor_breaker_state" && has(m, []string{"scope", scope, "target", target}) {
			worst = max(worst, m.value)
		}
	}
	return worst, nil
}

// envoyStat is a counter or gauge of Envoy's.
func (e *env) envoyStat(name string) (int64, error) {
	text, err := get(fmt.Sprintf("http://127.0.0.1:%d/stats?filter=^%s$", e.admin, regexp.QuoteMeta(name)))
	if err != nil {
		return 0, err
	}
	_, v, ok := strings.Cut(strings.TrimSpace(text), ": ")
	if !ok {
		return 0, fmt.Errorf("envoy has no stat %s", name)
	}
	return strconv.ParseInt(v, 10, 64)
}
