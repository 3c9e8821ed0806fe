package trail

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var began = time.Date(2026, 11, 30, 8, 0, 0, 123_456_789, time.UTC)

// failedOver is a record with every member set.
func failedOver() *Record {
	return &Record{
		Time: began.In(time.FixedZone("CET", 3600)), ID: "01KB9Z0000000000000000000A", RequestID: "req_b",
		Route: "interactive", Model: "claude-sonnet-4-5", Stream: true, Client: "kyc", Policy: "0123456789ab",
		Plan: []Planned{
			{Target: "anthropic", Model: "claude-sonnet-4-5", Key: "env:A"},
			{Target: "foundry", Model: "sonnet", Key: "env:F", Stripped: []string{"service_tier"}},
			{Target: "aws", Model: "claude-sonnet-4-5", Skipped: "ejected"},
		},
		Attempts: []Attempt{
			{
				N: 1, Target: "anthropic", Model: "claude-sonnet-4-5", Key: "env:A", Host: "api.anthropic.com",
				StartMS: 1, MS: 12, Status: 429, Outcome: "rate_limit", RetryAfterMS: 2000, WaitedMS: 5,
				UpstreamRequestID: "req_a", Decision: DecisionFailover, Error: "slow <down>", Drill: "d1",
			},
			{
				N: 2, Target: "foundry", Model: "sonnet", Key: "env:F", Host: "acme.services.ai.azure.com",
				StartMS: 18, MS: 843, Status: 200, Outcome: "ok", UpstreamRequestID: "req_b", Decision: DecisionServe,
			},
		},
		ServedBy: "foundry", Status: 200, Outcome: OutcomeFailedOver, Degraded: []string{"model"}, Tier: TierPortable,
		CommittedMS: new(int64(400)), MS: 861, AddedMS: 18,
		Usage:      &Usage{InputTokens: 10, OutputTokens: 20, CacheReadInputTokens: 30, CacheCreationInputTokens: 40},
		StopReason: "end_turn",
	}
}

// served is a record with only what is always there.
func served(id string, at time.Time) *Record {
	return &Record{
		Time: at, ID: id, Route: "batch", Model: "claude-haiku-4-5", Status: 200, Outcome: OutcomeServed,
		Tier: TierPortable, ServedBy: "anthropic", MS: 7,
		Plan:     []Planned{{Target: "anthropic", Model: "claude-haiku-4-5"}},
		Attempts: []Attempt{{N: 1, Target: "anthropic", Outcome: "ok", MS: 6, Decision: DecisionServe}},
	}
}

func TestEncode(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   *Record
		want string
	}{
		{"every member, in the contract's order", failedOver(), `{"time":"2026-11-30T08:00:00.123Z","id":"01KB9Z0000000000000000000A","request_id":"req_b","route":"interactive","model":"claude-sonnet-4-5","stream":true,"client":"kyc","policy":"0123456789ab",` +
			`"plan":[{"target":"anthropic","model":"claude-sonnet-4-5","key":"env:A"},{"target":"foundry","model":"sonnet","key":"env:F","stripped":["service_tier"]},{"target":"aws","model":"claude-sonnet-4-5","skipped":"ejected"}],` +
			`"attempts":[{"n":1,"target":"anthropic","model":"claude-sonnet-4-5","key":"env:A","host":"api.anthropic.com","start_ms":1,"ms":12,"status":429,"outcome":"rate_limit","retry_after_ms":2000,"waited_ms":5,"upstream_request_id":"req_a","decision":"failover","error":"slow <down>","drill":"d1"},` +
			`{"n":2,"target":"foundry","model":"sonnet","key":"env:F","host":"acme.services.ai.azure.com","start_ms":18,"ms":843,"status":200,"outcome":"ok","upstream_request_id":"req_b","decision":"serve"}],` +
			`"served_by":"foundry","status":200,"outcome":"failed_over","degraded":["model"],"tier":"portable","committed_ms":400,"ms":861,"added_ms":18,"usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":30,"cache_creation_input_tokens":40},"stop_reason":"end_turn"}`},
		{
			"lists are lists, what may be missing is",
			&Record{Time: began, ID: "x", Status: 404, Outcome: OutcomeRejected},
			`{"time":"2026-11-30T08:00:00.123Z","id":"x","request_id":"","route":"","model":"","stream":false,"client":"","policy":"","plan":[],"attempts":[],"status":404,"outcome":"rejected","tier":"","ms":0,"added_ms":0}`,
		},
		{
			"committed at once is committed",
			&Record{Time: began, ID: "x", Plan: []Planned{}, CommittedMS: new(int64(0)), Usage: &Usage{}},
			`{"time":"2026-11-30T08:00:00.123Z","id":"x","request_id":"","route":"","model":"","stream":false,"client":"","policy":"","plan":[],"attempts":[],"status":0,"outcome":"","tier":"","committed_ms":0,"ms":0,"added_ms":0,"usage":{"input_tokens":0,"output_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line, err := Encode(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(line)); diff != "" {
				t.Error(diff)
			}
			back, err := Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Encode(back)
			if err != nil || string(again) != string(line) {
				t.Errorf("decoded and encoded again: %v\n%s", err, again)
			}
		})
	}
}

func TestEncodeIsOneLine(t *testing.T) {
	r := served("x", began)
	r.Client = "a\nb\r\u2028\x00\xff"
	line, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(line, "\n\r\x00") {
		t.Errorf("line holds a raw control character: %q", line)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"not JSON":        `hello`,
		"cut":             `{"time":"2026-11-30T08:00:00.123Z","id":"x","rou`,
		"no id":           `{"time":"2026-11-30T08:00:00.123Z"}`,
		"no time":         `{"id":"x"}`,
		"another's shape": `{"time":"2026-11-30T08:00:00.123Z","id":"x","plan":"none"}`,
		"two values":      `{"time":"2026-11-30T08:00:00.123Z","id":"x"} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := Decode([]byte(line)); err == nil {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestCutClient(t *testing.T) {
	if got := CutClient(strings.Repeat("é", 200)); got != strings.Repeat("é", 128) {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
	if got := CutClient("a\tb"); got != "a b" {
		t.Errorf("got %q", got)
	}
}
