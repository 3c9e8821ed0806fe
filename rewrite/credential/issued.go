package credential

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// fetchTimeout bounds one fetch.
	fetchTimeout = 30 * time.Second
	// renewAtMost is how often one place is renewed at the wish of an attempt.
	renewAtMost = 30 * time.Second
	// lookAgain is when a credential that never expires is fetched again: it may
	// be in a file that someone has changed.
	lookAgain = 5 * time.Minute
	// maxLead is how long before its end a credential is renewed at the earliest.
	maxLead = 15 * time.Minute
	// The waits after a failure double from the first to the last.
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// CloudSource is one of the credentials that a policy needs. Sources at one place
// are one and the same: what differs has another place.
type CloudSource struct {
	Place  string // as policy, trail and logs name it: `sigv4`, `adc`, `entra`
	Issuer Issuer
}

// Issued is a set of credentials that clouds issue for a while, by place. Run
// renews them ahead of need; everything else returns at once, with what is there.
// It is safe for concurrent use.
type Issued struct {
	log *slog.Logger
	// changed is told the place of every credential whose value became another
	// one.
	changed func(place string)
	wake    chan struct{} // tells Run to look again; holds one

	mu     sync.RWMutex
	places map[string]*issued
}

// issued is one place. Issued.mu guards it.
type issued struct {
	issuer   Issuer
	have     Credential    // the last one, valid or not; zero before the first
	since    time.Time     // when have got its value
	tried    chan struct{} // closed after the first fetch
	state    state
	due      time.Time // of the next fetch
	began    time.Time // when the last fetch began
	fetching bool
	failures int // since the last success
}

// NewIssued returns an empty set. changed may be nil; it is called without locks
// held.
func NewIssued(log *slog.Logger, changed func(place string)) *Issued {
	return &Issued{log: log, changed: changed, wake: make(chan struct{}, 1), places: map[string]*issued{}}
}

// Use replaces the sources. A place that stays keeps its credential, and has the
// new issuer from the next fetch on; a new place has none until Run has fetched it.
func (s *Issued) Use(sources []CloudSource) {
	s.mu.Lock()
	places := make(map[string]*issued, len(sources))
	for _, src := range sources {
		at, ok := s.places[src.Place]
		if !ok {
			at = &issued{due: time.Now(), tried: make(chan struct{})}
		}
		at.issuer = src.Issuer
		places[src.Place] = at
	}
	s.places = places
	s.mu.Unlock()
	s.look()
}

// Bearer is the access token at a place; ok is false when there is none that is
// valid now.
func (s *Issued) Bearer(place string) (token string, ok bool) {
	c, ok := s.valid(place)
	return c.Token, ok && c.Token != ""
}

// AWS are the credentials at a place; ok is false when there are none that are
// valid now.
func (s *Issued) AWS(place string) (creds AWSCredentials, ok bool) {
	c, ok := s.valid(place)
	return c.AWS, ok && c.AWS.AccessKeyID != ""
}

// UserProject is the Google Cloud project that the credential at a place names as
// the one that pays; "" leaves it to Google.
func (s *Issued) UserProject(place string) string {
	c, _ := s.valid(place)
	return c.UserProject
}

func (s *Issued) valid(place string) (Credential, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.places[place]
	if !ok || !at.have.valid(time.Now()) {
		return Credential{}, false
	}
	return at.have, true
}

// Expiry is when the credential at a place ends, also when it has already; ok is
// false where there is none, or none that ends.
func (s *Issued) Expiry(place string) (end time.Time, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.places[place]
	if !ok || at.have.Expires.IsZero() {
		return time.Time{}, false
	}
	return at.have.Expires, true
}

// Missing lists the places without a valid credential, sorted.
func (s *Issued) Missing() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for place, at := range s.places {
		if !at.have.valid(time.Now()) {
			out = append(out, place)
		}
	}
	slices.Sort(out)
	return out
}

// Renew asks for a new credential before it is due, after an answer that the one
// at place is expired or unknown: call it and go on with the next target. Many
// calls are one fetch, and a place is fetched at most every 30 s. It reports
// whether the place is of this set; when the new value is another one, changed
// tells.
func (s *Issued) Renew(place string) bool {
	s.mu.Lock()
	at, ok := s.places[place]
	if ok {
		if soon := at.began.Add(renewAtMost); soon.Before(at.due) {
			at.due = soon
		}
	}
	s.mu.Unlock()
	if ok {
		s.look()
	}
	return ok
}

