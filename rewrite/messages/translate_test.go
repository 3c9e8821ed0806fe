package messages

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func headers(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1]
			}
		}
		return ""
	}
}

const jsonType = "application/json"

func TestTranslate(t *testing.T) {
	none := func(status int) string {
		return fmt.Sprintf("The platform answered with status %d and no readable error message.", status)
	}
	amzn := func(name string) func(string) string { return headers("x-amzn-errortype", name) }
	for _, c := range []struct {
		name        string
		status      int
		contentType string
		header      func(string) string
		body        string
		want        int
		kind        string
		message     string
	}{
		{"aws validation", 400, jsonType, amzn("ValidationException:http://internal.amazon.com/x"), `{"message":"The provided model identifier is invalid."}`, 400, TypeInvalidRequest, "The provided model identifier is invalid."},
		{"aws throttling", 429, jsonType, amzn("ThrottlingException"), `{"message":"Too many tokens, please wait before trying again."}`, 429, TypeRateLimit, "Too many tokens, please wait before trying again."},
		{"aws throttling as 400, by __type", 400, "application/x-amz-json-1.1", nil, `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate exceeded"}`, 429, TypeRateLimit, "Rate exceeded"},
		{"aws quota", 400, jsonType, amzn("ServiceQuotaExceededException"), `{"message":"quota"}`, 402, TypeBilling, "quota"},
		{"aws not ready", 429, jsonType, amzn("ModelNotReadyException"), `{"message":"loading"}`, 529, TypeOverloaded, "loading"},
		{"aws model error", 424, jsonType, amzn("ModelErrorException"), `{"message":"failed","originalStatusCode":500}`, 500, TypeAPI, "failed"},
		{"aws stream error, by code", 424, jsonType, nil, `{"code":"ModelStreamErrorException","message":"failed"}`, 500, TypeAPI, "failed"},
		{"aws timeout", 408, jsonType, amzn("ModelTimeoutException"), `{"message":"slow"}`, 408, TypeTimeout, "slow"},
		{"aws internal", 500, jsonType, amzn("InternalServerException"), `{"message":"oops"}`, 500, TypeAPI, "oops"},
		{"aws unavailable", 503, jsonType, amzn("ServiceUnavailableException"), `{"Message":"Bedrock is unable to process your request."}`, 503, TypeOverloaded, "Bedrock is unable to process your request."},
		{"aws access", 403, jsonType, amzn("AccessDeniedException"), `{"message":"no access"}`, 403, TypePermission, "no access"},
		{"aws expired token", 403, jsonType, amzn("ExpiredTokenException"), `{"message":"The security token included in the request is expired"}`, 403, TypePermission, "The security token included in the request is expired"},
		{"aws not found", 404, jsonType, amzn("ResourceNotFoundException"), `{"message":"end of life"}`, 404, TypeNotFound, "end of life"},
		{"aws conflict", 400, jsonType, amzn("ConflictException"), `{"message":"m"}`, 400, TypeInvalidRequest, "m"},
		{"aws, the header decides", 429, jsonType, amzn("ModelNotReadyException"), `{"code":"ThrottlingException","message":"m"}`, 529, TypeOverloaded, "m"},
		{"aws, the header alone", 429, "", amzn("ThrottlingException"), ``, 429, TypeRateLimit, none(429)},
		{"aws, XML", 403, "text/xml", nil, `<AccessDeniedException><Message>no</Message></AccessDeniedException>`, 403, TypePermission, none(403)},
		{"google", 429, jsonType, nil, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[]}}`, 429, TypeRateLimit, "Quota exceeded"},
		{"google, in an array", 503, "application/json; charset=UTF-8", nil, "[{\n  \"error\": {\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\n]", 503, TypeOverloaded, "busy"},
		{"google credential", 401, jsonType, nil, `{"error":{"code":401,"message":"m","status":"UNAUTHENTICATED"}}`, 401, TypeAuthentication, "m"},
		{"google cancelled", 499, jsonType, nil, `{"error":{"code":499,"message":"m","status":"CANCELLED"}}`, 500, TypeAPI, "m"},
		{"google deadline", 504, jsonType, nil, `{"error":{"code":504,"message":"m","status":"DEADLINE_EXCEEDED"}}`, 504, TypeTimeout, "m"},
		{"azure", 401, jsonType, nil, `{"error":{"code":"401","message":"Access denied due to invalid subscription key"}}`, 401, TypeAuthentication, "Access denied due to invalid subscription key"},
		{"azure, by name", 404, jsonType, nil, `{"error":{"code":"DeploymentNotFound","message":"m"}}`, 404, TypeNotFound, "m"},
		{"azure, statusCode", 429, jsonType, nil, `{ "statusCode": 429, "message": "Rate limit is exceeded." }`, 429, TypeRateLimit, "Rate limit is exceeded."},
		{"anthropic's classes elsewhere", 400, jsonType, nil, `{"type":"error","error":{"type":"BadRequestError","message":"m"}}`, 400, TypeInvalidRequest, "m"},
		{"anthropic without its outer type", 529, jsonType, nil, `{"error":{"type":"overloaded_error","message":"m"}}`, 529, TypeOverloaded, "m"},
		{"anthropic as events", 429, "text/event-stream", nil, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\"},\"request_id\":\"req_1\"}\n\n", 429, TypeRateLimit, "m"},
		{"openai", 401, jsonType, nil, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, 401, TypeAuthentication, "m"},
		{"openai without a type", 500, jsonType, nil, `{"error":{"message":"m","code":500}}`, 500, TypeAPI, "m"},
		{"error as text", 400, jsonType, nil, `{"error":"model not found"}`, 400, TypeInvalidRequest, "model not found"},
		{"HTML", 502, "text/html", nil, `<html><h1>502 Bad Gateway</h1></html>`, 502, TypeAPI, none(502)},
		{"HTML too large", 413, "text/html; charset=utf-8", nil, `<html>413</html>`, 413, TypeTooLarge, none(413)},
		{"HTML that is called text", 503, "text/plain", nil, " <!doctype html><p>x", 503, TypeOverloaded, none(503)},
		{"HTML in a message", 403, jsonType, nil, `{"message":"<html>blocked</html>"}`, 403, TypePermission, none(403)},
		{"HTML of a CDN's own status", 522, "text/html", nil, `<html>`, 522, TypeAPI, none(522)},
		{"text", 503, "text/plain", nil, "no healthy backend\n", 503, TypeOverloaded, "no healthy backend"},
		{"text that is no text", 500, "application/octet-stream", nil, "\x00\x01", 500, TypeAPI, none(500)},
		{"empty", 500, "", nil, "", 500, TypeAPI, none(500)},
		{"JSON of nobody", 422, jsonType, nil, `{"detail":[{"loc":["body"],"input":"the prompt"}]}`, 422, TypeInvalidRequest, none(422)},
		{"broken JSON", 500, jsonType, nil, `{"mess`, 500, TypeAPI, none(500)},
		{"redirect", 302, "text/html", nil, `<html>`, 502, TypeAPI, none(302)},
		{"200 of somebody else", 200, "text/html", nil, `<html>log in</html>`, 502, TypeAPI, none(200)},
		{"a session token in the canonical request", 403, jsonType, amzn("InvalidSignatureException"), `{"message":"The Canonical String should have been\n'POST\nx-amz-security-token:FwoGZXIvYXdzEXAMPLE\n'"}`, 403, TypePermission, "The Canonical String should have been\n'POST\n[redacted]\n'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, changed := Translate(c.status, c.contentType, c.header, []byte(c.body))
			got := ParseError(jsonType, out)
			if !changed || status != c.want || got.Envelope != EnvelopeAnthropic || got.Type != c.kind || got.Message != c.message {
				t.Errorf("%v, %d %s\nwant %d %s %q", changed, status, out, c.want, c.kind, c.message)
			}
			if again, same, changed := Translate(status, jsonType, c.header, out); changed || again != status || string(same) != string(out) {
				t.Errorf("changed again: %d %s", again, same)
			}
		})
	}
}

