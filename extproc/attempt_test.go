package extproc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/internal/trail"
)

const mixedTargets = `
version: 1
targets:
  a: {platform: anthropic, url: "http://127.0.0.1:9101", plaintext: true, keys: [{env: KEY_A}], forward_headers: [x-team]}
  w: {platform: claude-on-aws, region: us-east-1, workspace: wrkspc_01, auth: key, url: "http://127.0.0.1:9102", plaintext: true, keys: [{env: KEY_B}]}
  f: {platform: foundry, resource: acme-ai, auth: key, url: "http://127.0.0.1:9103", plaintext: true, keys: [{env: KEY_C}], models: {"claude-opus-5": my-opus}}
routes:
  - {name: main, models: ["claude-*"], chain: [a, w, f, a]}
`

func overloaded() map[string]string { return from(529, "application/json") }

// Each attempt starts from the client's headers and body: what the one before
// set is set again or removed.
func TestAttemptHeaders(t *testing.T) {
	inWorld(t, mixedTargets, func(r *replica) {
		e := r.post(plainBody, "x-team", "kyc", "anthropic-beta", "x-1", "x-api-key", "client", "anthropic-workspace-id", "client")
		common := map[string]string{
			":method": "POST", ":scheme": "http", "content-type": "application/json", "user-agent": "client/1", "x-request-id": "rid",
			"accept-encoding": "identity", "anthropic-version": "2023-06-01", "anthropic-beta": "x-1",
			names.ID: e.headers[names.ID], names.EnvoyMaxRetries: "14", names.Prepared: "yes", names.TimeoutMS: "62500", names.Idle: "480s",
		}
		want := func(n int, over map[string]string) {
			t.Helper()
			for k, v := range common {
				if _, ok := over[k]; !ok {
					over[k] = v
				}
			}
			if diff := cmp.Diff(over, e.headers); diff != "" {
				t.Errorf("attempt %d (-want +got):\n%s", n, diff)
			}
		}
		length := itoa(len(plainBody))
		toA := func() map[string]string {
			return map[string]string{
				":authority": "127.0.0.1:9101", ":path": "/v1/messages", "x-api-key": secrets["KEY_A"], "x-team": "kyc",
				names.Target: "crossdoor-target-a", names.Length: length,
			}
		}
		want(1, toA())
		e.judged(r, overloaded(), overloadedBody)
		if m := e.attempt(r); m.GetRequestHeaders().GetResponse().GetBodyMutation() != nil {
			t.Error("attempt 2 sends a body that is as it was")
		}
		want(2, map[string]string{
			":authority": "127.0.0.1:9102", ":path": "/v1/messages", "x-api-key": secrets["KEY_B"], "anthropic-workspace-id": "wrkspc_01",
			names.Target: "crossdoor-target-w", names.Length: length,
		})
		e.judged(r, overloaded(), overloadedBody)
		m := e.attempt(r)
		changed := strings.Replace(plainBody, "claude-opus-5", "my-opus", 1)
		if got := string(m.GetRequestHeaders().GetResponse().GetBodyMutation().GetBody()); got != changed {
			t.Errorf("attempt 3 sends %q", got)
		}
		want(3, map[string]string{
			":authority": "127.0.0.1:9103", ":path": "/anthropic/v1/messages", "x-api-key": secrets["KEY_C"],
			names.Target: "crossdoor-target-f", names.Length: itoa(len(changed)), "content-length": itoa(len(changed)),
		})
		delete(e.headers, "content-length") // Envoy drops it (envoy.md, rule 4)
		e.judged(r, overloaded(), overloadedBody)
		m = e.attempt(r)
		if m.GetRequestHeaders().GetResponse().GetBodyMutation() != nil {
			t.Error("attempt 4 sends a body that is as it was")
		}
		want(4, toA())
		final := e.final(from(200, "application/json"))
		if got := setHeaders(final); got[names.ClientAttempts] != "4" || got[names.ClientServedBy] != "a" ||
			got[names.ClientTrail] != "a overloaded 0ms, w overloaded 0ms, f overloaded 0ms, a ok 0ms" {
			t.Errorf("client headers %v", got)
		}
		e.plan.leave()
	})
}

