package credential

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// script is an issuer that does what a test says, and counts.
type script struct {
	fetches atomic.Int32
	fetch   func(ctx context.Context, n int) (Credential, error)
}

func (s *script) Fetch(ctx context.Context) (Credential, error) {
	return s.fetch(ctx, int(s.fetches.Add(1)))
}

// hourly gives another token each time, for an hour.
func hourly() *script {
	return &script{fetch: func(_ context.Context, n int) (Credential, error) {
		return Credential{Token: "token-" + strconv.Itoa(n), Expires: time.Now().Add(time.Hour)}, nil
	}}
}

// journal keeps what is logged.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// levels are those of the lines so far; no line may name the secret.
func (j *journal) levels(t *testing.T) string {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []string
	for _, line := range j.lines {
		if strings.Contains(line, "token-") {
			t.Errorf("logged: %s", line)
		}
		_, rest, _ := strings.Cut(line, "level=")
		level, _, _ := strings.Cut(rest, " ")
		all = append(all, level)
	}
	return strings.Join(all, " ")
}

// started is a running set in a bubble; it ends with the test.
func started(t *testing.T, changed func(string), sources ...CloudSource) (*Issued, *journal) {
	t.Helper()
	j := &journal{}
	s := NewIssued(j.logger(), changed)
	s.Use(sources)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	synctest.Wait()
	return s, j
}

// pass lets time go by, in a bubble of synctest: nobody waits.
func pass(d time.Duration) { <-time.After(d) }

func TestIssuedRenewsAheadOfNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		issuer := hourly()
		s, j := started(t, func(place string) {
			if place != "adc" {
				t.Errorf("changed %q", place)
			}
			changes.Add(1)
		}, CloudSource{"adc", issuer})
		for range 24 * 60 {
			if token, ok := s.Bearer("adc"); !ok || !strings.HasPrefix(token, "token-") {
				t.Fatalf("Bearer = %q, %v after %d fetches", token, ok, issuer.fetches.Load())
			}
			if end, ok := s.Expiry("adc"); !ok || time.Until(end) < 10*time.Minute {
				t.Fatalf("it ends at %v, %v: not renewed ahead", end, ok)
			}
			pass(time.Minute)
		}
		n := issuer.fetches.Load()
		if n < 24 || n > 35 || changes.Load() != n-1 {
			t.Errorf("a day takes %d fetches and %d changes; want 24 to 35, and one change fewer", n, changes.Load())
		}
		if got := j.levels(t); got != "INFO" {
			t.Errorf("logged %s", got)
		}
	})
}

func TestIssuedNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &script{fetch: func(ctx context.Context, _ int) (Credential, error) {
			<-ctx.Done()
			return Credential{}, ctx.Err()
		}}
		s, j := started(t, nil, CloudSource{"sigv4", hangs}, CloudSource{"adc", hourly()})
		began := time.Now()
		if _, ok := s.AWS("sigv4"); ok {
			t.Error("there are credentials before the first fetch")
		}
		if _, ok := s.Bearer("adc"); !ok {
			t.Error("a place that hangs holds up another one")
		}
		if got := s.Missing(); !slices.Equal(got, []string{"sigv4"}) {
			t.Errorf("Missing = %v", got)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("asking took %v", waited)
		}
		pass(10 * time.Minute)
		synctest.Wait()
		if n := hangs.fetches.Load(); n < 7 || n > 17 {
			t.Errorf("%d fetches in ten minutes: each must end after %v", n, fetchTimeout)
		}
		if got := j.levels(t); strings.Count(got, "ERROR") != 1 || strings.Count(got, " ") != 1 {
			t.Errorf("logged %s; want one line for each place", got)
		}
	})
}

func TestIssuedThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out atomic.Bool
		issuer := &script{fetch: func(_ context.Context, n int) (Credential, error) {
			if out.Load() {
				return Credential{}, errors.New("the endpoint answers 503, request " + strconv.Itoa(n))
			}
			return Credential{Token: "token-" + strconv.Itoa(n), Expires: time.Now().Add(time.Hour)}, nil
		}}
		s, j := started(t, nil, CloudSource{"entra", issuer})
		out.Store(true)
		pass(time.Hour - inFlight - time.Second)
		synctest.Wait()
		if _, ok := s.Bearer("entra"); !ok {
			t.Error("a token that holds is gone because the next one cannot be had")
		}
		if got := j.levels(t); got != "INFO WARN" {
			t.Errorf("logged %s", got)
		}
		pass(time.Second)
		if _, ok := s.Bearer("entra"); ok {
			t.Error("an expired token is given out")
		}
		if end, ok := s.Expiry("entra"); !ok || time.Until(end) > inFlight {
			t.Errorf("Expiry = %v, %v", end, ok)
		}
		pass(lastBackoff)
		synctest.Wait()
		if got := j.levels(t); got != "INFO WARN ERROR" || len(s.Missing()) != 1 {
			t.Errorf("logged %s, missing %v", got, s.Missing())
		}
		out.Store(false)
		pass(lastBackoff)
		synctest.Wait()
		if _, ok := s.Bearer("entra"); !ok || j.levels(t) != "INFO WARN ERROR INFO" {
			t.Errorf("not there a minute after the outage; logged %s", j.levels(t))
		}
	})
}

func TestIssuedRenewsOnceForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		issuer := hourly()
		s, _ := started(t, func(string) { changes.Add(1) }, CloudSource{"adc", issuer})
		pass(renewAtMost)
		for range 100 {
			if !s.Renew("adc") {
				t.Fatal("the place is not known")
			}
		}
		synctest.Wait()
		if n := issuer.fetches.Load(); n != 2 || changes.Load() != 1 {
			t.Fatalf("%d fetches, %d changes after a hundred wishes; want 2 and 1", n, changes.Load())
		}
		if !s.Outdated("adc", time.Now().Add(-time.Second)) || s.Outdated("adc", time.Now()) {
			t.Error("Outdated tells attempts before the renewal not from those after it")
		}
		s.Renew("adc")
		synctest.Wait()
		if n := issuer.fetches.Load(); n != 2 {
			t.Errorf("%d fetches: renewed again at once", n)
		}
		pass(renewAtMost)
		synctest.Wait()
		if n := issuer.fetches.Load(); n != 3 {
			t.Errorf("%d fetches: a wish is lost", n)
		}
		if s.Renew("env:KEY") {
			t.Error("a static key is not of this set")
		}
	})
}

func TestIssuedAwaitFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(wait time.Duration, err error) Issuer {
			return &script{fetch: func(ctx context.Context, _ int) (Credential, error) {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
				}
				return Credential{Token: "token-1", Expires: time.Now().Add(time.Hour)}, err
			}}
		}
		s, _ := started(t, nil, CloudSource{"adc", after(time.Second, nil)}, CloudSource{"entra", after(3*time.Second, errors.New("no"))})
		began := time.Now()
		s.AwaitFirst(t.Context())
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %v; want until the slower one has failed", waited)
		}
		s.Use([]CloudSource{{"sigv4", after(time.Hour, nil)}})
		brief, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		s.AwaitFirst(brief)
		if waited := time.Since(began); waited != 4*time.Second {
			t.Errorf("waited %v; want no longer than its context", waited)
		}
	})
}

func TestIssuedGetsTheSameAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A metadata server keeps its token until five minutes before its end.
		var current Credential
		issuer := &script{fetch: func(_ context.Context, n int) (Credential, error) {
			if time.Until(current.Expires) < 5*time.Minute {
				current = Credential{Token: "token-" + strconv.Itoa(n), Expires: time.Now().Add(time.Hour)}
			}
			return current, nil
		}}
		var changes atomic.Int32
		s, _ := started(t, func(string) { changes.Add(1) }, CloudSource{"adc", issuer})
		for range 24 * 360 {
			if _, ok := s.Bearer("adc"); !ok {
				t.Fatal("no token")
			}
			pass(10 * time.Second)
		}
		if n := issuer.fetches.Load(); n > 100 || changes.Load() < 23 {
			t.Errorf("%d fetches, %d changes in a day", n, changes.Load())
		}
	})
}

func TestIssuedWhenThePolicyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := hourly(), hourly()
		s, _ := started(t, nil, CloudSource{"adc", first}, CloudSource{"entra", hourly()})
		s.Use([]CloudSource{{"adc", second}})
		if token, ok := s.Bearer("adc"); !ok || token != "token-1" {
			t.Errorf("a place that stayed has %q, %v", token, ok)
		}
		if _, ok := s.Bearer("entra"); ok {
			t.Error("a dropped place is still there")
		}
		if _, ok := s.Expiry("entra"); ok || len(s.Missing()) != 0 {
			t.Errorf("a dropped place has an end, or is missing: %v", s.Missing())
		}
		pass(time.Hour)
		synctest.Wait()
		if first.fetches.Load() != 1 || second.fetches.Load() == 0 {
			t.Error("the new issuer is not asked")
		}
	})
}

func TestIssuedRefusesWhatIsNoCredential(t *testing.T) {
	hour := func() time.Time { return time.Now().Add(time.Hour) }
	cases := []struct {
		name string
		got  func() Credential
	}{
		{"nothing", func() Credential { return Credential{Expires: hour()} }},
		{"half of it", func() Credential { return Credential{AWS: AWSCredentials{AccessKeyID: "id"}, Expires: hour()} }},
		{"a token that would split a header", func() Credential { return Credential{Token: "token-\r\nx", Expires: hour()} }},
		{"an expired one", func() Credential { return Credential{Token: "token-1", Expires: time.Now()} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := started(t, nil, CloudSource{"adc", &script{fetch: func(context.Context, int) (Credential, error) { return c.got(), nil }}})
				if _, ok := s.Bearer("adc"); ok || len(s.Missing()) != 1 {
					t.Error("it is given out")
				}
				if got := j.levels(t); got != "ERROR" {
					t.Errorf("logged %s", got)
				}
			})
		})
	}
}

func TestIssuedThatNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		issuer := &script{fetch: func(_ context.Context, n int) (Credential, error) {
			return Credential{AWS: AWSCredentials{AccessKeyID: "id", SecretAccessKey: strconv.Itoa(n / 3)}}, nil
		}}
		s, _ := started(t, func(string) { changes.Add(1) }, CloudSource{"sigv4", issuer})
		pass(2*lookAgain + time.Second)
		synctest.Wait()
		creds, ok := s.AWS("sigv4")
		if !ok || creds.SecretAccessKey != "1" || changes.Load() != 1 {
			t.Errorf("AWS = %v, %d changes: a changed file is not seen", ok, changes.Load())
		}
		if _, ok := s.Expiry("sigv4"); ok {
			t.Error("it has an end")
		}
		if _, ok := s.Bearer("sigv4"); ok {
			t.Error("credentials for signing are a bearer token")
		}
	})
}

func TestReasonHidesSecrets(t *testing.T) {
	hidden := []string{
		"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY1",
		"eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
		"ya29.a0AfB_byC1234567890abcdef",
		"abc8Q~0123456789abcdefGHIJKL",
		strings.Repeat("0a", 32),
	}
	for _, secret := range hidden {
		got := reason(errors.New(`cannot parse "` + secret + "\"\nat all"))
		for word := range strings.SplitSeq(secret, "/") {
			if len(word) >= 20 && strings.Contains(got, word) {
				t.Errorf("reason keeps %q: %s", word, got)
			}
		}
	}
	for _, plain := range []string{
		"open /var/run/secrets/eks.amazonaws.com/serviceaccount/token: no such file or directory",
		"lookup bedrock-runtime.ap-southeast-4.amazonaws.com: no such host",
		"application 6731de76-14a6-49ae-97bc-6eba6914391e was not found",
		"AssumeRoleWithWebIdentity: AccessDenied",
	} {
		if got := reason(errors.New(plain)); got != plain {
			t.Errorf("reason(%q) = %q", plain, got)
		}
	}
	if got := reason(errors.New(strings.Repeat("é ", maxReason))); len(got) > maxReason+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