func TestTranslateLeavesAsItIs(t *testing.T) {
	for _, c := range []struct {
		name        string
		status      int
		contentType string
		header      func(string) string
		body        string
	}{
		{"anthropic", 429, jsonType, nil, `{"type":"error","error":{"type":"rate_limit_error","message":"m"},"request_id":"req_1"}`},
		{"anthropic, a new type", 418, jsonType, nil, ` { "type": "error", "error": {"type":"teapot_error","message":"m","details":{"error_code":"x"}} }`},
		{"anthropic, cut", 400, jsonType, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"very lo`},
		{"anthropic without a content type", 500, "", nil, `{"type":"error","error":{"type":"api_error","message":"m"}}`},
		{"anthropic on AWS, with its header", 400, jsonType, headers("x-amzn-errortype", "ValidationException"), `{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`},
		{"gzip", 400, jsonType, headers("content-encoding", "gzip"), "\x1f\x8b\x08"},
		{"an answer", 200, "application/json; charset=utf-8", nil, `{"type":"message"}`},
		{"a stream", 200, "text/event-stream", nil, "event: error\n"},
		{"an event stream", 200, "application/vnd.amazon.eventstream", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, changed := Translate(c.status, c.contentType, c.header, []byte(c.body))
			if changed || status != c.status || string(out) != c.body {
				t.Errorf("%v: %d %s", changed, status, out)
			}
		})
	}
	if _, _, changed := Translate(400, jsonType, headers("content-encoding", "identity"), []byte(`{"message":"m"}`)); !changed {
		t.Error("identity is no coding")
	}
}

