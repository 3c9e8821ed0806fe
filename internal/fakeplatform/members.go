package fakeplatform

import (
	"bytes"
	"encoding/json"
)

// plainUpTo is the size up to which a body is simply parsed.
const plainUpTo = 64 << 10

// members reads model and stream of a body; "" when it is not a JSON object with
// a model. A large body is not parsed: it is gone through once, strings in leaps,
// so that many at a time do not slow down what they are to show.
func members(body []byte) (model string, stream bool) {
	if len(body) > plainUpTo {
		body = shallow(body)
	}
	var v struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if json.Unmarshal(body, &v) != nil {
		return "", false
	}
	return v.Model, v.Stream
}

// shallow is the object without what is inside its arrays and objects, and
// without the content of long strings.
func shallow(body []byte) []byte {
	var out []byte
	depth := 0
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch c {
		case '"':
			end := stringEnd(body, i)
			if s := body[i:end]; depth <= 1 && len(s) <= 1024 {
				out = append(out, s...)
			} else if depth <= 1 {
				out = append(out, '"', '"')
			}
			i = end - 1
			continue
		case '}', ']':
			depth--
		}
		if depth <= 1 {
			out = append(out, c)
		}
		if c == '{' || c == '[' {
			depth++
		}
	}
	return out
}

// stringEnd is the index after the string that begins at i.
func stringEnd(b []byte, i int) int {
	for j := i + 1; j < len(b); {
		k := bytes.IndexByte(b[j:], '"')
		if k < 0 {
			break
		}
		j += k + 1
		slashes := 0
		for n := j - 2; n > i && b[n] == '\\'; n-- {
			slashes++
		}
		if slashes%2 == 0 {
			return j
		}
	}
	return len(b)
}
