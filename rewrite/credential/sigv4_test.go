package credential

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// recomputed is a signature made without the SDK, from the rules in the AWS
// General Reference. headers are all that is signed, names in lower case.
func recomputed(secret, method, target, region, service, date, hash string, headers map[string]string) string {
	path, query, _ := strings.Cut(target, "?")
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name != "" {
			pairs = append(pairs, name+"="+value)
		}
	}
	slices.Sort(pairs)
	var names []string
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	lines := []string{method, encodedOnceMore(path), strings.Join(pairs, "&")}
	for _, name := range names {
		lines = append(lines, name+":"+headers[name])
	}
	lines = append(lines, "", strings.Join(names, ";"), hash)
	scope := date[:8] + "/" + region + "/" + service + "/aws4_request"
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	key := []byte("AWS4" + secret)
	for _, text := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:])) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func encodedOnceMore(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TestRecomputed holds the recomputation against AWS's own test suite
// (aws-sig-v4-test-suite), so that it can judge what Sign makes.
func TestRecomputed(t *testing.T) {
	const host, date = "example.amazonaws.com", "20150830T123600Z"
	form := PayloadHash([]byte("Param1=value1"))
	cases := []struct {
		name, method, target, hash string
		headers                    map[string]string
		want                       string
	}{
		{"get-vanilla", "GET", "/", emptyHash, nil, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "/", emptyHash, nil, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", emptyHash, nil, "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		{"get-space", "GET", "/example space/", emptyHash, nil, "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
		{"get-utf8", "GET", "/ሴ", emptyHash, nil, "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", emptyHash, nil, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"post-x-www-form-urlencoded", "POST", "/", form, map[string]string{"content-type": "application/x-www-form-urlencoded"}, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		{"post-sts-header-before", "POST", "/", emptyHash, map[string]string{"x-amz-security-token": "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="}, "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			headers := map[string]string{"host": host, "x-amz-date": date}
			maps.Copy(headers, c.headers)
			got := recomputed("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", c.method, c.target, "us-east-1", "service", date, c.hash, headers)
			if got != c.want {
				t.Errorf("got %s; want %s", got, c.want)
			}
		})
	}
}

// TestSignAsAWSPublishes holds Sign against the examples that AWS publishes with
// a signed x-amz-content-sha256 (Amazon S3 API Reference, "Signature calculation:
// authorization header").
func TestSignAsAWSPublishes(t *testing.T) {
	creds := AWSCredentials{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	cases := []struct{ name, path, want string }{
		{"lifecycle of a bucket", "/?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"objects of a bucket", "/?max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Sign(creds, Unsigned{
				Method: "GET", Authority: "examplebucket.s3.amazonaws.com", Path: c.path,
				PayloadHash: PayloadHash(), Service: "s3", Region: "us-east-1",
			}, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
			want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=" + c.want
			if err != nil || got.Authorization != want {
				t.Errorf("got  %s, %v\nwant %s", got.Authorization, err, want)
			}
		})
	}
}

func TestSignIsWhatAPlatformRecomputes(t *testing.T) {
	at := time.Date(2026, 11, 30, 23, 59, 59, 999, time.FixedZone("ahead", 7200))
	body := []byte(`{"max_tokens":1}`)
	base := Unsigned{
		Method: "POST", Authority: "bedrock-runtime.us-east-1.amazonaws.com", Path: "/model/anthropic.claude-opus-5-5/invoke",
		ContentType: "application/json", PayloadHash: PayloadHash(body), Service: "bedrock", Region: "us-east-1",
	}
	with := func(change func(*Unsigned)) Unsigned { u := base; change(&u); return u }
	cases := []struct {
		name string
		u    Unsigned
	}{
		{"plain", base},
		{"escapes in the path", with(func(u *Unsigned) { u.Path = "/model/us.anthropic.claude-opus-4-6-v1%3A0/invoke-with-response-stream" })},
		{"raw colon in the path", with(func(u *Unsigned) { u.Path = "/model/us.anthropic.claude-opus-4-6-v1:0/invoke" })},
		{"an ARN in the path", with(func(u *Unsigned) {
			u.Path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.x/invoke"
		})},
		{"a path that begins with two slashes", with(func(u *Unsigned) { u.Path = "//v1/messages" })},
		{"a query", with(func(u *Unsigned) { u.Path = "/v1/messages?beta=true" })},
		{"a query out of order", with(func(u *Unsigned) { u.Path = "/v1/messages?b=2&a=1" })},
		{"a port", with(func(u *Unsigned) { u.Authority = "127.0.0.1:8443" })},
		{"a default port that is sent", with(func(u *Unsigned) { u.Authority = "platform.example:443" })},
		{"no content type", with(func(u *Unsigned) { u.ContentType = "" })},
		{"a content type with blanks", with(func(u *Unsigned) { u.ContentType = "application/json; charset=utf-8" })},
		{"no body", with(func(u *Unsigned) { u.PayloadHash = PayloadHash() })},
		{"another platform", with(func(u *Unsigned) { u.Service, u.Region = "aws-external-anthropic", "eu-west-1" })},
	}
	for _, token := range []string{"", "session//token=="} {
		creds := AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: token}
		for _, c := range cases {
			t.Run(c.name+" "+token, func(t *testing.T) {
				got, err := Sign(creds, c.u, at)
				if err != nil {
					t.Fatal(err)
				}
				headers := map[string]string{"host": c.u.Authority, "x-amz-date": "20261130T215959Z", "x-amz-content-sha256": c.u.PayloadHash}
				if c.u.ContentType != "" {
					headers["content-type"] = c.u.ContentType
				}
				if token != "" {
					headers["x-amz-security-token"] = token
				}
				signature := recomputed("secret", c.u.Method, c.u.Path, c.u.Region, c.u.Service, "20261130T215959Z", c.u.PayloadHash, headers)
				names := make([]string, 0, len(headers))
				for name := range headers {
					names = append(names, name)
				}
				slices.Sort(names)
				want := Signature{
					Authorization: fmt.Sprintf("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/%s/%s/aws4_request, SignedHeaders=%s, Signature=%s", c.u.Region, c.u.Service, strings.Join(names, ";"), signature),
					Date:          "20261130T215959Z", Token: token, PayloadHash: c.u.PayloadHash,
				}
				if got != want {
					t.Errorf("got  %+v\nwant %+v", headersOf(got), headersOf(want))
				}
			})
		}
	}
}

func headersOf(s Signature) map[string]string { return maps.Collect(s.Headers()) }

// TestSignForgetsAWrongSecret is of an operator who puts a secret right that
// stood beside the right ID.
func TestSignForgetsAWrongSecret(t *testing.T) {
	u := Unsigned{Method: "POST", Authority: "h", Path: "/", PayloadHash: emptyHash, Service: "bedrock", Region: "us-east-1"}
	now := time.Now()
	wrong, err := Sign(AWSCredentials{AccessKeyID: "id", SecretAccessKey: "wrong"}, u, now)
	if err != nil {
		t.Fatal(err)
	}
	right, err := Sign(AWSCredentials{AccessKeyID: "id", SecretAccessKey: "right"}, u, now)
	if err != nil || right == wrong {
		t.Errorf("another secret gives the same signature (%v)", err)
	}
}

func TestSignRefuses(t *testing.T) {
	creds := AWSCredentials{AccessKeyID: "id", SecretAccessKey: "sEcrEt"}
	good := Unsigned{Method: "POST", Authority: "h", Path: "/", PayloadHash: emptyHash, Service: "bedrock", Region: "us-east-1"}
	cases := []struct {
		name  string
		creds AWSCredentials
		u     func(*Unsigned)
	}{
		{"no credentials", AWSCredentials{}, func(*Unsigned) {}},
		{"no secret", AWSCredentials{AccessKeyID: "id"}, func(*Unsigned) {}},
		{"no authority", creds, func(u *Unsigned) { u.Authority = "" }},
		{"no region", creds, func(u *Unsigned) { u.Region = "" }},
		{"no service", creds, func(u *Unsigned) { u.Service = "" }},
		{"no slash", creds, func(u *Unsigned) { u.Path = "model" }},
		{"no hash", creds, func(u *Unsigned) { u.PayloadHash = "" }},
		{"a query that cannot be read", creds, func(u *Unsigned) { u.Path = "/?a=%zz" }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			u := good
			c.u(&u)
			if got, err := Sign(c.creds, u, time.Now()); err == nil || got != (Signature{}) || strings.Contains(err.Error(), "sEcrEt") {
				t.Errorf("Sign = %v, %v; want nothing and an error without a secret", headersOf(got), err)
			}
		})
	}
}

func TestPayloadHashOfParts(t *testing.T) {
	whole := []byte(`{"model":"a","max_tokens":1}`)
	for i := range whole {
		if got := PayloadHash(whole[:i], whole[i:]); got != PayloadHash(whole) {
			t.Fatalf("cut at %d: %s", i, got)
		}
	}
	if PayloadHash() != emptyHash {
		t.Error("of nothing it is not the hash of nothing")
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	aws := AWSCredentials{AccessKeyID: "AKIDSECRET", SecretAccessKey: "SECRET", SessionToken: "SECRET"}
	for _, v := range []any{aws, &aws, Credential{AWS: aws, Token: "SECRET"}, &Credential{Token: "SECRET"}, Signature{Authorization: "SECRET", Token: "SECRET"}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "SECRET") {
				t.Errorf("%s of a %T prints %s", verb, v, text)
			}
		}
	}
}

func FuzzSign(f *testing.F) {
	f.Add("/model/a%3A0/invoke", "application/json")
	f.Add("/v1/messages?beta=true", "")
	f.Add("//?&&=%20", "a  b")
	creds := AWSCredentials{AccessKeyID: "id", SecretAccessKey: "secret"}
	f.Fuzz(func(t *testing.T, path, contentType string) {
		got, err := Sign(creds, Unsigned{
			Method: "POST", Authority: "h:1", Path: path, ContentType: contentType,
			PayloadHash: emptyHash, Service: "bedrock", Region: "us-east-1",
		}, time.Unix(0, 0))
		target, query, _ := strings.Cut(path, "?")
		if _, bad := url.ParseQuery(query); (bad != nil || !strings.HasPrefix(path, "/")) != (err != nil) {
			t.Fatalf("Sign(%q): %v", path, err)
		}
		if err != nil || query != "" || strings.TrimSpace(contentType) != contentType || strings.Contains(contentType, "  ") || strings.ContainsAny(contentType, "\t\r\n\v\f") {
			return
		}
		headers := map[string]string{"host": "h:1", "x-amz-date": got.Date, "x-amz-content-sha256": emptyHash}
		if contentType != "" {
			headers["content-type"] = contentType
		}
		want := recomputed("secret", "POST", target, "us-east-1", "bedrock", got.Date, emptyHash, headers)
		if !strings.HasSuffix(got.Authorization, "Signature="+want) {
			t.Errorf("Sign(%q, %q) = %s; want %s", path, contentType, got.Authorization, want)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	creds := AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret", SessionToken: strings.Repeat("t", 1000)}
	for _, size := range []int{1 << 10, 32 << 20} {
		body := bytes.Repeat([]byte{'x'}, size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, err := Sign(creds, Unsigned{
					Method: "POST", Authority: "bedrock-runtime.us-east-1.amazonaws.com", Path: "/model/anthropic.claude-opus-5-5/invoke",
					ContentType: "application/json", PayloadHash: PayloadHash(body), Service: "bedrock", Region: "us-east-1",
				}, time.Now())
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