func TestTranslateKeepsTheRequestID(t *testing.T) {
	for _, c := range []struct {
		header func(string) string
		body   string
		want   string
	}{
		{headers("request-id", "req_1", "x-amzn-requestid", "aws"), `{"message":"m"}`, "req_1"},
		{headers("x-amzn-requestid", "aws"), `{"message":"m"}`, "aws"},
		{headers("apim-request-id", "azure"), `{"statusCode":401,"message":"m"}`, "azure"},
		{headers("request-id", strings.Repeat("x", 300)), `{"message":"m"}`, ""},
		{nil, `{"error":{"type":"api_error","message":"m"},"request_id":"req_2"}`, "req_2"},
		{nil, ``, ""},
	} {
		_, out, _ := Translate(400, jsonType, c.header, []byte(c.body))
		if got := ParseError(jsonType, out).RequestID; got != c.want {
			t.Errorf("%s: %q, want %q", out, got, c.want)
		}
	}
}

func TestForClient(t *testing.T) {
	long := strings.Repeat("é", 10000)
	for message, want := range map[string]string{
		"":                         "",
		"  Overloaded\n":           "Overloaded",
		"max_tokens: 5 <= 4":       "max_tokens: 5 <= 4",
		"\n<html>":                 "",
		"a\xffb":                   "ab",
		"key sk-ant-api03-x given": "key [redacted] given",
		long:                       long[:MaxClientMessage],
		"x" + long:                 "x" + long[:MaxClientMessage-2],
	} {
		got := ForClient(message)
		if got != want || !utf8.ValidString(got) {
			t.Errorf("%.40q: %.40q of %d bytes, want %.40q of %d", message, got, len(got), want, len(want))
		}
	}
}

func TestTypeForException(t *testing.T) {
	for name, want := range map[string]string{
		"throttlingException":         TypeRateLimit,
		"ThrottlingException":         TypeRateLimit,
		"internalServerException":     TypeAPI,
		"modelStreamErrorException":   TypeAPI,
		"modelTimeoutException":       TypeTimeout,
		"serviceUnavailableException": TypeOverloaded,
		"validationException":         TypeInvalidRequest,
		"x#AccessDeniedException:y":   TypePermission,
		"InternalFailure":             TypeAPI,
		"":                            TypeAPI,
	} {
		if got := TypeForException(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add(400, jsonType, "ValidationException", []byte(`{"message":"m"}`))
	f.Add(503, "text/html", "", []byte(`<html>`))
	f.Add(429, "", "", []byte(`[{"error":{"code":429,"message":"m","status":"S"}}]`))
	f.Fuzz(func(t *testing.T, status int, contentType, exception string, body []byte) {
		newStatus, out, changed := Translate(status, contentType, headers("x-amzn-errortype", exception), body)
		if !changed {
			return
		}
		said := ParseError(jsonType, out)
		if !json.Valid(out) || said.Envelope != EnvelopeAnthropic || said.Message == "" || len(said.Message) > MaxClientMessage || newStatus < 400 {
			t.Fatalf("%d %q", newStatus, out)
		}
		if _, _, again := Translate(newStatus, jsonType, nil, out); again {
			t.Fatalf("changed again: %q", out)
		}
	})
}
