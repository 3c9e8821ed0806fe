package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// record is one trail record as the contract's section 9 has it.
type record struct {
	Time      string          `json:"time"`
	ID        string          `json:"id"`
	RequestID string          `json:"request_id"`
	Route     string          `json:"route"`
	Model     string          `json:"model"`
	Stream    bool            `json:"stream"`
	Client    string          `json:"client"`
	Policy    string          `json:"policy"`
	Plan      []planned       `json:"plan"`
	Attempts  []attempt       `json:"attempts"`
	ServedBy  string          `json:"served_by"`
	Status    int             `json:"status"`
	Outcome   string          `json:"outcome"`
	Degraded  []string        `json:"degraded"`
	Tier      string          `json:"tier"`
	Committed *float64        `json:"committed_ms"`
	MS        float64         `json:"ms"`
	AddedMS   *float64        `json:"added_ms"`
	Usage     *map[string]int `json:"usage"`
	Stop      string          `json:"stop_reason"`

	line string
}

type planned struct {
	Target  string `json:"target"`
	Model   string `json:"model"`
	Skipped string `json:"skipped"`
}

type attempt struct {
	N                 int     `json:"n"`
	Target            string  `json:"target"`
	Model             string  `json:"model"`
	Key               string  `json:"key"`
	Host              string  `json:"host"`
	StartMS           float64 `json:"start_ms"`
	MS                float64 `json:"ms"`
	Status            int     `json:"status"`
	Outcome           string  `json:"outcome"`
	RetryAfterMS      float64 `json:"retry_after_ms"`
	WaitedMS          float64 `json:"waited_ms"`
	UpstreamRequestID string  `json:"upstream_request_id"`
	Decision          string  `json:"decision"`
	Error             string  `json:"error"`
}

// summary is `a overloaded failover, b ok serve`.
func (r *record) summary() string {
	var out []string
	for _, a := range r.Attempts {
		out = append(out, strings.TrimPrefix(a.Target, r.Route+"-")+" "+a.Outcome+" "+a.Decision)
	}
	return strings.Join(out, ", ")
}

// skips is `a ejected, c no_model`.
func (r *record) skips() string {
	var out []string
	for _, p := range r.Plan {
		if p.Skipped != "" {
			out = append(out, strings.TrimPrefix(p.Target, r.Route+"-")+" "+p.Skipped)
		}
	}
	return strings.Join(out, ", ")
}

// readTrail reads whole lines; a line that is no record is one with no route.
func readTrail(path string) []record {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []record
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var r record
		if json.Unmarshal(sc.Bytes(), &r) != nil {
			continue // the last line may be half written
		}
		r.line = sc.Text()
		out = append(out, r)
	}
	return out
}

// records are those of the lane, from every replica.
func (l *laneRun) records() []record {
	var out []record
	for _, s := range l.e.services {
		for _, r := range readTrail(s.trail) {
			if r.Route == l.name {
				out = append(out, r)
			}
		}
	}
	return out
}

// nth waits for the lane's n-th record (1 is the first), which the contract has
// within a second of the end.
func (l *laneRun) nth(n int) record {
	l.e.t.Helper()
	var got []record
	err := poll(2*time.Second, func() error {
		if got = l.records(); len(got) < n {
			return fmt.Errorf("%d records", len(got))
		}
		return nil
	})
	if err != nil {
		l.e.t.Errorf("lane %s: no record %d in the trail 2s after the end: %v", l.name, n, err)
		return record{Route: l.name}
	}
	return got[n-1]
}

// byID waits for the record of an answer.
func (l *laneRun) byID(id string) record {
	l.e.t.Helper()
	var got record
	err := poll(2*time.Second, func() error {
		for _, s := range l.e.services {
			for _, r := range readTrail(s.trail) {
				if r.ID == id {
					got = r
					return nil
				}
			}
		}
		return errNotYet
	})
	if err != nil {
		l.e.t.Errorf("lane %s: no record of %q in the trail 2s after the end", l.name, id)
	}
	return got
}

var (
	ulidForm = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)
