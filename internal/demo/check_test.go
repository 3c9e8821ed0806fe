package demo

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// wants are what the requests of the tour must come to, by step.
var wants = []struct {
	name string
	kind kind
	want want
}{
	{"healthy message", asJSON, direct},
	{"healthy stream", asStream, direct},
	{"529", asJSON, moved("overloaded")},
	{"429", asJSON, moved("rate_limit")},
	{"429, key at rest", asJSON, around},
	{"refused", asJSON, unreached()},
	{"stream error", asStream, moved("overloaded")},
	{"stalled", asStream, patient()},
	{"400", asJSON, stopped},
	{"everything fails", asJSON, exhausted},
	{"none left", asJSON, noneLeft},
}

// conforming is an observation that has nothing wrong.
func conforming(w want, k kind) observed {
	o := observed{kind: k, sentSHA: "sha", answer: answer{status: w.status, headers: w.took.from + time.Millisecond, header: http.Header{}}}
	o.header.Set("x-crossdoor-attempts", strconv.Itoa(len(list(w.attempts))))
	o.record = &trail.Record{Status: w.status, Outcome: w.outcome, ServedBy: w.served}
	for _, s := range list(w.skipped) {
		target, why, _ := strings.Cut(s, " ")
		o.record.Plan = append(o.record.Plan, trail.Planned{Target: target, Skipped: why})
	}
	o.body = []byte(`{"type":"error","error":{"type":"` + w.errType + `","message":"m"}}`)
	if k == asStream {
		o.body = fakeplatform.GoodStream("m", "m", 2).Body()
	}
	for i, s := range list(w.attempts) {
		target, outcome, _ := strings.Cut(s, " ")
		o.record.Attempts = append(o.record.Attempts, trail.Attempt{N: i + 1, Target: target, Outcome: outcome, Decision: trail.DecisionServe})
		if target != targetUnreachable {
			o.arrivals = append(o.arrivals, arrival{target: target, Request: fakeplatform.Request{BodySHA256: "sha"}, body: o.body})
		}
	}
	if w.served != "" {
		o.header.Set("x-crossdoor-served-by", w.served)
	} else {
		o.header.Set("x-should-retry", "false")
	}
	if w.retryAfter != (span{}) {
		o.header.Set("retry-after", strconv.Itoa(int(w.retryAfter.from.Seconds())))
	}
	return o
}

func TestCheckAccepts(t *testing.T) {
	for _, c := range wants {
		t.Run(c.name, func(t *testing.T) {
			if problems := c.want.check(conforming(c.want, c.kind)); len(problems) > 0 {
				t.Errorf("%q", problems)
			}
		})
	}
}

// wrongs are results that no step may take for right; only says for which.
var wrongs = []struct {
	name string
	only func(want, kind) bool
	make func(*observed)
	says string
}{
	{"no answer", nil, func(o *observed) { o.status, o.err = 0, errors.New("refused") }, "broke off: refused"},
	{"cut", nil, func(o *observed) { o.err = errors.New("EOF") }, "broke off: EOF"},
	{"another status", nil, func(o *observed) { o.status = 502 }, "status: 502"},
	{"another target", nil, func(o *observed) { o.header.Set("x-crossdoor-served-by", "other") }, "x-crossdoor-served-by: other"},
	{"attempts in the header", nil, func(o *observed) { o.header.Set("x-crossdoor-attempts", "9") }, "x-crossdoor-attempts: 9"},
	{"no attempts header", nil, func(o *observed) { o.header.Del("x-crossdoor-attempts") }, "x-crossdoor-attempts: none"},
	{"Envoy shows", nil, func(o *observed) { o.header.Set("x-envoy-upstream-service-time", "1") }, "X-Envoy-"},
	{"Envoy as server", nil, func(o *observed) { o.header.Set("server", "envoy") }, "server: envoy"},
	{"one more attempt", nil, func(o *observed) { o.arrivals = append(o.arrivals, arrival{target: "x"}) }, "the platforms that got it"},
	{"an attempt less", served, func(o *observed) { o.arrivals = o.arrivals[1:] }, "the platforms that got it"},
	{"refused by the platform", served, func(o *observed) { o.arrivals[0].Refusal = "no key" }, "refused the request: no key"},
	{"other bytes at the platform", served, func(o *observed) { o.arrivals[0].BodySHA256 = "other" }, "bytes that the client sent"},
	{"other bytes at the client", served, func(o *observed) { o.body = append(bytes.Clone(o.body), ' ') }, "bytes are not the"},
	{"two message_start", streams, func(o *observed) { o.body = append(fakeplatform.MessageStart("m", "m"), o.body...) }, "message_start events: 2"},
	{"no message_stop", streams, func(o *observed) { o.body = bytes.TrimSuffix(o.body, fakeplatform.MessageStop()) }, "message_stop events: 0"},
	{"no record", nil, func(o *observed) { o.record = nil }, "no record"},
	{"outcome in the trail", nil, func(o *observed) { o.record.Outcome = "rejected" }, "outcome in the trail: rejected"},
	{"status in the trail", nil, func(o *observed) { o.record.Status = 1 }, "status in the trail: 1"},
	{"target in the trail", nil, func(o *observed) { o.record.ServedBy = "x" }, "served_by in the trail: x"},
	{"attempt in the trail", served, func(o *observed) { o.record.Attempts[0].Outcome = "x" }, "attempts in the trail"},
	{"nothing left out", func(w want, _ kind) bool { return w.skipped != "" }, func(o *observed) { o.record.Plan = nil }, "left out, says the trail: none"},
	{"too late", nil, func(o *observed) { o.headers = time.Minute }, "the answer came after 1m0s"},
	{"too early", func(w want, _ kind) bool { return w.took.from > 0 }, func(o *observed) { o.headers = 0 }, "the answer came after 0s"},
	{"error type", failing, func(o *observed) { o.body = bytes.ReplaceAll(o.body, []byte("_error"), []byte("_x")) }, "error type"},
	{"no error", failing, func(o *observed) { o.body = []byte("upstream connect error") }, "client's schema"},
	{"SDKs would retry", func(w want, _ kind) bool { return w.served == "" }, func(o *observed) { o.header.Del("x-should-retry") }, "x-should-retry: none"},
	{"no retry-after", func(w want, _ kind) bool { return w.retryAfter != span{} }, func(o *observed) { o.header.Del("retry-after") }, "retry-after is"},
	{"long retry-after", func(w want, _ kind) bool { return w.retryAfter != span{} }, func(o *observed) { o.header.Set("retry-after", "99") }, "retry-after is"},
}

func served(w want, _ kind) bool  { return w.served != "" }
func streams(_ want, k kind) bool { return k == asStream }
func failing(w want, _ kind) bool { return w.errType != "" }

func TestCheckRejects(t *testing.T) {
	for _, c := range wants {
		for _, x := range wrongs {
			if x.only != nil && !x.only(c.want, c.kind) {
				continue
			}
			t.Run(c.name+"/"+x.name, func(t *testing.T) {
				o := conforming(c.want, c.kind)
				x.make(&o)
				if got := strings.Join(c.want.check(o), "\n"); !strings.Contains(got, x.says) {
					t.Errorf("problems %q, want %q among them", got, x.says)
				}
			})
		}
	}
}
