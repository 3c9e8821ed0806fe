package test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// allowed are the headers that a platform may be sent; contract, section 11.
var allowed = regexp.MustCompile(`^(host|content-type|content-length|accept|accept-encoding|user-agent|anthropic-version|anthropic-beta|anthropic-user-profile-id|x-stainless-[-a-z0-9]+|anthropic-dangerous-direct-browser-access|x-api-key|authorization|anthropic-workspace-id)$`)

// finish stops everything and judges what holds for every environment: no race,
// no leak of headers or secrets, one record for each request.
func (e *env) finish() {
	e.checkPlatforms()
	for _, s := range e.services {
		if s.proc == nil {
			continue
		}
		if s.proc.alive() {
			if !s.proc.stop(15 * time.Second) {
				e.t.Errorf("crossdoor serve did not end within 15s of SIGTERM")
			} else if s.proc.err != nil {
				e.t.Errorf("crossdoor serve after SIGTERM: %v", s.proc.err)
			}
		}
		for _, p := range append(s.past, s.proc) {
			e.checkOutput(p.out.String())
		}
		e.checkSecrets("trail", readFile(s.trail))
	}
	if e.envoy != nil {
		if !e.envoy.alive() {
			e.t.Errorf("envoy ended by itself: %v", e.envoy.err)
		}
		e.envoy.stop(5 * time.Second)
	}
	e.checkCounts()
	for _, l := range e.order {
		for _, f := range l.fakes {
			if f != nil {
				f.Close()
			}
		}
	}
	if e.t.Failed() {
		e.report()
	}
}

func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "" // not written: the counts say so
	}
	return string(b)
}

func (e *env) checkOutput(out string) {
	for _, bad := range []string{"DATA RACE", "panic:", "fatal error:", "goroutine "} {
		if strings.Contains(out, bad) {
			e.t.Errorf("the service's output contains %q", bad)
		}
	}
	e.checkSecrets("log", out)
}

// checkSecrets: every secret of an environment has the same beginning.
func (e *env) checkSecrets(where, text string) {
	for _, bad := range []string{"sk-secret-", "sk-client-", promptSecret} {
		if i := strings.Index(text, bad); i >= 0 {
			e.t.Errorf("%s contains %q: …%.120s", where, bad, text[max(0, i-60):])
		}
	}
}

// checkPlatforms: nothing that does not belong to a platform reached it.
func (e *env) checkPlatforms() {
	for _, l := range e.order {
		for i, f := range l.fakes {
			if f == nil {
				continue
			}
			extra := forwarded(l.targets[i])
			for _, r := range f.Requests() {
				if r.Refusal != "" && !l.refused {
					e.t.Errorf("%s refused request %d: %s", l.targetName(i), r.N, r.Refusal)
				}
				for _, h := range r.Header {
					name := strings.ToLower(h.Name)
					if !allowed.MatchString(name) && !extra[name] {
						e.t.Errorf("%s got the header %s: %s", l.targetName(i), h.Name, h.Value)
					}
				}
				if platformOf(l.targets[i]) != fakeplatform.ClaudeOnAWS && r.Count("anthropic-workspace-id") != 0 {
					e.t.Errorf("%s got a workspace header", l.targetName(i))
				}
				if v := r.Get("accept-encoding"); v != "identity" {
					e.t.Errorf("%s got accept-encoding %q, want identity", l.targetName(i), v)
				}
			}
		}
	}
}

func platformOf(tg target) string {
	if tg.platform == "" {
		return fakeplatform.Anthropic
	}
	return tg.platform
}

// forwarded are the names in a target's forward_headers line, and those of a
// signature.
func forwarded(tg target) map[string]bool {
	out := map[string]bool{}
	if tg.sigv4 {
		out["x-amz-date"], out["x-amz-content-sha256"], out["x-amz-security-token"] = true, true, true
	}
	for _, y := range tg.yaml {
		if list, ok := strings.CutPrefix(y, "forward_headers:"); ok {
			for _, n := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("[], ", r) }) {
				out[strings.ToLower(n)] = true
			}
		}
	}
	return out
}

// checkCounts: one record a request, no more and no less.
func (e *env) checkCounts() {
	if e.opts.trail != "" {
		return
	}
	got := map[string]int{}
	ids := map[string]int{}
	for _, s := range e.services {
		for _, r := range readTrail(s.trail) {
			got[r.Route]++
			ids[r.ID]++
		}
	}
	for id, n := range ids {
		if n != 1 {
			e.t.Errorf("%d records with the id %s", n, id)
		}
	}
	for _, l := range e.order {
		if n := int(l.sent.Load()); !l.uncounted && got[l.name] != n {
			e.t.Errorf("lane %s: %d records in the trail for %d requests", l.name, got[l.name], n)
		}
	}
}

// report shows what happened, after a failure only.
func (e *env) report() {
	const limit = 6000
	show := func(name, text string) {
		if len(text) > limit {
			text = text[:limit/2] + "\n…\n" + text[len(text)-limit/2:]
		}
		e.t.Logf("---- %s\n%s", name, text)
	}
	for i, s := range e.services {
		if s.proc != nil {
			show(fmt.Sprintf("service %d", i), s.proc.out.String())
		}
	}
	if e.envoy != nil {
		show("envoy", e.envoy.out.String())
	}
}
