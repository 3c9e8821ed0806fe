package rewrite

// The error types of the client's schema that a refused request can get.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeTooLarge       = "request_too_large"
)

// RequestError is a request that is refused for what it is: the HTTP status,
// the type and the message of the client's error schema. The message says what
// to do and never quotes the request.
type RequestError struct {
	Status  int
	Type    string
	Message string
}

// Error is the message.
func (e *RequestError) Error() string { return e.Message }

func invalid(message string) *RequestError {
	return &RequestError{Status: 400, Type: TypeInvalidRequest, Message: message}
}
