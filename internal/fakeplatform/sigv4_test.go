package fakeplatform

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSignatureVector is the worked example of AWS's own documentation.
func TestSignatureVector(t *testing.T) {
	sum := sha256.Sum256(nil)
	r := &Request{
		Method: "GET", Target: "/?Action=ListUsers&Version=2010-05-08", BodySHA256: hex.EncodeToString(sum[:]),
		Header: []Field{{"Host", "iam.amazonaws.com"}, {"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}, {"X-Amz-Date", "20150830T123600Z"}},
	}
	a := authorization{date: "20150830", region: "us-east-1", service: "iam", signed: []string{"content-type", "host", "x-amz-date"}}
	const want = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	if got := signature("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", a, r); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCanonicalForms(t *testing.T) {
	for in, want := range map[string]string{"/model/a%3A0/invoke": "/model/a%253A0/invoke", "/model/a:0/invoke": "/model/a%3A0/invoke", "/v1/messages": "/v1/messages"} {
		if got := encodeAgain(in); got != want {
			t.Errorf("path %s: got %s, want %s", in, got, want)
		}
	}
	if got := canonicalQuery("b=2&a=x/y&a=&c=%2F"); got != "a=&a=x%2Fy&b=2&c=%2F" {
		t.Errorf("query: %s", got)
	}
	r := &Request{Header: []Field{{"X-A", "  one   two "}, {"x-a", "three"}}}
	if got := canonicalValue(r, "x-a"); got != "one two,three" {
		t.Errorf("header: %q", got)
	}
}

// signing is how a test signs; the zero value of a member is the right one.
type signing struct {
	key             AWSKey
	region, service string
	at              time.Time
	signed          string // "" is content-type;host;x-amz-date and the token
	hash            string // of x-amz-content-sha256, "" sends none
	body            string // signed in place of the one that is sent
	date            string // of the scope
}

var awsKey = AWSKey{ID: "AKIDFAKE", Secret: "secret"}

// sign adds the headers of a signature to req, whose body is body.
func (s signing) sign(req *http.Request, body string) {
	key := s.key
	if key.ID == "" {
		key = awsKey
	}
	if s.at.IsZero() {
		s.at = time.Now()
	}
	if s.body == "" {
		s.body = body
	}
	stamp := s.at.UTC().Format("20060102T150405Z")
	if s.date == "" {
		s.date = stamp[:8]
	}
	req.Header.Set("x-amz-date", stamp)
	if s.hash != "" {
		req.Header.Set("x-amz-content-sha256", s.hash)
	}
	signed := "content-type;host;x-amz-date"
	if key.Token != "" {
		req.Header.Set("x-amz-security-token", key.Token)
		signed += ";x-amz-security-token"
	}
	if s.signed != "" {
		signed = s.signed
	}
	sum := sha256.Sum256([]byte(s.body))
	r := &Request{Method: req.Method, Target: req.URL.RequestURI(), BodySHA256: hex.EncodeToString(sum[:]), Header: []Field{{"host", req.URL.Host}}}
	for name, values := range req.Header {
		r.Header = append(r.Header, Field{name, values[0]})
	}
	a := authorization{date: s.date, region: s.region, service: s.service, signed: strings.Split(signed, ";")}
	req.Header.Set("authorization", algorithm+" Credential="+strings.Join([]string{key.ID, s.date, s.region, s.service, "aws4_request"}, "/")+
		", SignedHeaders="+signed+", Signature="+signature(key.Secret, a, r))
}

func TestSignatures(t *testing.T) {
	temporary := AWSKey{ID: "ASIAFAKE", Secret: "other", Token: "session"}
	rules := Rules{AWS: []AWSKey{awsKey, temporary}, Region: "us-west-2"}
	for _, c := range []struct {
		name     string
		signing  signing
		edit     func(*http.Request)
		none     bool // no key is known
		contains string
	}{
		{name: "good"},
		{name: "temporary", signing: signing{key: temporary}},
		{name: "with the hash", signing: signing{hash: hashOf(bedrockBody), signed: "content-type;host;x-amz-content-sha256;x-amz-date"}},
		{name: "unknown key", signing: signing{key: AWSKey{ID: "AKIDOTHER", Secret: "s"}}, contains: excUnrecognized},
		{name: "no key is known", none: true, contains: excUnrecognized},
		{name: "wrong secret", signing: signing{key: AWSKey{ID: awsKey.ID, Secret: "s"}}, contains: "we calculated does not match"},
		{name: "without its token", signing: signing{key: AWSKey{ID: temporary.ID, Secret: temporary.Secret}}, contains: excUnrecognized},
		{name: "token of nobody", signing: signing{key: AWSKey{ID: awsKey.ID, Secret: awsKey.Secret, Token: "t"}}, contains: excUnrecognized},
		{name: "token not signed", signing: signing{key: temporary, signed: "content-type;host;x-amz-date"}, contains: "must be a signed header"},
		{name: "other body", signing: signing{body: bedrockBody + " "}, contains: "we calculated does not match"},
		{name: "other hash", signing: signing{hash: strings.Repeat("0", 64), signed: "content-type;host;x-amz-content-sha256;x-amz-date"}, contains: "not the hash of the body"},
		{name: "unsigned payload", signing: signing{hash: "UNSIGNED-PAYLOAD", signed: "content-type;host;x-amz-content-sha256;x-amz-date"}, contains: "not the hash of the body"},
		{name: "old", signing: signing{at: time.Now().Add(-6 * time.Minute)}, contains: "Signature expired"},
		{name: "from the future", signing: signing{at: time.Now().Add(6 * time.Minute)}, contains: "not yet current"},
		{name: "within five minutes", signing: signing{at: time.Now().Add(-4 * time.Minute)}},
		{name: "scope of another day", signing: signing{date: "20200101"}, contains: "Date in Credential scope"},
		{name: "wrong service", signing: signing{service: "bedrock-mantle"}, contains: "correct service"},
		{name: "wrong region", signing: signing{region: "us-east-1"}, contains: "valid region"},
		{name: "host not signed", signing: signing{signed: "content-type;x-amz-date"}, contains: "'host' must be a signed header"},
		{name: "content type not signed", signing: signing{signed: "host;x-amz-date"}, contains: "must be a signed header"},
		{name: "date not signed", signing: signing{signed: "content-type;host"}, contains: "must be a signed header"},
		{name: "a proxy's header signed", signing: signing{signed: "content-type;host;user-agent;x-amz-date"}, edit: func(r *http.Request) { r.Header.Set("user-agent", "x") }, contains: "a proxy may touch the signed header user-agent"},
		{name: "Envoy's header signed", signing: signing{signed: "content-type;host;x-amz-date;x-envoy-a"}, edit: func(r *http.Request) { r.Header.Set("x-envoy-a", "x") }, contains: "a proxy may touch"},
		{name: "not sorted", signing: signing{signed: "host;content-type;x-amz-date"}, contains: "not sorted"},
		{name: "a header that is not there", signing: signing{signed: "content-type;host;x-amz-date;x-there"}, contains: "not there once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, Bedrock)
			s.SetRules(rules)
			if c.none {
				s.SetRules(Rules{})
			}
			req := request(t, s, bedrockPath, bedrockBody, "x-api-key", "", "anthropic-version", "")
			if c.edit != nil {
				c.edit(req)
			}
			if c.signing.region == "" {
				c.signing.region = "us-west-2"
			}
			if c.signing.service == "" {
				c.signing.service = "bedrock"
			}
			c.signing.sign(req, bedrockBody)
			status, body := do(t, req)
			refusal := s.Requests()[0].Refusal
			switch {
			case c.contains == "" && status != 200:
				t.Errorf("refused: %d %s", status, body)
			case c.contains == excUnrecognized && !strings.Contains(refusal, "security token included in the request is invalid"),
				c.contains != excUnrecognized && !strings.Contains(refusal, c.contains):
				t.Errorf("got %d %q, want %q", status, refusal, c.contains)
			case c.contains != "" && status != 403:
				t.Errorf("status %d", status)
			}
		})
	}
}

func TestSignatureByAnotherClock(t *testing.T) {
	s := newServer(t, Bedrock)
	then := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	s.SetRules(Rules{AWS: []AWSKey{awsKey}, Now: func() time.Time { return then }})
	req := request(t, s, bedrockPath, bedrockBody, "x-api-key", "", "anthropic-version", "")
	signing{region: "us-east-1", service: "bedrock", at: then.Add(-time.Minute)}.sign(req, bedrockBody)
	if status, body := do(t, req); status != 200 {
		t.Errorf("got %d %s", status, body)
	}
}

func TestSignatureIsMalformed(t *testing.T) {
	for auth, contains := range map[string]string{
		algorithm + " Credential=a/b/c, SignedHeaders=host, Signature=0":                             "exactly 5",
		algorithm + " SignedHeaders=host, Signature=0":                                               "'Credential'",
		algorithm + " Credential=a/20260101/r/s/aws4_request, SignedHeaders=host":                    "'Signature'",
		algorithm + " Credential=AKIDFAKE/x/r/bedrock/aws4_request, SignedHeaders=host, Signature=0": "x-amz-date",
	} {
		s := newServer(t, Bedrock)
		s.SetRules(Rules{AWS: []AWSKey{awsKey}})
		status, _ := do(t, request(t, s, bedrockPath, bedrockBody, "x-api-key", "", "anthropic-version", "", "authorization", auth))
		if why := s.Requests()[0].Refusal; status != 403 || !strings.Contains(why, contains) {
			t.Errorf("%s: got %d %q", auth, status, why)
		}
	}
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
