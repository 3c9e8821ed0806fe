package fakeplatform

import (
	"regexp"
	"strings"
)

var versioned = regexp.MustCompile(`^claude-(fable|mythos|opus|sonnet|haiku)-(\d)(?:-(\d))?(?:[-@]|$)`)

// generation is a model's family and version (4.5 is 45); "" and 0 when its name
// does not say.
func generation(name string) (string, int) {
	m := versioned.FindStringSubmatch(name)
	if m == nil {
		return "", 0
	}
	v := 10 * int(m[2][0]-'0')
	if m[3] != "" {
		v += int(m[3][0] - '0')
	}
	return m[1], v
}

// limits are those of models that act like limits of hosts (reference 12.1).
func (f *finder) limits(model string, root *value) {
	family, v := generation(model)
	if family == "" {
		return
	}
	alwaysThinks := v >= 50 && (family == "fable" || family == "mythos") || family == "opus" && v >= 55
	switch kind := root.get("thinking").get("type").text(); {
	case kind == "adaptive" && v <= 45, kind == "enabled" && v >= 47, kind == "disabled" && alwaysThinks:
		f.add("", "thinking.type: '"+kind+"' is not supported for this model")
	}
	if v >= 47 {
		for _, name := range []string{"temperature", "top_p", "top_k"} {
			if x := root.get(name); x != nil && (name != "temperature" || strings.TrimSuffix(string(x.raw), ".0") != "1") {
				f.add("", "`"+name+"` is deprecated for this model.")
			}
		}
	}
	messages := root.get("messages")
	if messages == nil {
		return
	}
	if n := len(messages.kids); v >= 46 && n > 0 && messages.kids[n-1].get("role").text() == "assistant" {
		f.add("", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	inTheMiddle := family == "opus" && v >= 48 || v >= 50 && (family == "fable" || family == "mythos")
	for i := range messages.kids {
		if messages.kids[i].get("role").text() == "system" && !inTheMiddle {
			f.add("", "messages: Input should be 'user' or 'assistant'")
		}
	}
}
