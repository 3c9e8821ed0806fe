package test

import (
	"fmt"
	"strings"
	"testing"
)

// TestBadBodies: a clear error in the client's schema, never a lost request, and
// no platform asked.
func TestBadBodies(t *testing.T) {
	e := start(t, options{}, lane{name: "bad", targets: three("bad"), uncounted: true})
	l := e.lane("bad")
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	const rest = `"max_tokens":5,"messages":[]`
	cases := []struct {
		name, body string
		status     int
		kind       string
	}{
		{"not JSON", "hello", 400, ""},
		{"array", `[{"model":"bad"}]`, 400, ""},
		{"string", `"bad"`, 400, ""},
		{"null", `null`, 400, ""},
		{"blank", "   ", 400, ""},
		{"cut", `{"model":"bad","messages":[`, 400, ""},
		{"two objects", `{"model":"bad",` + rest + `}{}`, 400, ""},
		{"text after", `{"model":"bad",` + rest + `} x`, 400, ""},
		{"byte order mark", "\xef\xbb\xbf" + `{"model":"bad",` + rest + `}`, 400, ""},
		{"UTF-16", "{\x00\"\x00m\x00", 400, ""},
		{"bad UTF-8", `{"model":"bad","x":"` + "\xff\xfe" + `",` + rest + `}`, 400, ""},
		{"single quotes", `{'model':'bad'}`, 400, ""},
		{"trailing comma", `{"model":"bad",` + rest + `,}`, 400, ""},
		{"comment", `{/* x */"model":"bad",` + rest + `}`, 400, ""},
		{"NaN", `{"model":"bad","temperature":NaN,` + rest + `}`, 400, ""},
		{"leading zero", `{"model":"bad","max_tokens":05,"messages":[]}`, 400, ""},
		{"control character in a string", "{\"model\":\"bad\",\"x\":\"a\nb\"," + rest + "}", 400, ""},
		{"bad escape", `{"model":"bad","x":"\q",` + rest + `}`, 400, ""},
		{"too deep", `{"model":"bad","x":` + deep + `,` + rest + `}`, 400, ""},
		{"no model", `{` + rest + `}`, 400, ""},
		{"model number", `{"model":5,` + rest + `}`, 400, ""},
		{"model null", `{"model":null,` + rest + `}`, 400, ""},
		{"model empty", `{"model":"",` + rest + `}`, 400, ""},
		{"model with a line end", `{"model":"bad\n",` + rest + `}`, 400, ""},
		{"model with NUL", `{"model":"bad\u0000",` + rest + `}`, 400, ""},
		{"model with CRLF and a header", `{"model":"bad\r\nx-evil: 1",` + rest + `}`, 400, ""},
		{"model not ASCII", `{"model":"bäd",` + rest + `}`, 400, ""},
		{"model too long", `{"model":"` + strings.Repeat("m", 257) + `",` + rest + `}`, 400, ""},
		{"model twice", `{"model":"bad","model":"other",` + rest + `}`, 400, ""},
		{"model twice, escaped", `{"model":"bad","\u006dodel":"other",` + rest + `}`, 400, ""},
		{"stream twice", `{"model":"bad","stream":true,"stream":false,` + rest + `}`, 400, ""},
		{"another member twice", `{"model":"bad",` + rest + `,"max_tokens":6}`, 400, ""},
		{"stream a string", `{"model":"bad","stream":"true",` + rest + `}`, 400, ""},
		{"model in other case", `{"model":"BAD",` + rest + `}`, 404, "not_found_error"},
		{"model with a blank", `{"model":"bad ",` + rest + `}`, 404, "not_found_error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kind := c.kind
			if kind == "" {
				kind = "invalid_request_error"
			}
			here := l.in(t)
			a := here.send(call{body: []byte(c.body)})
			got, message, err := messagesError(a)
			if a.status != c.status || got != kind || err != nil || len(message) < 10 {
				t.Errorf("got %d %q %q (%v)", a.status, got, message, err)
			}
			if a.header.Get("x-should-retry") != "false" || a.header.Get("x-crossdoor-attempts") != "0" {
				t.Errorf("headers %v", a.header)
			}
			if a.header.Get("x-evil") != "" {
				t.Error("a header was smuggled")
			}
			if r := here.byID(a.id()); r.Outcome != "rejected" || r.Status != c.status || len(r.Attempts) != 0 {
				t.Errorf("record %s", r.line)
			}
		})
	}
	for i, f := range l.fakes {
		if n := len(f.Requests()); n != 0 {
			t.Errorf("%d requests reached %s", n, l.targetName(i))
		}
	}
	e.metric(float64(len(cases)), "requests_total", "outcome", "rejected")
}

// TestGoodOddBodies: unusual, but none of our business.
func TestGoodOddBodies(t *testing.T) {
	var flows []flow
	for i, c := range []struct{ name, body string }{
		{"escaped model", `{"model":"odd-\u0030",%s}`}, {"blanks around", "  \n{\"model\" :\t\"odd-1\",%s}\n "},
		{"model last", `{%s,"model":"odd-2"}`}, {"unknown members", `{"model":"odd-3","novelty":{"a":[1e999,-0.0]},%s}`},
		{"long numbers", `{"model":"odd-4","x":123456789012345678901234567890.5e-7,%s}`}, {"surrogates", `{"model":"odd-5","x":"\ud83d\ude00",%s}`},
		{"lone surrogate", `{"model":"odd-6","x":"\ud83d",%s}`}, {"deep", `{"model":"odd-7","x":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `,%s}`},
	} {
		body := fmt.Appendf(nil, c.body, `"max_tokens":5,"messages":[]`)
		flows = append(flows, flow{
			lane: lane{name: fmt.Sprintf("odd-%d", i)}, call: call{body: body}, status: 200, served: "a", outcome: "served", attempts: "a ok serve",
			more: func(t testing.TB, l *laneRun, _ *answer, _ record) {
				if l.fakes[0].Requests()[0].BodySHA256 != hash(body) {
					t.Errorf("%s: another body arrived", c.name)
				}
			},
		})
	}
	runFlows(t, options{}, flows...)
}

// TestMalformedHTTP: what Envoy refuses before any filter gets Envoy's 4xx in the
// client's schema.
func TestMalformedHTTP(t *testing.T) {
	e := start(t, options{}, lane{name: "http", targets: two(), uncounted: true})
	cases := []struct{ name, text, status, kind string }{
		{"no HTTP", "hello\r\n\r\n", "400", "invalid_request_error"},
		{"HTTP 1.0", "POST /v1/messages HTTP/1.0\r\ncontent-length: 0\r\n\r\n", "426", "invalid_request_error"},
		{"no path", "POST v1 HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", "400", "invalid_request_error"},
		{"both lengths", "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "400", "invalid_request_error"},
		{"two lengths", "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!", "400", "invalid_request_error"},
		{"header with NUL", "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: \x00\r\ncontent-length: 0\r\n\r\n", "400", "invalid_request_error"},
		{"headers too large", "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", "431", "request_too_large"},
		{"headers that stall", "POST /v1/messages HTTP/1.1\r\nhost: x\r\n", "408", "timeout_error"},
	}
	// Each waits a second for Envoy to close; the group ends with the last.
	t.Run("refused", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				got, err := e.raw(20e9, c.text)
				if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || !strings.Contains(got, `{"type":"error","error":{"type":"`+c.kind+`"`) {
					t.Errorf("got %q, %v, want %s %s", got, err, c.status, c.kind)
				}
			})
		}
	})
	if got := servedBy(e.lane("http"), call{}); got != "200 http-a" {
		t.Errorf("afterwards: %s", got)
	}
}
