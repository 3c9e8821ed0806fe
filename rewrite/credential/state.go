package credential

import (
	"errors"
	"log/slog"
	"time"
)

// state is how a place stands: what the log has last told of it.
type state uint8

const (
	unknown   state = iota // never fetched
	good                   // valid, and the last fetch succeeded
	unrenewed              // valid, but the last fetch failed
	lacking                // nothing valid: its targets are left out
)

// afterFailure is the state in which a failed fetch leaves what is there.
func afterFailure(have Credential, now time.Time) state {
	if have.valid(now) {
		return unrenewed
	}
	return lacking
}

// problem is what is wrong with a credential that was just fetched.
func (c Credential) problem(now time.Time) error {
	switch {
	case c.empty():
		return errors.New("the issuer gave none")
	case !sendable(c.Token) || !sendable(c.AWS.AccessKeyID) || !sendable(c.AWS.SessionToken):
		return errors.New("the issuer gave one that cannot stand in a header")
	case !c.valid(now):
		return errors.New("the issuer gave one that has expired: is the clock right?")
	}
	return nil
}

// tell logs a change of state, once.
func (s *Issued) tell(place string, was, is state, expires time.Time, err error) {
	if was == is {
		return
	}
	at := slog.String("credential", place)
	switch is {
	case good:
		if expires.IsZero() {
			s.log.Info("credential is there", at)
			return
		}
		s.log.Info("credential is there", at, slog.Time("expires", expires))
	case unrenewed:
		s.log.Warn("credential cannot be renewed; the one that is there still holds", at, slog.Time("expires", expires), slog.String("reason", reason(err)))
	case lacking:
		s.log.Error("credential is missing; its targets are left out", at, slog.String("reason", reason(err)))
	case unknown:
	}
}
