package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestSecretsStayInside: a platform that quotes what it was sent does not bring
// it into the trail, a metric, a log or an answer of ours.
func TestSecretsStayInside(t *testing.T) {
	e := start(t, options{top: []string{"client: {header: x-client-id}"}}, lane{name: "quotes", targets: two()}, lane{name: "bad", targets: two()}, lane{name: "dead", targets: []target{{}, {url: refusing(t)}}})
	l := e.lane("quotes")
	l.fakes[0].Respond(func(r fakeplatform.Request) fakeplatform.Answer {
		return fakeplatform.Error(401, fmt.Sprintf("invalid key %s (Bearer %s) in the request %q saying %s", r.Get("x-api-key"), r.Get("x-api-key"), r.Body, r.Get("x-api-key")))
	})
	a := l.send(call{})
	if a.status != 200 {
		t.Fatalf("status %d", a.status)
	}
	r := l.byID(a.id())
	if len(r.Attempts) != 2 || r.Attempts[0].Error == "" {
		t.Fatalf("the trail does not say why: %s", r.line)
	}
	if !strings.HasPrefix(r.Attempts[0].Error, "invalid key") || len([]rune(r.Attempts[0].Error)) > 301 {
		t.Errorf("error %q", r.Attempts[0].Error)
	}
	bad := e.lane("bad")
	bad.fakes[0].Respond(func(r fakeplatform.Request) fakeplatform.Answer {
		return fakeplatform.Error(400, "messages.0.content: bad text "+string(r.Body))
	})
	b := bad.send(call{})
	if r := bad.byID(b.id()); !strings.Contains(r.Attempts[0].Error, "invalid_request_error") {
		t.Errorf("error of a 400: %q", r.Attempts[0].Error)
	}
	dead := e.lane("dead")
	dead.fakes[0].Script(fakeplatform.Error(500, "boom"))
	dead.send(call{})
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		text, err := get(fmt.Sprintf("http://127.0.0.1:%d%s", e.service().admin, path))
		if err != nil {
			t.Fatal(err)
		}
		e.checkSecrets(path, text)
	}
	// What `crossdoor trail` shows is the same record.
	out, err := exec.Command(crossdoorBin, "trail", "--file", e.service().trail, "--format", "json").CombinedOutput()
	if err != nil || !strings.Contains(string(out), r.ID) {
		t.Errorf("crossdoor trail: %v\n%s", err, out)
	}
	e.checkSecrets("crossdoor trail", string(out))
}

// TestClientCannotMakeSeries: label values come from the policy only.
func TestClientCannotMakeSeries(t *testing.T) {
	e := start(t, options{}, lane{name: "labels", targets: []target{{}, {}}, models: "free-*"})
	l := e.lane("labels")
	for i := range 20 {
		l.send(call{body: goodBody(fmt.Sprintf("free-%d", i), false, 0)})
	}
	e.metric(20, "attempts_total", "route", "labels", "model", "other")
	all, err := e.service().samples()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.labels["model"], "free-") && s.labels["model"] != "free-*" {
			t.Errorf("a series of the client's making: %s%v", s.name, s.labels)
		}
	}
}
