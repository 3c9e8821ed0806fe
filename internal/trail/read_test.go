package trail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func encoded(t *testing.T, records ...*Record) string {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		line, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func ids(records []*Record) string {
	var out []string
	for _, r := range records {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

// sample has one record a case of TestFilter, oldest first.
func sample() []*Record {
	moved := failedOver()
	moved.ID, moved.Time = "moved", began.Add(time.Minute)
	cut := failedOver()
	cut.ID, cut.Time, cut.Outcome, cut.RequestID = "cut", began.Add(2*time.Minute), OutcomeStreamFailed, ""
	cut.Attempts = append([]Attempt(nil), cut.Attempts...)
	cut.Attempts[0].UpstreamRequestID, cut.Attempts[1].UpstreamRequestID = "req_c", "req_d"
	lost := served("lost", began.Add(3*time.Minute))
	lost.Outcome, lost.ServedBy = OutcomeExhausted, ""
	lost.Attempts = append(lost.Attempts, Attempt{N: 2, Target: "aws"})
	return []*Record{served("first", began), moved, cut, lost}
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter Filter
		want   string
	}{
		{"all", Filter{}, "first moved cut lost"},
		{"since", Filter{Since: began.Add(2 * time.Minute)}, "cut lost"},
		{"route", Filter{Route: "interactive"}, "moved cut"},
		{"target of an attempt", Filter{Target: "aws"}, "lost"},
		{"target only skipped", Filter{Target: "vertex"}, ""},
		{"outcome", Filter{Outcome: OutcomeExhausted}, "lost"},
		{"id in another case", Filter{ID: "FIRST"}, "first"},
		{"answer's request id", Filter{ID: "req_b"}, "moved"},
		{"attempt's request id", Filter{ID: "req_c"}, "cut"},
		{"failed over, also when it then broke", Filter{FailedOver: true}, "moved cut"},
		{"all of them", Filter{FailedOver: true, Outcome: OutcomeStreamFailed, Route: "interactive"}, "cut"},
		{"newest", Filter{Limit: 3}, "moved cut lost"},
		{"newest of the matching", Filter{Limit: 1, Route: "interactive"}, "cut"},
		{"limit not reached", Filter{Limit: 9}, "first moved cut lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ring := NewRing(10)
			for _, r := range sample() {
				ring.Add(r)
			}
			if got := ids(ring.Select(tt.filter)); got != tt.want {
				t.Errorf("ring: got %q, want %q", got, tt.want)
			}
			var got []*Record
			bad, err := Read(strings.NewReader(encoded(t, sample()...)), tt.filter, func(r *Record) error {
				got = append(got, r)
				return nil
			})
			if err != nil || bad != 0 || ids(got) != tt.want {
				t.Errorf("file: got %q, want %q (%d bad, %v)", ids(got), tt.want, bad, err)
			}
			back, err := ParseValues(tt.filter.Values(), began)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.filter, back); diff != "" {
				t.Errorf("query string: %s", diff)
			}
		})
	}
}

func TestParseValues(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		want        Filter
		wantErr     string
	}{
		{"duration", "since=1h", Filter{Since: began.Add(-time.Hour)}, ""},
		{"time", "since=2026-11-30T09:00:00%2B01:00", Filter{Since: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)}, ""},
		{"bare switch", "failed_over", Filter{FailedOver: true}, ""},
		{"off", "failed_over=false", Filter{}, ""},
		{"bad switch", "failed_over=maybe", Filter{}, `failed_over "maybe"`},
		{"negative duration", "since=-1h", Filter{}, `since "-1h"`},
		{"no duration", "since=yesterday", Filter{}, "1h"},
		{"outcome", "outcome=ok", Filter{}, "failed_over"},
		{"limit", "limit=-1", Filter{}, `limit "-1"`},
		{"unknown", "rout=x", Filter{}, `"rout" is no filter`},
		{"twice", "route=a&route=b", Filter{}, "once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := url.ParseQuery(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseValues(v, began)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got error %v, want %q in it", err, tt.wantErr)
				}
				return
			}
			if err != nil || !got.Since.Equal(tt.want.Since) || got.FailedOver != tt.want.FailedOver {
				t.Errorf("got %+v (%v), want %+v", got, err, tt.want)
			}
		})
	}
}

