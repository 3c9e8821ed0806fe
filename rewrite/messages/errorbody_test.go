package messages

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestParseError(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		want                    ErrorBody
	}{
		{"anthropic", "application/json", `{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"ramp_limit_exceeded"}},"request_id":"req_1"}`,
			ErrorBody{Envelope: EnvelopeAnthropic, Type: "rate_limit_error", Code: "ramp_limit_exceeded", Message: "m", RequestID: "req_1"}},
		{"anthropic, details null", "application/json", `{"error":{"message":"m","details":null,"type":"api_error"},"type":"error"}`,
			ErrorBody{Envelope: EnvelopeAnthropic, Type: "api_error", Message: "m"}},
		{"anthropic, cut in its message", "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overl`,
			ErrorBody{Envelope: EnvelopeAnthropic, Type: "overloaded_error"}},
		{"anthropic, unknown members", "application/json; charset=utf-8", ` {"x":[{"error":1}],"error":{"type":"api_error","extra":{"type":"no"},"message":"m"}}`,
			ErrorBody{Envelope: EnvelopeAnthropic, Type: "api_error", Message: "m"}},
		{"no content type", "", `{"type":"error","error":{"type":"api_error","message":"m"}}`,
			ErrorBody{Envelope: EnvelopeAnthropic, Type: "api_error", Message: "m"}},
		{"aws", "application/json", `{"message":"Too many tokens"}`, ErrorBody{Envelope: EnvelopeAWS, Message: "Too many tokens"}},
		{"aws, capital and __type", "application/x-amz-json-1.1", `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}`,
			ErrorBody{Envelope: EnvelopeAWS, Type: "AccessDeniedException", Message: "no"}},
		{"aws, code before __type", "application/json", `{"__type":"A","code":"B:http://x","message":"m"}`,
			ErrorBody{Envelope: EnvelopeAWS, Type: "B", Code: "B:http://x", Message: "m"}},
		{"google", "application/json", `{"error":{"code":429,"message":"q","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12.5s"}]}}`,
			ErrorBody{Envelope: EnvelopeGoogle, Type: "RESOURCE_EXHAUSTED", Code: "429", Message: "q", RetryDelay: 12500 * time.Millisecond}},
		{"google, in an array", "application/json", "[{\n \"error\": {\"code\":503,\"message\":\"u\",\"status\":\"UNAVAILABLE\"}}\n]",
			ErrorBody{Envelope: EnvelopeGoogle, Type: "UNAVAILABLE", Code: "503", Message: "u"}},
		{"google, a delay that is none", "application/json", `{"error":{"code":429,"message":"q","status":"S","details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-3s"},7]}}`,
			ErrorBody{Envelope: EnvelopeGoogle, Type: "S", Code: "429", Message: "q"}},
		{"azure", "application/json", `{"error":{"code":"401","message":"Access denied"}}`, ErrorBody{Envelope: EnvelopeAzure, Code: "401", Message: "Access denied"}},
		{"azure, by name", "application/json", `{"error":{"code":"DeploymentNotFound","message":"m"}}`, ErrorBody{Envelope: EnvelopeAzure, Code: "DeploymentNotFound", Message: "m"}},
		{"azure, statusCode", "application/json", `{ "statusCode": 429, "message": "Rate limit is exceeded." }`, ErrorBody{Envelope: EnvelopeAzure, Code: "429", Message: "Rate limit is exceeded."}},
		{"event stream", "text/event-stream; charset=utf-8", "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n",
			ErrorBody{Envelope: EnvelopeAnthropic, Type: "overloaded_error", Message: "m"}},
		{"an array of something else", "application/json", `[{"type":"error","error":{"type":"api_error","message":"m"}}]`, ErrorBody{}},
		{"HTML", "text/html", `{"type":"error","error":{"type":"permission_error","message":"m"}}`, ErrorBody{}},
		{"HTML without a type", "", `<html>"error":{"type":"permission_error"}</html>`, ErrorBody{}},
		{"error as text", "application/json", `{"error":"permission_error"}`, ErrorBody{}},
		{"an error object without a type", "application/json", `{"error":{"detail":"x"},"message":"m"}`, ErrorBody{}},
		{"an echo of a prompt elsewhere", "application/json", `{"detail":[{"input":{"type":"error","error":{"type":"overloaded_error","message":"x"}}}]}`, ErrorBody{}},
		{"an echo in a string", "application/json", `{"detail":"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}"}`, ErrorBody{}},
		{"a type that is no text", "application/json", `{"type":"error","error":{"type":["x"],"message":{"a":1}}}`, ErrorBody{}},
		{"an endless type", "application/json", `{"type":"error","error":{"type":"` + strings.Repeat("x", 300) + `","message":"m"}}`, ErrorBody{}},
		{"nothing", "application/json", ``, ErrorBody{}},
		{"text", "text/plain", `upstream connect error`, ErrorBody{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ParseError(c.contentType, []byte(c.body)); got != c.want {
				t.Errorf("%+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAWSType(t *testing.T) {
	for value, want := range map[string]string{
		"ThrottlingException":                              "ThrottlingException",
		"ThrottlingException:http://internal.amazon.com/x": "ThrottlingException",
		"com.amazon#AccessDenied":                          "AccessDenied",
		"com.amazon#AccessDenied:http://x":                 "AccessDenied",
		"":                                                 "",
	} {
		if got := AWSType(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestEncodeErrorReadsBack(t *testing.T) {
	for _, message := range []string{"Overloaded", "quotes \" and \\ and <html> & \n ends", "日本語", ""} {
		body := EncodeError(TypeOverloaded, message, "01J")
		want := ErrorBody{Envelope: EnvelopeAnthropic, Type: TypeOverloaded, Message: message, RequestID: "01J"}
		if got := ParseError("application/json", body); got != want || !json.Valid(body) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	if body := string(EncodeError("api_error", "m", "")); body != `{"type":"error","error":{"type":"api_error","message":"m"}}` {
		t.Errorf("without a request id: %s", body)
	}
}

func TestTypeForStatus(t *testing.T) {
	for status, want := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		405: "invalid_request_error", 408: "timeout_error", 409: "conflict_error", 413: "request_too_large", 415: "invalid_request_error",
		422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "overloaded_error",
		504: "timeout_error", 529: "overloaded_error", 599: "api_error",
	} {
		if got := TypeForStatus(status); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
}
