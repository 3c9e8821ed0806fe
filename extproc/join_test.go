package extproc

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// inTwo is inWorld with two replicas of one policy.
func inTwo(t *testing.T, yaml string, f func(a, b *replica)) {
	t.Helper()
	inWorld(t, yaml, func(a *replica) {
		a.server.node = "a.test:9002"
		f(a, a.replica(yaml, "b.test:9002"))
	})
}

// A replica that never saw the request asks for its body and goes on where the
// first one was.
func TestJoinAttempt(t *testing.T) {
	yaml := strings.Replace(mixedTargets, "chain: [a, w, f, a]", "chain: [a, f, w]", 1)
	inTwo(t, yaml, func(a, b *replica) {
		e := a.post(plainBody, "anthropic-beta", "x-1", "x-team", "kyc")
		e.judged(a, overloaded(), overloadedBody)
		m := e.attempt(b)
		changed := strings.Replace(plainBody, "claude-opus-5", "my-opus", 1)
		if got := string(m.GetRequestBody().GetResponse().GetBodyMutation().GetBody()); got != changed {
			t.Fatalf("attempt 2 sends %q: %v", got, m)
		}
		for name, want := range map[string]string{
			names.Target: "crossdoor-target-f", ":authority": "127.0.0.1:9103", ":path": "/anthropic/v1/messages", "x-api-key": secrets["KEY_C"],
			names.Length: itoa(len(changed)), "content-length": itoa(len(changed)), "anthropic-beta": "x-1", "x-team": "",
		} {
			if got := e.headers[name]; got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		// The third at b again: its body is there.
		delete(e.headers, "content-length")
		e.judged(b, overloaded(), overloadedBody)
		m = e.attempt(b)
		if e.headers[names.Target] != "crossdoor-target-w" || m == nil {
			t.Fatalf("attempt 3: %v", m)
		}
		if got := b.metric("crossdoor_join_miss_total"); got != 1 {
			t.Errorf("join misses %v", got)
		}
		final := e.final(from(200, "application/json"))
		if h := setHeaders(final); h[names.ClientAttempts] != "3" || h[names.ClientServedBy] != "w" ||
			h[names.ClientTrail] != "a overloaded 0ms, f overloaded 0ms, w ok 0ms" {
			t.Errorf("client headers %v", h)
		}
		e.plan.leave()
		e.log(a, names.LogExchange, ended{})
		rec := a.record()
		if got := attemptsOf(rec); !slices.Equal(got, []string{"a overloaded", "f overloaded", "w ok"}) || rec.Outcome != trail.OutcomeFailedOver {
			t.Errorf("%s %v", rec.Outcome, got)
		}
		if n := len(b.records()); n != 0 {
			t.Errorf("%d records at the other replica", n)
		}
	})
}

// What another replica's judge decided holds where the attempt lands.
func TestJoinJudge(t *testing.T) {
	t.Run("failover", func(t *testing.T) {
		inTwo(t, twoTargets, func(a, b *replica) {
			e := a.post(plainBody)
			if m := e.judged(b, overloaded(), overloadedBody); !retries(m) {
				t.Fatalf("got %v", m)
			}
			if e.attempt(a); e.headers[names.Target] != "crossdoor-target-b" {
				t.Fatalf("attempt 2 goes to %s", e.headers[names.Target])
			}
			e.served()
			if got := attemptsOf(a.record()); !slices.Equal(got, []string{"a overloaded", "b ok"}) {
				t.Errorf("attempts %v", got)
			}
		})
	})
	t.Run("stop", func(t *testing.T) {
		inTwo(t, twoTargets, func(a, b *replica) {
			e := a.post(plainBody)
			e.judged(a, overloaded(), overloadedBody)
			e.attempt(b)
			bad := from(400, "application/json", "request-id", "req_2")
			if m := e.judged(b, bad, errorBody("invalid_request_error", "messages: bad")); retries(m) {
				t.Fatalf("got %v", m)
			}
			final := e.final(bad)
			if h := setHeaders(final); final.GetImmediateResponse() != nil || h[names.ClientServedBy] != "b" || h[names.ClientAttempts] != "2" {
				t.Errorf("got %v", final)
			}
			e.plan.leave()
			rec := a.record()
			if rec.Outcome != trail.OutcomeStopped || rec.Status != 400 || rec.RequestID != "req_2" || len(rec.Attempts) != 2 {
				t.Errorf("%+v", rec)
			}
			if rec.CommittedMS != nil && *rec.CommittedMS < 0 {
				t.Errorf("committed after %d ms", *rec.CommittedMS)
			}
		})
	})
	t.Run("commit of a stream", func(t *testing.T) {
		inTwo(t, twoTargets, func(a, b *replica) {
			e := a.post(streamBody)
			p := e.judge(b, false, from(200, eventStream))
			p.responseBody(startEvent+deltaEvent, false)
			m := p.recv()
			if m == nil || retries(m) {
				t.Fatalf("got %v", m)
			}
			maps.Copy(e.meta, metaOf(m))
			if h := setHeaders(e.final(from(200, eventStream))); h[names.ClientServedBy] != "a" {
				t.Errorf("client headers %v", h)
			}
			e.plan.leave()
			e.log(a, names.LogAttempt, ended{tail: deltaEvent + errorEvent})
			e.log(a, names.LogExchange, ended{})
			if rec := a.record(); rec.Outcome != trail.OutcomeStreamFailed || rec.Attempts[0].Outcome != "stream_error" {
				t.Errorf("%s %v", rec.Outcome, attemptsOf(rec))
			}
		})
	})
}

// An exchange that a judge joined has no headers of the client's: the attempt
// brings them.
func TestJoinJudgeThenAttempt(t *testing.T) {
	inTwo(t, twoTargets, func(a, b *replica) {
		e := a.post(plainBody, "anthropic-beta", "x-1", "anthropic-version", "2024-01-01")
		if m := e.judged(b, overloaded(), overloadedBody); !retries(m) {
			t.Fatalf("got %v", m)
		}
		e.attempt(b)
		if e.headers[names.Target] != "crossdoor-target-b" || e.headers["anthropic-beta"] != "x-1" || e.headers["anthropic-version"] != "2024-01-01" || e.headers[":path"] != "/v1/messages" {
			t.Errorf("attempt 2 has %v", e.headers)
		}
		if m := e.judged(a, overloaded(), overloadedBody); m == nil || retries(m) {
			t.Fatalf("attempt 2, judged where it was planned: %v", m)
		}
		e.final(overloaded())
		e.plan.leave()
		if rec := a.record(); rec.Outcome != trail.OutcomeExhausted || rec.ServedBy != "b" || !slices.Equal(attemptsOf(rec), []string{"a overloaded", "b overloaded"}) {
			t.Errorf("%s by %q: %v", rec.Outcome, rec.ServedBy, attemptsOf(rec))
		}
	})
}

// The end of an attempt that another replica made is told like any other.
func TestJoinEnd(t *testing.T) {
	inTwo(t, twoTargets, func(a, b *replica) {
		e := a.post(streamBody)
		e.judged(a, overloaded(), overloadedBody)
		e.attempt(b)
		p := e.judge(b, false, from(200, eventStream))
		p.responseBody(startEvent+deltaEvent, false)
		maps.Copy(e.meta, metaOf(p.recv()))
		e.final(from(200, eventStream))
		e.plan.leave()
		e.log(a, names.LogAttempt, ended{tail: deltaEvent + errorEvent})
		e.log(a, names.LogExchange, ended{})
		if rec := a.record(); rec.Outcome != trail.OutcomeStreamFailed || rec.Attempts[1].Outcome != "stream_error" {
			t.Errorf("%s %v", rec.Outcome, attemptsOf(rec))
		}
	})
}

const mixedCredentials = `
version: 1
targets:
  own: {platform: anthropic, url: "http://127.0.0.1:9101", plaintext: true, keys: [{env: KEY_A}]}
  pass: {platform: anthropic, url: "http://127.0.0.1:9102", plaintext: true, keys: [passthrough]}
  last: {platform: anthropic, url: "http://127.0.0.1:9103", plaintext: true, keys: [{env: KEY_B}]}
  also: {platform: anthropic, url: "http://127.0.0.1:9104", plaintext: true, keys: [passthrough]}
routes:
  - {name: mixed, models: ["claude-opus-*"], chain: [own, pass, last], clients: authenticated}
  - {name: theirs, models: ["claude-sonnet-*"], chain: [pass, also]}
`

// The headers of a later attempt carry the credential of the target before,
// which is no client's: a passthrough target must not get it.
func TestJoinPassthrough(t *testing.T) {
	t.Run("where it was planned", func(t *testing.T) {
		inTwo(t, mixedCredentials, func(a, _ *replica) {
			e := a.post(plainBody, "x-api-key", "client-key")
			e.judged(a, overloaded(), overloadedBody)
			if e.attempt(a); e.headers[names.Target] != "crossdoor-target-pass" || e.headers["x-api-key"] != "client-key" {
				t.Errorf("attempt 2: %s with %q", e.headers[names.Target], e.headers["x-api-key"])
			}
			e.served()
		})
	})
	t.Run("elsewhere", func(t *testing.T) {
		inTwo(t, mixedCredentials, func(a, b *replica) {
			e := a.post(plainBody, "x-api-key", "client-key")
			e.judged(a, overloaded(), overloadedBody)
			e.attempt(b)
			if e.headers[names.Target] != "crossdoor-target-last" || e.headers["x-api-key"] != secrets["KEY_B"] {
				t.Errorf("attempt 2: %s with %q", e.headers[names.Target], e.headers["x-api-key"])
			}
			e.served()
		})
	})
	t.Run("elsewhere, when it has to decide itself", func(t *testing.T) {
		inTwo(t, mixedCredentials, func(a, b *replica) {
			e := a.post(plainBody, "x-api-key", "client-key")
			e.attempt(b) // the held answer broke
			if e.headers[names.Target] != "crossdoor-target-last" || e.headers["x-api-key"] != secrets["KEY_B"] {
				t.Errorf("attempt 2: %s with %q", e.headers[names.Target], e.headers["x-api-key"])
			}
			e.served()
		})
	})
	t.Run("a chain of the client's own", func(t *testing.T) {
		inTwo(t, mixedCredentials, func(a, b *replica) {
			e := a.post(strings.Replace(plainBody, "opus", "sonnet", 1), "x-api-key", "client-key")
			e.judged(a, overloaded(), overloadedBody)
			if e.attempt(b); e.headers[names.Target] != "crossdoor-target-also" || e.headers["x-api-key"] != "client-key" {
				t.Errorf("attempt 2: %s with %q", e.headers[names.Target], e.headers["x-api-key"])
			}
			e.served()
		})
	})
}

// A judge elsewhere goes on along a chain of the client's own credential.
func TestJoinJudgePassthrough(t *testing.T) {
	inTwo(t, mixedCredentials, func(a, b *replica) {
		e := a.post(strings.Replace(plainBody, "opus", "sonnet", 1), "x-api-key", "client-key")
		if m := e.judged(b, overloaded(), overloadedBody); !retries(m) {
			t.Fatalf("got %v", m)
		}
		if e.attempt(b); e.headers[names.Target] != "crossdoor-target-also" || e.headers["x-api-key"] != "client-key" {
			t.Errorf("attempt 2: %s with %q", e.headers[names.Target], e.headers["x-api-key"])
		}
		e.served()
	})
}

// A state that is of no use makes the replica plan afresh, and what it made is
// let go in the end, also when the body is no good.
func TestJoinWithoutState(t *testing.T) {
	for _, c := range []struct {
		name, state, body string
		planned           bool
	}{
		{"none", "", plainBody, true},
		{"another version", `{"v":99,"r":"main"}`, plainBody, true},
		{"a route that is gone", `{"v":1,"r":"old","m":"claude-opus-5"}`, plainBody, true},
		{"garbage", "\x00{", plainBody, true},
		{"and a body that is no JSON", "", "{", false},
		{"and a model that nobody takes", "", `{"model":"gpt-5"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTwo(t, twoTargets, func(a, b *replica) {
				e := a.post(plainBody)
				e.body = c.body
				e.meta[names.MetaState] = c.state
				m := e.attempt(b)
				if got := m.GetRequestBody() != nil; got != c.planned {
					t.Errorf("planned %v: %v", got, m)
				}
				e.plan.leave()
			})
		})
	}
}

// States that no replica wrote are no reason to fall over.
func TestJoinHostileState(t *testing.T) {
	for _, attempts := range []string{
		`[{"t":"a","k":-1,"s":1}]`, `[{"t":"a","k":9,"s":1}]`, `[{"t":"zzz","s":1}]`, `[{"t":"a","s":1},{"t":"a","s":1},{"t":"a","s":1}]`,
		`[{"t":"b","s":1,"e":2,"d":"failover"},{"t":"a","s":1}]`, `[{"t":"a","s":-9e18,"e":9e18,"d":"nonsense","b":200,"o":"what"}]`,
	} {
		for _, issued := range []int{-3, 0, 1, 99} {
			t.Run(fmt.Sprintf("%s issued %d", attempts, issued), func(t *testing.T) {
				inTwo(t, twoTargets, func(a, b *replica) {
					e := a.post(plainBody)
					state := fmt.Sprintf(`{"v":1,"r":"main","m":"claude-opus-5","p":"/v1/messages","g":1,"f":1,"d":%d,"n":%d,"o":7,"q":7,"a":%s}`,
						time.Now().Add(time.Minute).UnixMilli(), issued, attempts)
					e.meta[names.MetaState] = state
					m := e.attempt(b)
					if m == nil {
						t.Error("no answer")
					}
					e.meta[names.MetaState] = state
					e.judged(b, overloaded(), overloadedBody)
					if final := e.final(from(200, "application/json")); final == nil {
						t.Error("no final answer")
					}
					e.plan.leave()
				})
			})
		}
	}
}

// An exchange that is joined again, or whose message comes late, after it was
// let go here goes on from the state: it does not begin anew.
func TestJoinAgain(t *testing.T) {
	inTwo(t, withTimeouts("attempt: 1m"), func(a, b *replica) {
		e := a.post(plainBody)
		e.judged(b, overloaded(), overloadedBody)
		pass(joinGrace + time.Minute + time.Second) // b let go of it
		if n := b.server.table.all(); n != 0 {
			t.Fatalf("%d exchanges at b", n)
		}
		if e.attempt(b); e.headers[names.Target] != "crossdoor-target-b" {
			t.Errorf("attempt 2 goes to %s", e.headers[names.Target])
		}
		e.served()
		if got := attemptsOf(a.record()); !slices.Equal(got, []string{"a overloaded", "b ok"}) {
			t.Errorf("attempts %v", got)
		}
	})
}

// No secret and no content is in the state: Envoy's access log shows it.
func TestStateHasNoSecret(t *testing.T) {
	inTwo(t, twoTargets, func(a, _ *replica) {
		e := a.post(`{"model":"claude-opus-5","messages":[{"role":"user","content":"my words"}]}`, "x-api-key", "client-key", "authorization", "Bearer client-token")
		e.judged(a, overloaded(), overloadedBody)
		e.attempt(a)
		state := e.meta[names.MetaState]
		var c carried
		if err := json.Unmarshal([]byte(state), &c); err != nil || len(c.Attempts) != 2 {
			t.Errorf("%v: %s", err, state)
		}
		for _, no := range []string{secrets["KEY_A"], secrets["KEY_B"], "client-key", "client-token", "my words"} {
			if strings.Contains(state, no) {
				t.Errorf("the state has %q", no)
			}
		}
		e.served()
	})
}
