package platform

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
)

// What CountTokens of Amazon Bedrock puts around a body of InvokeModel.
const (
	countOpen  = `{"input":{"invokeModel":{"body":"`
	countClose = `"}}}`
)

// Wraps reports whether the changed body of such a request travels inside
// another one: WrapCount.
func (s *Spec) Wraps(op Operation) bool { return s.body.wrapCount && op == CountTokens }

// WrapCount appends to dst the request that counts the tokens of body, and
// returns the result. With room for WrappedCount bytes nothing is allocated.
func WrapCount(dst, body []byte) []byte {
	dst = append(dst, countOpen...)
	dst = base64.StdEncoding.AppendEncode(dst, body)
	return append(dst, countClose...)
}

// WrappedCount is the length of what WrapCount makes of n bytes.
func WrappedCount(n int) int {
	return len(countOpen) + base64.StdEncoding.EncodedLen(n) + len(countClose)
}

// Converts reports whether a good answer to such a request has another form than
// the client expects: a stream in AWS's framing, or a count (CountAnswer).
func (s *Spec) Converts(op Operation, stream bool) bool {
	return s.Wraps(op) || (op == Messages && stream && s.Stream != SSE)
}

var errCount = errors.New("the answer is no count of tokens")

// CountAnswer is Bedrock's answer to a count, {"inputTokens":7}, in the client's
// schema.
func CountAnswer(body []byte) ([]byte, error) {
	var answer struct {
		InputTokens *int64 `json:"inputTokens"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.InputTokens == nil || *answer.InputTokens < 0 {
		return nil, errCount
	}
	return append(strconv.AppendInt([]byte(`{"input_tokens":`), *answer.InputTokens, 10), '}'), nil
}
