package messages

import "encoding/json"

// The error types of the schema.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeAuthentication = "authentication_error"
	TypeBilling        = "billing_error"
	TypePermission     = "permission_error"
	TypeNotFound       = "not_found_error"
	TypeConflict       = "conflict_error"
	TypeTooLarge       = "request_too_large"
	TypeRateLimit      = "rate_limit_error"
	TypeAPI            = "api_error"
	TypeTimeout        = "timeout_error"
	TypeOverloaded     = "overloaded_error"
)

// types has the type that goes with a status, where it is not its class's.
var types = map[int]string{
	401: TypeAuthentication,
	402: TypeBilling,
	403: TypePermission,
	404: TypeNotFound,
	408: TypeTimeout,
	409: TypeConflict,
	413: TypeTooLarge,
	429: TypeRateLimit,
	503: TypeOverloaded,
	504: TypeTimeout,
	529: TypeOverloaded,
}

// TypeForStatus is the error type that an answer with this status has.
func TypeForStatus(status int) string {
	if t, ok := types[status]; ok {
		return t
	}
	if status >= 500 {
		return TypeAPI
	}
	return TypeInvalidRequest
}

// EncodeError is an error body in the client's schema. message must be safe for
// the client; requestID is left out when empty. The bytes are the caller's.
func EncodeError(typ, message, requestID string) []byte {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Error     detail `json:"error"`
		RequestID string `json:"request_id,omitempty"`
	}{"error", detail{typ, message}, requestID})
	if err != nil { // cannot be: strings always have a JSON form
		return []byte(`{"type":"error","error":{"type":"api_error","message":"Internal error"}}`)
	}
	return body
}