// Attempt 1 is asked for when the plan could not prepare it.
func TestAttemptFirst(t *testing.T) {
	yaml := strings.Replace(mixedTargets, "chain: [a, w, f, a]", "chain: [f, a]", 1)
	inWorld(t, yaml, func(r *replica) {
		e := r.post(plainBody)
		if e.count != 0 || e.headers[names.Prepared] != "" || e.headers[names.Target] != "crossdoor-target-f" {
			t.Errorf("prepared %d times: %v", e.count, e.headers)
		}
		m := e.attempt(r)
		if got := string(m.GetRequestHeaders().GetResponse().GetBodyMutation().GetBody()); !strings.Contains(got, `"my-opus"`) {
			t.Errorf("body %q", got)
		}
		e.judged(r, overloaded(), overloadedBody)
		if e.attempt(r); e.headers[names.Target] != "crossdoor-target-a" {
			t.Errorf("attempt 2 goes to %s", e.headers[names.Target])
		}
		e.final(from(200, "application/json"))
		e.plan.leave()
	})
}

// After the last attempt the answer depends on what there was (contract,
// "When nothing works").
func TestAttemptsExhausted(t *testing.T) {
	refused := local(503, "UF;x{remote_connection_failure}")
	timedOut := local(504, "UT;upstream_per_try_timeout")
	limited := from(429, "application/json", "retry-after", "7", "request-id", "req_a")
	cases := []struct {
		name          string
		first, second map[string]string
		body          string // of the first's answer
		status        int
		typ           string // "" is the second's own answer
		servedBy      string
		retryAfter    string
		outcome       string
	}{
		{"the last one answered", refused, overloaded(), "", 529, "", "b", "", trail.OutcomeExhausted},
		{"the last one answered 500", overloaded(), from(500, "application/json"), overloadedBody, 500, "", "b", "", trail.OutcomeExhausted},
		{"the last one stopped", overloaded(), from(400, "application/json"), overloadedBody, 400, "", "b", "", trail.OutcomeStopped},
		{"refused, refused", refused, refused, "", 529, "overloaded_error", "", "", trail.OutcomeExhausted},
		{"refused, timeout", refused, timedOut, "", 504, "timeout_error", "", "", trail.OutcomeExhausted},
		{"429, refused", limited, refused, errorBody("rate_limit_error", "slow"), 429, "rate_limit_error", "a", "7", trail.OutcomeExhausted},
		{"529, timeout", overloaded(), timedOut, overloadedBody, 529, "overloaded_error", "a", "", trail.OutcomeExhausted},
		{"500, timeout", from(500, "application/json"), timedOut, errorBody("api_error", "x"), 504, "timeout_error", "", "", trail.OutcomeExhausted},
		{"401, refused", from(401, "application/json"), refused, errorBody("authentication_error", "x"), 529, "overloaded_error", "", "60", trail.OutcomeExhausted},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.post(plainBody)
				if m := e.judged(r, c.first, c.body); !retries(m) {
					t.Fatalf("attempt 1: %v", m)
				}
				e.attempt(r)
				if m := e.judged(r, c.second, ""); retries(m) {
					t.Fatalf("attempt 2: %v", m)
				}
				final := e.final(c.second)
				i := final.GetImmediateResponse()
				h := setHeaders(final)
				if c.typ == "" {
					if i != nil {
						t.Fatalf("want the answer itself, got %v", i)
					}
				} else if int(i.GetStatus().GetCode()) != c.status || !strings.Contains(string(i.GetBody()), c.typ) {
					t.Fatalf("want %d %s, got %v", c.status, c.typ, final)
				}
				if h[names.ClientServedBy] != c.servedBy || h["retry-after"] != c.retryAfter || h[names.ClientAttempts] != "2" {
					t.Errorf("headers %v", h)
				}
				if c.servedBy == "" && h["x-should-retry"] != "false" {
					t.Errorf("x-should-retry %q", h["x-should-retry"])
				}
				e.plan.leave()
				if rec := r.record(); rec.Outcome != c.outcome || rec.Status != c.status || rec.ServedBy != c.servedBy || len(rec.Attempts) != 2 {
					t.Errorf("%s %d by %q, %d attempts", rec.Outcome, rec.Status, rec.ServedBy, len(rec.Attempts))
				}
			})
		})
	}
}

