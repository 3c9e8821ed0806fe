package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The headers of a signature.
const (
	headerAuthorization = "authorization"
	headerAmzDate       = "x-amz-date"
	headerAmzToken      = "x-amz-security-token" //nolint:gosec // its name, not one
	headerAmzHash       = "x-amz-content-sha256"
)

// Unsigned is what SigV4 signs of a request, as it goes out: whatever is changed
// afterwards makes the platform refuse it. All but ContentType must be set.
type Unsigned struct {
	Method string
	// Authority is the host as it is sent, with its port where it is not the
	// scheme's.
	Authority string
	// Path is the path on the wire, with its escapes and its query.
	Path        string
	ContentType string // "" where none is sent
	// PayloadHash is what PayloadHash gives for the body's bytes.
	PayloadHash string
	Service     string // the platform's name in signatures: `bedrock`, not a host
	Region      string
}

// Signature is what a request needs besides its own headers. It authenticates,
// so it is a secret for as long as the platform takes it (some minutes).
type Signature struct {
	Authorization string
	Date          string
	Token         string // "" unless the credentials are temporary
	PayloadHash   string
}

// Headers are the headers to set, names in lower case; those with an empty value
// are to be removed.
func (s Signature) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		_ = yield(headerAuthorization, s.Authorization) &&
			yield(headerAmzDate, s.Date) &&
			yield(headerAmzToken, s.Token) &&
			yield(headerAmzHash, s.PayloadHash)
	}
}

// String hides the signature from %v and %+v, GoString from %#v.
func (Signature) String() string { return hidden }

// GoString is String.
func (Signature) GoString() string { return hidden }

// PayloadHash is the SHA-256 of the parts put together, in lower-case hex.
func PayloadHash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p) // of a hash: never an error
	}
	var sum [sha256.Size]byte
	return hex.EncodeToString(h.Sum(sum[:0]))
}

// Sign signs a request by Signature Version 4 as every service but S3 has it: the
// path on the wire is encoded once more, so that `%3A` is signed as `%253A`. Only
// host, content-type and the signature's own headers are signed: what a proxy
// adds, changes or drops on the way must not matter. (AWS General Reference,
// "Signing AWS API requests"; platform reference, 5.2 and 14.)
//
// An error is a mistake of the caller: nothing of the credentials is in it.
func Sign(creds AWSCredentials, u Unsigned, at time.Time) (Signature, error) {
	if err := u.check(creds); err != nil {
		return Signature{}, err
	}
	path, query, _ := strings.Cut(u.Path, "?")
	if _, err := url.ParseQuery(query); err != nil {
		return Signature{}, errors.New("sign: the query cannot be read, and would be signed as another one")
	}
	// Opaque keeps the path as it is written. Without a scheme no port is taken for
	// a default one and left out of the signature.
	r := &http.Request{
		Method: u.Method,
		Host:   u.Authority,
		URL:    &url.URL{Opaque: "//" + u.Authority + path, RawQuery: query},
		Header: http.Header{"X-Amz-Content-Sha256": {u.PayloadHash}},
	}
	if u.ContentType != "" {
		r.Header["Content-Type"] = []string{u.ContentType}
	}
	// One signer is used once: it keeps derived keys by the ID of a key alone, and
	// would go on with a wrong secret that an operator has put right.
	signer := v4.NewSigner()
	err := signer.SignHTTP(context.Background(), creds.sdk(), r, u.PayloadHash, u.Service, u.Region, at)
	if err != nil {
		return Signature{}, fmt.Errorf("sign for %s in %s: %w", u.Service, u.Region, err)
	}
	return Signature{
		Authorization: r.Header.Get(headerAuthorization),
		Date:          r.Header.Get(headerAmzDate),
		Token:         r.Header.Get(headerAmzToken),
		PayloadHash:   u.PayloadHash,
	}, nil
}

func (u Unsigned) check(creds AWSCredentials) error {
	switch {
	case creds.AccessKeyID == "" || creds.SecretAccessKey == "":
		return errors.New("sign: there are no credentials")
	case u.Method == "" || u.Authority == "" || u.Service == "" || u.Region == "":
		return errors.New("sign: method, authority, service and region must be known")
	case !strings.HasPrefix(u.Path, "/"):
		return errors.New("sign: a path begins with a slash")
	case len(u.PayloadHash) != 2*sha256.Size:
		return errors.New("sign: the hash of the body is not a SHA-256 in hex")
	}
	return nil
}

// AWSCredentials sign requests to AWS. Printed, they show nothing.
type AWSCredentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string // "" unless they are temporary
}

// String hides the credentials from %v and %+v, GoString from %#v.
func (AWSCredentials) String() string { return hidden }

// GoString is String.
func (AWSCredentials) GoString() string { return hidden }

func (c AWSCredentials) sdk() aws.Credentials {
	return aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
}

// hidden stands for a secret that somebody tried to print.
const hidden = "(hidden)"
