package fakeplatform

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AWSKey is a credential that a platform knows. Token is of temporary ones.
type AWSKey struct{ ID, Secret, Token string }

const (
	algorithm = "AWS4-HMAC-SHA256"
	// maxSkew is how far a signature's time may be from the platform's.
	maxSkew = 5 * time.Minute
)

// The exceptions of AWS's layer for authorization.
const (
	excNoToken      = "MissingAuthenticationTokenException"
	excUnrecognized = "UnrecognizedClientException"
	excSignature    = "InvalidSignatureException"
	excIncomplete   = "IncompleteSignatureException"
	excExpired      = "ExpiredTokenException"
)

// authorization are the parts of the header.
type authorization struct {
	id, date, region, service string
	signed                    []string
	signature                 string
}

// verify recomputes a request's signature (Signature Version 4 of the AWS
// General Reference). It returns the exception and its text; "" accepts.
func verify(rules Rules, service string, r *Request) (exception, why string) {
	a, why := parseAuthorization(r)
	if why != "" {
		return excIncomplete, why
	}
	i := slices.IndexFunc(rules.AWS, func(k AWSKey) bool { return k.ID == a.id })
	if i < 0 || rules.AWS[i].Token != r.Get("x-amz-security-token") {
		return excUnrecognized, "The security token included in the request is invalid."
	}
	if why := checkScope(rules, service, a, r); why != "" {
		return excSignature, why
	}
	if why := checkSigned(a, r); why != "" {
		return excSignature, why
	}
	if h := r.Get("x-amz-content-sha256"); h != "" && h != r.BodySHA256 {
		return excSignature, "x-amz-content-sha256 is not the hash of the body"
	}
	if !hmac.Equal([]byte(a.signature), []byte(signature(rules.AWS[i].Secret, a, r))) {
		return excSignature, "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
	}
	return "", ""
}

func parseAuthorization(r *Request) (authorization, string) {
	var a authorization
	rest, ok := strings.CutPrefix(r.Get("authorization"), algorithm+" ")
	if !ok {
		return a, "Authorization header requires '" + algorithm + "'"
	}
	for part := range strings.SplitSeq(rest, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			scope := strings.Split(v, "/")
			if len(scope) != 5 || scope[4] != "aws4_request" {
				return a, "Credential must have exactly 5 slash-delimited elements"
			}
			a.id, a.date, a.region, a.service = scope[0], scope[1], scope[2], scope[3]
		case "SignedHeaders":
			a.signed = strings.Split(v, ";")
		case "Signature":
			a.signature = v
		}
	}
	for name, missing := range map[string]bool{"Credential": a.id == "", "SignedHeaders": len(a.signed) == 0, "Signature": a.signature == ""} {
		if missing {
			return a, "Authorization header requires '" + name + "' parameter"
		}
	}
	return a, ""
}

func checkScope(rules Rules, service string, a authorization, r *Request) string {
	now := time.Now()
	if rules.Now != nil {
		now = rules.Now()
	}
	at, err := time.Parse("20060102T150405Z", r.Get("x-amz-date"))
	switch {
	case err != nil:
		return "x-amz-date is not a time"
	case a.date != at.Format("20060102"):
		return "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP"
	case now.Sub(at) > maxSkew:
		return "Signature expired: " + r.Get("x-amz-date") + " is now earlier than " + now.UTC().Add(-maxSkew).Format("20060102T150405Z")
	case at.Sub(now) > maxSkew:
		return "Signature not yet current: " + r.Get("x-amz-date") + " is still later than " + now.UTC().Add(maxSkew).Format("20060102T150405Z")
	case a.service != service:
		return "Credential should be scoped to correct service: '" + service + "'."
	case rules.Region != "" && a.region != rules.Region:
		return "Credential should be scoped to a valid region."
	}
	return ""
}

// touched are headers that something between the signer and the platform adds,
// changes or drops, whole names or (with a dash at the end) beginnings. A signer
// that signs one works only as long as nothing stands between.
var touched = []string{
	"accept-encoding", "baggage", "connection", "expect", "forwarded", "keep-alive", "te", "traceparent", "tracestate", "trailer", "transfer-encoding", "upgrade", "user-agent", "via",
	"x-amzn-trace-id", "x-request-id", "x-b3-", "x-crossdoor-", "x-envoy-", "x-forwarded-",
}

func checkSigned(a authorization, r *Request) string {
	if !slices.IsSorted(a.signed) {
		return "SignedHeaders are not sorted"
	}
	for i, name := range a.signed {
		for _, t := range touched {
			if name == t || strings.HasSuffix(t, "-") && strings.HasPrefix(name, t) {
				return "a proxy may touch the signed header " + name
			}
		}
		if r.Count(name) == 0 || i > 0 && a.signed[i-1] == name {
			return "SignedHeaders names a header that is not there once: " + name
		}
	}
	for _, f := range r.Header {
		name := strings.ToLower(f.Name)
		must := name == "host" || name == "x-amz-date" || name == "content-type" || strings.HasPrefix(name, "x-amz-")
		if must && !slices.Contains(a.signed, name) {
			return "'" + name + "' must be a signed header"
		}
	}
	return ""
}

func signature(secret string, a authorization, r *Request) string {
	path, query, _ := strings.Cut(r.Target, "?")
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", r.Method, encodeAgain(path), canonicalQuery(query))
	for _, name := range a.signed {
		fmt.Fprintf(&b, "%s:%s\n", name, canonicalValue(r, name))
	}
	fmt.Fprintf(&b, "\n%s\n%s", strings.Join(a.signed, ";"), r.BodySHA256)
	sum := sha256.Sum256([]byte(b.String()))
	scope := strings.Join([]string{a.date, a.region, a.service, "aws4_request"}, "/")
	text := strings.Join([]string{algorithm, r.Get("x-amz-date"), scope, hex.EncodeToString(sum[:])}, "\n")
	key := mac(mac(mac(mac([]byte("AWS4"+secret), a.date), a.region), a.service), "aws4_request")
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// encodeAgain encodes the path as it is on the wire once more, as every service
// but S3 wants it: a percent sign becomes %25.
func encodeAgain(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func canonicalQuery(query string) string {
	if query == "" {
		return ""
	}
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		name, v, _ := strings.Cut(p, "=")
		pairs[i] = encodeQuery(name) + "=" + encodeQuery(v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

func encodeQuery(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		s = plain
	}
	return strings.ReplaceAll(encodeAgain(s), "/", "%2F")
}

// canonicalValue joins the values of all lines of a header, blanks inside them
// made one.
func canonicalValue(r *Request, name string) string {
	var values []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			values = append(values, strings.Join(strings.Fields(f.Value), " "))
		}
	}
	return strings.Join(values, ",")
}
