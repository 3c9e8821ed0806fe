package credential

import (
	"context"
	"time"
)

// Issuer is where a cloud's credentials come from: one of the chains that the
// cloud's own libraries have.
type Issuer interface {
	// Fetch gets a credential anew, never one that it remembers. It may take
	// long, and ends with ctx. Its error is fit for a log: the reason, without
	// secrets and without what an endpoint answered.
	Fetch(ctx context.Context) (Credential, error)
}

// Credential is what an issuer gives: Token, or AWS. Printed, it shows nothing.
type Credential struct {
	Token string // an access token, for an authorization header
	AWS   AWSCredentials
	// UserProject is the Google Cloud project that is to pay, where the credential
	// names one.
	UserProject string
	// Expires is when the platform takes it no longer; zero is never.
	Expires time.Time
}

// String hides the credential from %v and %+v, GoString from %#v.
func (Credential) String() string { return hidden }

// GoString is String.
func (Credential) GoString() string { return hidden }

func (c Credential) empty() bool {
	return c.Token == "" && (c.AWS.AccessKeyID == "" || c.AWS.SecretAccessKey == "")
}

// inFlight is how long before its end a credential is no longer used: a request
// needs some time to get where it is looked at, and clocks differ.
const inFlight = 10 * time.Second

func (c Credential) valid(now time.Time) bool {
	return !c.empty() && (c.Expires.IsZero() || now.Before(c.Expires.Add(-inFlight)))
}

// sameValue reports whether another request would look the same with the other.
func (c Credential) sameValue(other Credential) bool {
	return c.Token == other.Token && c.AWS == other.AWS
}
