package platform

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/crossdoor/crossdoor/rewrite"
)

// TestChange: what is sent is JSON; the same request gives the same bytes every
// time; and a platform with first-party paths and IDs gets the client's.
func TestChange(t *testing.T) {
	for _, s := range specs {
		for _, r := range requests {
			call, err := r.call(s)
			if err != nil {
				continue
			}
			sent := r.sent(t, s, call)
			if !json.Valid(sent) {
				t.Errorf("%s, %s: %s", s.Name, r.name, sent)
			}
			for range 5 {
				if again := r.sent(t, s, call); !bytes.Equal(again, sent) {
					t.Errorf("%s, %s: %s, then %s", s.Name, r.name, sent, again)
				}
			}
			facts, err := rewrite.Inspect([]byte(r.body))
			if err != nil {
				t.Fatal(err)
			}
			firstParty := s.own.messages == "" && !s.body.profile && call.Model == facts.Model
			if change := s.Change(&facts, call); (call.Operation == Other || firstParty) && !reflect.DeepEqual(change, rewrite.Change{}) {
				t.Errorf("%s, %s: %+v", s.Name, r.name, change)
			}
		}
	}
}

// What a platform does to every request is lost on none of its members: all but
// what it moves stand as they were, in their order.
func TestChangeKeepsTheRest(t *testing.T) {
	const tail = `"tools":[{"name":"a","input_schema":{}}],"system":"x","tool_choice":{"type":"auto"},"messages":[{"role":"user","content":[{"type":"tool_use","input":{"row":2512292042121000001,"ratio":0.1000000000000000055,"big":1e400,"neg":-0.0,"exp":1E5}}]}]}`
	r := request{body: `{"model":"claude-haiku-4-5","stream":false,` + tail, model: "claude-haiku-4-5"}
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
		r.path = path
		for _, s := range specs {
			call, err := r.call(s)
			if err != nil {
				t.Fatal(err)
			}
			if sent := r.sent(t, s, call); !bytes.HasSuffix(sent, []byte(tail)) {
				t.Errorf("%s %s: %s", s.Name, path, sent)
			}
		}
	}
}