func TestReadPassesOverBadLines(t *testing.T) {
	good := encoded(t, served("good", began))
	for _, tt := range []struct {
		name, in string
		want     string
		bad      int
	}{
		{"empty file", "", "", 0},
		{"no end on the last line", strings.TrimSuffix(good, "\n"), "good", 0},
		{"CRLF", strings.TrimSuffix(good, "\n") + "\r\n", "good", 0},
		{"cut last line", good + good[:40], "good", 1},
		{"cut line in between", good[:40] + "\n" + good, "good", 1},
		{"cut line joined to the next", good[:40] + good + good, "good", 1},
		{"empty lines", "\n\n" + good + "\n", "good", 0},
		{"another file", "2026 INFO hello\n{}\n[1]\n" + good, "good", 3},
		{"longer than a line may be", strings.Repeat("x", maxLine+1) + "\n" + good, "good", 1},
		{"longer, at the end", good + strings.Repeat("x", 2*maxLine), "good", 1},
		{"zeros after a crash", good + strings.Repeat("\x00", 4096) + "\n" + good, "good good", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []*Record
			bad, err := Read(strings.NewReader(tt.in), Filter{}, func(r *Record) error {
				got = append(got, r)
				return nil
			})
			if err != nil || bad != tt.bad || ids(got) != tt.want {
				t.Errorf("got %q, %d bad, %v; want %q, %d bad", ids(got), bad, err, tt.want, tt.bad)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	errVisit := errors.New("full")
	for _, limit := range []int{0, 2} {
		in := strings.NewReader(encoded(t, served("a", began)))
		if _, err := Read(in, Filter{Limit: limit}, func(*Record) error { return errVisit }); !errors.Is(err, errVisit) {
			t.Errorf("limit %d: visit's error: got %v", limit, err)
		}
	}
	errDisk := errors.New("disk")
	in := io.MultiReader(strings.NewReader(encoded(t, served("a", began))), iotest.ErrReader(errDisk))
	n := 0
	_, err := Read(in, Filter{}, func(*Record) error { n++; return nil })
	if !errors.Is(err, errDisk) || n != 1 {
		t.Errorf("reader's error: got %v after %d records", err, n)
	}
}

func TestRingKeepsTheLast(t *testing.T) {
	for _, tt := range []struct {
		size, added int
		want        string
	}{
		{0, 3, ""}, {-1, 3, ""}, {3, 0, ""}, {3, 2, "0 1"}, {3, 3, "0 1 2"}, {3, 4, "1 2 3"}, {3, 7, "4 5 6"}, {1, 5, "4"},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.size, tt.added), func(t *testing.T) {
			ring := NewRing(tt.size)
			for i := range tt.added {
				ring.Add(served(strconv.Itoa(i), began))
			}
			if got := ids(ring.Select(Filter{})); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPrinters(t *testing.T) {
	odd := served("odd", began.Add(time.Second))
	odd.Model, odd.Client, odd.ServedBy, odd.Status = "=1+1", "a\x1b[2Jb,\"c\"", "", 529
	odd.Outcome = OutcomeExhausted
	for _, tt := range []struct {
		name, format string
		style        Style
		want         string
	}{
		{"table", "table", Plain, strings.Join([]string{
			"TIME                      ID                          ROUTE        MODEL              OUTCOME      STATUS  SERVED BY   MS  ADDED  WHAT HAPPENED",
			"2026-11-30T08:00:00.123Z  01KB9Z0000000000000000000A  interactive  claude-sonnet-4-5  failed_over     200  foundry    861     18  anthropic rate_limit 12ms, foundry ok 843ms, aws skipped:ejected",
			"2026-11-30T08:00:01.123Z  odd                         batch        =1+1               exhausted       529  -            7      0  anthropic ok 6ms",
			"",
		}, "\n")},
		{"table in colour", "table", Colour, strings.Join([]string{
			"TIME                      ID                          ROUTE        MODEL              OUTCOME      STATUS  SERVED BY   MS  ADDED  WHAT HAPPENED",
			"2026-11-30T08:00:00.123Z  01KB9Z0000000000000000000A  interactive  claude-sonnet-4-5  \x1b[33mfailed_over\x1b[0m     200  foundry    861     18  anthropic rate_limit 12ms, foundry ok 843ms, aws skipped:ejected",
			"2026-11-30T08:00:01.123Z  odd                         batch        =1+1               \x1b[31mexhausted\x1b[0m       529  -            7      0  anthropic ok 6ms",
			"",
		}, "\n")},
		{"csv", "csv", Plain, strings.Join([]string{
			"time,id,request_id,route,model,stream,client,policy,outcome,status,served_by,tier,attempts,trail,degraded,committed_ms,ms,added_ms,input_tokens,output_tokens,cache_read_input_tokens,cache_creation_input_tokens,stop_reason",
			`2026-11-30T08:00:00.123Z,01KB9Z0000000000000000000A,req_b,interactive,claude-sonnet-4-5,true,kyc,0123456789ab,failed_over,200,foundry,portable,2,"anthropic rate_limit 12ms, foundry ok 843ms, aws skipped:ejected",model,400,861,18,10,20,30,40,end_turn`,
			`2026-11-30T08:00:01.123Z,odd,,batch,'=1+1,false,"a [2Jb,""c""",,exhausted,529,,portable,1,anthropic ok 6ms,,,7,0,,,,,`,
			"",
		}, "\n")},
		{"json", "json", Plain, encoded(t, failedOver(), odd)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			p, err := NewPrinter(tt.format, &b, tt.style)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []*Record{failedOver(), odd} {
				if err := p.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTableOfManyRowsIsWrittenInBatches(t *testing.T) {
	var b bytes.Buffer
	p, err := NewPrinter("table", &b, Plain)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tableBatch {
		if err := p.Add(served(strconv.Itoa(i), began)); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() == 0 {
		t.Error("nothing written after a full batch")
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != tableBatch+1 {
		t.Errorf("got %d lines, want %d", n, tableBatch+1)
	}
	if n := strings.Count(b.String(), "TIME"); n != 1 {
		t.Errorf("got %d headings", n)
	}
}

func TestPrintersWithoutRecords(t *testing.T) {
	for format, want := range map[string]string{"table": "", "json": "", "csv": strings.Join(csvHeading, ",") + "\n"} {
		var b bytes.Buffer
		p, err := NewPrinter(format, &b, Plain)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Flush(); err != nil || b.String() != want {
			t.Errorf("%s: got %q (%v), want %q", format, b.String(), err, want)
		}
	}
	if _, err := NewPrinter("xml", io.Discard, Plain); err == nil || !strings.Contains(err.Error(), "csv") {
		t.Errorf("unknown format: got %v", err)
	}
}

func TestFailedOverByDecision(t *testing.T) {
	moved := []Attempt{{N: 1, Target: "a", Decision: DecisionFailover}, {N: 2, Target: "a", Model: "small"}}
	stayed := []Attempt{{N: 1, Target: "a", Decision: DecisionRetry}, {N: 2, Target: "a"}}
	for _, tt := range []struct {
		name     string
		outcome  string
		servedBy string
		attempts []Attempt
		want     bool
	}{
		{"served later", OutcomeFailedOver, "b", nil, true},
		{"served", OutcomeServed, "a", stayed, false},
		{"another model of the same target, broke", OutcomeStreamFailed, "a", moved, true},
		{"tried again at the same, broke", OutcomeStreamFailed, "a", stayed, false},
		{"the client left before an answer", OutcomeClientGone, "", moved, false},
		{"stopped later", OutcomeStopped, "a", moved, true},
		{"nobody served", OutcomeExhausted, "a", moved, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Record{Outcome: tt.outcome, ServedBy: tt.servedBy, Attempts: tt.attempts}
			if got := (Filter{FailedOver: true}).Match(r); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
