package test

import (
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// A platform may serve a model whose tokens it does not count: that says nothing
// about its messages.
func TestCountTokensBlamesNoModel(t *testing.T) {
	e := start(t, options{}, lane{name: "count", targets: two()})
	l := e.lane("count")
	l.fakes[0].Script(fakeplatform.ErrorOf(404, "not_found_error", "model: count", ""))
	if got := servedBy(l, call{path: "/v1/messages/count_tokens"}); got != "200 count-b" {
		t.Errorf("the count: %s", got)
	}
	r := l.nth(1)
	if got := r.summary(); got != "a model_unavailable failover, b ok serve" {
		t.Errorf("attempts %q", got)
	}
	if got := servedBy(l, call{}); got != "200 count-a" {
		t.Errorf("the message: %s", got)
	}
	l.fakes[0].Script(fakeplatform.ErrorOf(404, "not_found_error", "model: count", ""))
	for _, want := range []string{"200 count-b", "200 count-b"} { // of a message it does
		if got := servedBy(l, call{}); got != want {
			t.Errorf("after a message's 404: %s, want %s", got, want)
		}
	}
}
