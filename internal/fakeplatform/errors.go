package fakeplatform

import (
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
	body, err := json.Marshal(v)
	if err != nil { // only maps of strings come here
		body = []byte("{}")
	}
	a := Raw(status, "application/json", body, fields...)
	a.Name = "error " + strconv.Itoa(status)
	return a
}
