package test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// replaceModel is the body with another model in its place.
func replaceModel(body []byte, from, to string) []byte {
	return bytes.Replace(body, fmt.Appendf(nil, "%q", from), fmt.Appendf(nil, "%q", to), 1)
}

// headerText is a request's header list in comparable form: names in lower case,
// order kept, without what differs by nature.
func headerText(r fakeplatform.Request, without ...string) string {
	var b strings.Builder
next:
	for _, f := range r.Header {
		name := strings.ToLower(f.Name)
		for _, w := range without {
			if name == w {
				continue next
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", name, f.Value)
	}
	return b.String()
}

// sameHeaders says how the header lists of two requests differ; the order is
// compared as a set, since attempts may append in another order.
func sameHeaders(a, b fakeplatform.Request) string {
	left, right := map[string]int{}, map[string]int{}
	for line := range strings.SplitSeq(headerText(a), "\n") {
		left[line]++
	}
	for line := range strings.SplitSeq(headerText(b), "\n") {
		right[line]++
	}
	for line, n := range left {
		if right[line] != n {
			return "only the first has " + line
		}
	}
	for line, n := range right {
		if left[line] != n {
			return "only the second has " + line
		}
	}
	return ""
}