// Outdated reports whether the credential at a place has another value than at
// began, when an attempt got its own: then a refusal of that one says nothing
// about this one, and is no reason to eject the key.
func (s *Issued) Outdated(place string, began time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.places[place]
	return ok && at.since.After(began)
}

// AwaitFirst returns when every place of now has been fetched once, successfully
// or not, or when ctx ends. It is for a service that starts: one that says it is
// ready a moment too early leaves targets out that a moment later it has.
func (s *Issued) AwaitFirst(ctx context.Context) {
	s.mu.RLock()
	var tried []chan struct{}
	for _, at := range s.places {
		tried = append(tried, at.tried)
	}
	s.mu.RUnlock()
	for _, one := range tried {
		select {
		case <-one:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Issued) look() {
	select {
	case s.wake <- struct{}{}:
	default: // it is told already
	}
}

// Run fetches what is due until ctx ends, and returns when no fetch is left. A
// place that hangs holds up no other. Call it once.
func (s *Issued) Run(ctx context.Context) {
	var fetches sync.WaitGroup
	defer fetches.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.wake:
		}
		due, next := s.begin(time.Now())
		for place, at := range due {
			fetches.Go(func() {
				s.fetch(ctx, place, at)
				s.look()
			})
		}
		timer.Reset(next)
	}
}

// begin marks what is due as being fetched, and says how long nothing else is.
func (s *Issued) begin(now time.Time) (due map[string]*issued, next time.Duration) {
	due, next = map[string]*issued{}, lookAgain
	s.mu.Lock()
	defer s.mu.Unlock()
	for place, at := range s.places {
		switch {
		case at.fetching:
		case at.due.After(now):
			next = min(next, at.due.Sub(now))
		default:
			at.fetching, at.began = true, now
			due[place] = at
		}
	}
	return due, next
}

func (s *Issued) fetch(ctx context.Context, place string, at *issued) {
	s.mu.RLock()
	issuer := at.issuer
	s.mu.RUnlock()
	bounded, done := context.WithTimeout(ctx, fetchTimeout)
	got, err := issuer.Fetch(bounded)
	done()
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	if err == nil {
		err = got.problem(now)
	}
	s.mu.Lock()
	was := at.state
	changed := at.settle(got, err, now)
	is, expires, kept := at.state, at.have.Expires, s.places[place] == at
	s.mu.Unlock()
	if !kept {
		return // the policy has dropped it meanwhile
	}
	s.tell(place, was, is, expires, err)
	if changed && s.changed != nil {
		s.changed(place)
	}
}

// settle takes what a fetch has given, and reports whether another value than the
// one before has come.
func (at *issued) settle(got Credential, err error, now time.Time) (changed bool) {
	if at.state == unknown {
		close(at.tried)
	}
	at.fetching = false
	if err != nil {
		at.failures++
		at.due = now.Add(backoff(at.failures))
		at.state = afterFailure(at.have, now)
		return false
	}
	if !at.have.sameValue(got) {
		changed = !at.have.empty()
		at.since = now
	}
	at.have, at.failures, at.state = got, 0, good
	at.due = now.Add(got.renewIn(now))
	return changed
}

// renewIn is when to renew: at a fifth of what is left of its life, at most
// maxLead and somewhat more before its end, so that replicas that began together
// do not ask together. An issuer that keeps one credential until shortly before
// its end gives the same again; then the same rule holds for what is left.
func (c Credential) renewIn(now time.Time) time.Duration {
	if c.Expires.IsZero() {
		return lookAgain
	}
	left := c.Expires.Sub(now)
	lead := min(left/5, maxLead)
	return max(left-lead-jitter(lead/4), firstBackoff)
}

// backoff is the wait after so many failures: between half of it and all of it.
func backoff(failures int) time.Duration {
	wait := min(firstBackoff<<min(failures-1, 10), lastBackoff)
	return wait/2 + jitter(wait/2)
}

func jitter(most time.Duration) time.Duration {
	return rand.N(most + 1) //nolint:gosec // it spreads requests, it keeps no secret
}