// The replica that was asked before attempt 2 is gone: 503, whatever the first
// attempt got, and it says nothing about the second's target.
func TestAttemptFilterFailedClosed(t *testing.T) {
	limited := from(429, "application/json", "retry-after", "7")
	for name, final := range map[string]map[string]string{
		"by our listener": local(503, names.LocalService),
		"by another's":    {":status": "500", "content-type": "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.post(plainBody)
				if m := e.judged(r, limited, errorBody("rate_limit_error", "slow")); !retries(m) {
					t.Fatalf("attempt 1: %v", m)
				}
				i := e.final(final).GetImmediateResponse()
				if i.GetStatus().GetCode() != 503 || !strings.Contains(string(i.GetBody()), "service is not available") {
					t.Errorf("got %v", i)
				}
				e.plan.leave()
				if rec := r.record(); rec.Outcome != trail.OutcomeServiceDown || rec.Status != 503 {
					t.Errorf("%s %d", rec.Outcome, rec.Status)
				}
			})
		})
	}
}

// All ejected: nothing is sent, and the client is told when to come back.
func TestAttemptsAllEjected(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		first := r.post(plainBody)
		credential := from(401, "application/json")
		first.judged(r, credential, errorBody("authentication_error", "x"))
		pass(1500 * time.Millisecond)
		first.attempt(r)
		first.judged(r, credential, errorBody("authentication_error", "x"))
		first.final(credential)
		first.plan.leave()
		pass(time.Second)
		e, m := r.ask(plainBody)
		wantRejection(t, m, 529, "overloaded_error", "")
		if h := setHeaders(m); h["retry-after"] != "58" || h[names.ClientAttempts] != "0" || h[names.ClientTrail] != "a skipped:ejected, b skipped:ejected" {
			t.Errorf("headers %v", h)
		}
		e.plan.leave()
		if all := r.records(); len(all) != 2 || all[1].Outcome != trail.OutcomeExhausted || all[1].Plan[0].Skipped != "ejected" || all[1].Plan[1].Skipped != "ejected" {
			t.Errorf("records %+v", all)
		}
		pass(time.Minute)
		probe := r.post(plainBody)
		probe.final(from(200, "application/json"))
		probe.plan.leave()
	})
}

