package envoy

import (
	"encoding/json"
	"fmt"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy/config"
)

// reply is one of Envoy's own answers in the client's schema: when it applies,
// as a CEL expression, and its body.
type reply struct {
	When string
	Body string
}

// ownReply is true for what Envoy answered itself; see names.DetailsPrefix.
const ownReply = "response.code_details != '' && !response.code_details.startsWith('" + names.DetailsPrefix + "')"

const (
	textServiceDown = "The failover service is not available."
	textOverloaded  = "The gateway is out of memory for now."
	textNotReached  = "The platform could not be reached."
)

// listenerReplies covers every status that Envoy answers with on the client's
// listener. Each is the last word only when the service is down or Envoy ended
// the request before any filter; else the service answers in its place.
func listenerReplies(l config.Limits) []reply {
	when := func(condition string) string { return condition + " && " + ownReply }
	return []reply{
		{when("response.code == 413"), errorBody("request_too_large", "The request is larger than the gateway takes ("+size(l.Body)+").")},
		{when("response.code == 431"), errorBody("request_too_large", "The request headers are larger than the gateway takes.")},
		{when("response.code == 408 && response.code_details == 'request_header_timeout'"), errorBody("timeout_error", "The request headers did not arrive in time.")},
		{when("response.code == 408"), errorBody("timeout_error", "The request did not arrive within "+duration(l.BodyTime)+".")},
		{when("response.code == 403"), errorBody("permission_error", "The gateway does not allow this request.")},
		{when("response.code == 404"), errorBody("not_found_error", "The gateway does not know this path.")},
		{when("response.code >= 400 && response.code < 500"), errorBody("invalid_request_error", "The gateway could not read the request.")},
		{when("response.code == 503 && response.code_details == 'overload'"), errorBody("overloaded_error", textOverloaded)},
		{when("response.code == 503"), errorBody("overloaded_error", textServiceDown)},
		{when("response.code == 504"), errorBody("timeout_error", "The platform did not answer in time.")},
		{when("response.code >= 500"), errorBody("api_error", textNotReached)},
	}
}

// errorBody is an error in the Messages schema.
func errorBody(kind, message string) string {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	body, err := json.Marshal(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{kind, message}})
	if err != nil {
		// Two strings always marshal; an empty body is still no text of Envoy's.
		return ""
	}
	return string(body)
}

// size writes bytes as the policy does.
func size(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
