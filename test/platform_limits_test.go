package test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// TestPlatformBodyLimits: a body that is as large as a platform takes, in its form
// there, is served; one byte more and the target is left out.
func TestPlatformBodyLimits(t *testing.T) {
	limits := map[string]int64{"bedrock-sigv4": 20 << 20, "mantle-sigv4": 20 << 20, "vertex": 30 << 20, "anthropic": 32 << 20}
	var lanes []lane
	for _, d := range frontDoors() {
		if limits[d.name] != 0 {
			lanes = append(lanes, doorLane(d.name, []target{d.target(), {platform: fakeplatform.ClaudeOnAWS, yaml: []string{"limits: {body: 48MiB}"}, rules: &fakeplatform.Rules{BodyLimit: 48 << 20}}}))
		}
	}
	e := startDoors(t, options{top: []string{"limits: {body: 40MiB}"}}, lanes...)
	for _, spec := range lanes {
		l, limit := e.lane(spec.name), limits[spec.name]
		if got := servedBy(l, l.through(call{})); got != "200 "+l.targetName(0) {
			t.Fatal(got)
		}
		pad := int(limit - l.fakes[0].Requests()[0].BodySize)
		for over := range 2 {
			a := l.send(l.through(call{pad: pad + over}))
			r := l.byID(a.id())
			wantSkips, wantServed, wantSize, at := "", l.targetName(0), limit, 0
			if over > 0 {
				wantSkips, wantServed, at = "a too_large", l.targetName(1), 1
				wantSize = int64(len(goodBody(doorModel, false, pad+1)))
			}
			reqs := l.fakes[at].Requests()
			if a.status != 200 || r.skips() != wantSkips || r.ServedBy != wantServed || len(reqs) == 0 || reqs[len(reqs)-1].BodySize != wantSize {
				t.Errorf("%s, %d over: %d, skips %q, served by %q", spec.name, over, a.status, r.skips(), r.ServedBy)
			}
		}
	}
	// What no target takes is 413, and reaches none.
	l := e.lane("anthropic")
	before := l.total()
	a := l.send(l.through(call{pad: 40 << 20, uncounted: true}))
	if kind, _, err := messagesError(a); a.status != http.StatusRequestEntityTooLarge || kind != "request_too_large" || err != nil || l.total() != before {
		t.Errorf("%d %q (%v), %d requests", a.status, kind, err, l.total()-before)
	}
}

// imageOf is an image block of n decoded bytes.
func imageOf(n int) string {
	return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{'i'}, n)) + `"}}`
}

// messagesBody has the messages, each of its content.
func messagesBody(contents ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"model":%q,"max_tokens":64,"messages":[`, doorModel)
	for i, c := range contents {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":%q,"content":%s}`, role, c)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// TestPlatformLargeRequests: images at the edge of what a platform takes, many of
// them, and very many messages.
func TestPlatformLargeRequests(t *testing.T) {
	many := make([]string, 99_999)
	for i := range many {
		many[i] = `"m"`
	}
	const fits, over = 5 << 20 / 4 * 3, 5<<20 + 1 // the base64 of the first is 5 MiB
	tools := `[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"toolu_1","content":[` + imageOf(over) + `]}]`
	var flows []flow
	for _, d := range []door{doors[5], doors[7], doors[8]} {
		add := func(name string, body []byte, skips, served string) {
			flows = append(flows, flow{
				lane: doorLane(d.name, []target{d.target(), firstParty.target()}), call: call{body: body}, status: 200, served: served, outcome: "served",
				skips: skips, attempts: served + " ok serve",
				more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
					got := l.fakes[strings.Index("ab", served)].Requests()[0]
					if lost := int64(len(body)) - got.BodySize; lost > 100 || lost < -100 {
						t.Errorf("%s: %d bytes of %d arrived", name, got.BodySize, len(body))
					}
				},
			})
		}
		add("image that fits", messagesBody("["+imageOf(fits)+"]"), "", "a")
		add("image that does not", messagesBody("["+imageOf(over)+"]"), "a too_large", "b")
		add("image in a tool's result", messagesBody(tools), "a too_large", "b")
		add("many images", messagesBody("["+strings.Repeat(imageOf(2000)+",", 599)+imageOf(2000)+"]"), "", "a")
		add("many messages", messagesBody(many...), "", "a")
	}
	runDoors(t, options{}, flows...)
}