// Waits are the judge's: it answers when the next attempt is due, which a header
// or the error object says.
func TestAttemptWaits(t *testing.T) {
	yaml := withRoute("actions: {rate_limit: retry}, same_target_retries: 1")
	const retryInfo = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}`
	for _, c := range []struct {
		name    string
		limited map[string]string
		body    string
	}{
		{"header", from(429, "application/json", "retry-after", "3"), errorBody("rate_limit_error", "slow")},
		{"error object", from(429, "application/json"), retryInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, yaml, func(r *replica) {
				e := r.post(plainBody)
				start := time.Now()
				if m := e.judged(r, c.limited, c.body); !retries(m) {
					t.Fatalf("got %v", m)
				}
				if took := time.Since(start); took < 3*time.Second || took > 3250*time.Millisecond {
					t.Errorf("waited %v", took)
				}
				if e.attempt(r); e.headers[names.Target] != "crossdoor-target-a" {
					t.Errorf("attempt 2 goes to %s", e.headers[names.Target])
				}
				e.served()
				rec := r.record()
				if a := rec.Attempts[0]; a.Decision != trail.DecisionRetry || a.WaitedMS < 3000 || a.RetryAfterMS != 3000 || rec.Outcome != trail.OutcomeServed {
					t.Errorf("%s %+v", rec.Outcome, a)
				}
			})
		})
	}
}

// A held answer that breaks never comes back to the judge: the next attempt
// closes it (envoy.md, rule 11).
func TestAttemptAfterBrokenAnswer(t *testing.T) {
	cases := []struct {
		name   string
		body   string
		hold   func(e *envoy) // what the judge saw
		kind   string
		judged bool // the judge's stream ends before the attempt
	}{
		{"a stream, the judge still waits", streamBody, func(e *envoy) {
			e.judge(e.replica, false, from(200, eventStream)).responseBody(startEvent, false)
		}, "connection", false},
		{"a stream, the judge has ended", streamBody, func(e *envoy) {
			e.judge(e.replica, false, from(200, eventStream)).leave()
		}, "connection", true},
		{"an error, by its status", plainBody, func(e *envoy) { e.judge(e.replica, false, overloaded()).leave() }, "overloaded", true},
		{"nothing was seen", plainBody, func(*envoy) {}, "connection", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, twoTargets, func(r *replica) {
				e := r.post(c.body)
				c.hold(e)
				pass(time.Millisecond)
				if e.attempt(r); e.headers[names.Target] != "crossdoor-target-b" {
					t.Fatalf("attempt 2 goes to %s", e.headers[names.Target])
				}
				e.served()
				rec := r.record()
				if rec.Attempts[0].Outcome != c.kind || rec.Outcome != trail.OutcomeFailedOver {
					t.Errorf("%s %+v", rec.Outcome, rec.Attempts)
				}
			})
		})
	}
}

// What breaks while the judge waits is waited out by the attempt.
func TestAttemptWaitsOutTheRest(t *testing.T) {
	yaml := withRoute("actions: {rate_limit: retry}, same_target_retries: 1")
	inWorld(t, yaml, func(r *replica) {
		e := r.post(plainBody)
		start := time.Now()
		p := e.judge(r, false, from(429, "application/json", "retry-after", "3"))
		p.responseBody(errorBody("rate_limit_error", "slow"), true)
		pass(time.Second)
		p.leave()
		e.attempt(r)
		if took := time.Since(start); took < 3*time.Second || took > 3250*time.Millisecond {
			t.Errorf("attempt 2 after %v", took)
		}
		e.final(from(200, "application/json"))
		e.plan.leave()
		if rec := r.lateRecord(); len(rec.Attempts) != 2 || rec.Attempts[0].Decision != trail.DecisionRetry {
			t.Errorf("%+v", rec.Attempts)
		}
	})
}

// The held answer of the last attempt breaks: Envoy has nothing left, and the
// plan answers.
func TestAttemptLastBreaks(t *testing.T) {
	inWorld(t, twoTargets, func(r *replica) {
		e := r.post(streamBody)
		e.judged(r, overloaded(), overloadedBody)
		e.attempt(r)
		e.judge(r, false, from(200, eventStream)).leave()
		m := e.attempt(r) // Envoy's retry
		if got := m.GetImmediateResponse().GetStatus().GetCode(); got != 529 {
			t.Errorf("attempt 3: %v", m)
		}
		final := e.final(map[string]string{":status": "529", "content-type": "application/json"})
		if h := setHeaders(final); final.GetImmediateResponse().GetStatus().GetCode() != 529 || h[names.ClientServedBy] != "a" || h[names.ClientAttempts] != "2" {
			t.Errorf("got %v", final)
		}
		e.plan.leave()
		if rec := r.record(); rec.Outcome != trail.OutcomeExhausted || rec.ServedBy != "a" || len(rec.Attempts) != 2 {
			t.Errorf("%+v", rec)
		}
	})
}

// A client that is told of a target's limits is told of the larger one's.
func TestAttempt413GoesToTheLarger(t *testing.T) {
	yaml := strings.Replace(twoTargets, "keys: [{env: KEY_A}]}", "keys: [{env: KEY_A}], limits: {body: 1MiB}}", 1)
	inWorld(t, yaml, func(r *replica) {
		e := r.post(plainBody)
		if m := e.judged(r, from(413, "application/json"), errorBody("request_too_large", "x")); !retries(m) {
			t.Fatalf("got %v", m)
		}
		if e.attempt(r); e.headers[names.Target] != "crossdoor-target-b" {
			t.Errorf("attempt 2 goes to %s", e.headers[names.Target])
		}
		e.final(from(200, "application/json"))
		e.plan.leave()
	})
}

// Four keys: one that is refused leads to the next key of the same target.
func TestAttemptNextKey(t *testing.T) {
	yaml := strings.Replace(twoTargets, "keys: [{env: KEY_A}]", "keys: [{env: KEY_A}, {env: KEY_C}]", 1)
	inWorld(t, yaml, func(r *replica) {
		e := r.post(plainBody)
		got := append(make([]string, 0, 3), e.headers["x-api-key"])
		for range 2 {
			e.judged(r, from(401, "application/json"), errorBody("authentication_error", "x"))
			e.attempt(r)
			got = append(got, e.headers["x-api-key"])
		}
		if diff := cmp.Diff([]string{secrets["KEY_A"], secrets["KEY_C"], secrets["KEY_B"]}, got); diff != "" {
			t.Error(diff)
		}
		e.final(from(200, "application/json"))
		e.plan.leave()
		rec := r.lateRecord()
		for i, want := range []string{"env:KEY_A", "env:KEY_C", "env:KEY_B"} {
			if rec.Attempts[i].Key != want {
				t.Errorf("attempt %d used %s", i+1, rec.Attempts[i].Key)
			}
		}
	})
}
