package fakeplatform

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// errorTypes are the types of the Messages error schema by status.
var errorTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 408: "timeout_error", 409: "conflict_error", 413: "request_too_large",
	422: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 502: "api_error",
	503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error",
}

// Error answers with an error in the Messages envelope; the type follows from
// the status.
func Error(status int, message string, fields ...Field) Answer {
	t, ok := errorTypes[status]
	if !ok {
		t = "api_error"
	}
	return ErrorOf(status, t, message, "", fields...)
}

// ErrorOf is Error with a type and, when not empty, a details.error_code.
func ErrorOf(status int, kind, message, code string, fields ...Field) Answer {
	e := map[string]any{"type": kind, "message": message}
	if code != "" {
		e["details"] = map[string]any{"error_code": code}
	}
	return jsonAnswer(status, map[string]any{"type": "error", "error": e, "request_id": "req_fake_error"}, fields)
}

// AzureError is an error of the layer in front of Foundry's models.
func AzureError(status int, code, message string, fields ...Field) Answer {
	return jsonAnswer(status, map[string]any{"error": map[string]any{"code": code, "message": message}}, fields)
}

// HTML answers as a CDN or a firewall does: no platform's envelope.
func HTML(status int) Answer {
	return Raw(status, "text/html; charset=utf-8", []byte("<html><body><h1>"+strconv.Itoa(status)+"</h1>edge</body></html>\n"))
}

func jsonAnswer(status int, v any, fields []Field) Answer {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // only maps of strings come here
		b.WriteString("{}")
	}
	a := Raw(status, "application/json", bytes.TrimSpace(b.Bytes()), fields...)
	a.Name = "error " + strconv.Itoa(status)
	return a
}

// exceptions are AWS's names by status.
var exceptions = map[int]string{
	400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException", 413: "ValidationException",
	424: "ModelErrorException", 429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException",
}

// BedrockError is an error of AWS's layer: the exception is in a header, and
// follows from the status when it is "".
func BedrockError(status int, exception, message string, fields ...Field) Answer {
	if exception == "" {
		exception = exceptions[status]
	}
	head := Field{"x-amzn-ErrorType", exception + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}
	return jsonAnswer(status, map[string]any{"message": message}, append([]Field{head}, fields...))
}

// googleStatus are Google's names by status.
var googleStatus = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED", 413: "INVALID_ARGUMENT",
	429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// GoogleError is an error of Google's front; its status name follows from the
// status.
func GoogleError(status int, message string, fields ...Field) Answer {
	return GoogleErrorOf(status, googleStatus[status], message, fields...)
}

// GoogleErrorOf is GoogleError with the name.
func GoogleErrorOf(status int, name, message string, fields ...Field) Answer {
	return jsonAnswer(status, map[string]any{"error": map[string]any{"code": status, "message": message, "status": name}}, fields)
}

// InArray wraps an answer's JSON into a one-element array, as Google's streaming
// routes do with errors.
func InArray(a Answer) Answer {
	body := append([]byte("["), a.Body()...)
	a.Parts = []Part{{Data: append(body, ']')}}
	return a
}
