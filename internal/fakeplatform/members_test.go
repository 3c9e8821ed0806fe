package fakeplatform

import (
	"strings"
	"testing"
)

func TestMembersOfLargeBodies(t *testing.T) {
	long := strings.Repeat("x", plainUpTo)
	for _, c := range []struct {
		name, body, model string
		stream            bool
	}{
		{"first", `{"model":"m","stream":true,"messages":[{"content":"` + long + `"}]}`, "m", true},
		{"last", `{"messages":[{"content":"` + long + `","model":"inner","stream":true}],"model":"m"}`, "m", false},
		{"escapes", `{"system":"a\\\"b` + long + `\\\\","model":"m","x":{"a":[1,{"b":"}"}]}}`, "m", false},
		{"not an object", `["` + long + `"]`, "", false},
		{"cut", `{"model":"m","messages":["` + long, "", false},
		{"no model", `{"messages":["` + long + `"]}`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if model, stream := members([]byte(c.body)); model != c.model || stream != c.stream {
				t.Errorf("got %q, %v, want %q, %v", model, stream, c.model, c.stream)
			}
		})
	}
}
