package platform

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"
)

func TestWrapCount(t *testing.T) {
	for n := range 10 {
		body := bytes.Repeat([]byte{'"'}, n)
		got := WrapCount(nil, body)
		var wrapped struct {
			Input struct {
				InvokeModel struct{ Body string }
			}
		}
		if err := json.Unmarshal(got, &wrapped); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		inside, err := base64.StdEncoding.DecodeString(wrapped.Input.InvokeModel.Body)
		if err != nil || !bytes.Equal(inside, body) || len(got) != WrappedCount(n) {
			t.Errorf("%d bytes: %s, %v", n, got, err)
		}
	}
	room := make([]byte, 0, WrappedCount(3))
	if n := testing.AllocsPerRun(10, func() { WrapCount(room, []byte("abc")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestConverts(t *testing.T) {
	for _, s := range specs {
		for _, op := range []Operation{Messages, CountTokens, Other} {
			for _, stream := range []bool{false, true} {
				want := s == &bedrock && (op == CountTokens || (op == Messages && stream))
				if got := s.Converts(op, stream); got != want {
					t.Errorf("%s, operation %d, stream %v: %v", s.Name, op, stream, got)
				}
			}
			if got := s.Wraps(op); got != (s == &bedrock && op == CountTokens) {
				t.Errorf("%s, operation %d wraps: %v", s.Name, op, got)
			}
		}
	}
}

func TestCountAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		`{"inputTokens":0}`:                       `{"input_tokens":0}`,
		`{"x":{}, "inputTokens" : 123456789012 }`: `{"input_tokens":123456789012}`,
		`{"input_tokens":5}`:                      "",
		`{"inputTokens":null}`:                    "",
		`{"inputTokens":-1}`:                      "",
		`{"inputTokens":"5"}`:                     "",
		`{"inputTokens":5`:                        "",
		`{"message":"no"}`:                        "",
		`[]`:                                      "",
		`<html>`:                                  "",
		``:                                        "",
	} {
		got, err := CountAnswer([]byte(answer))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v; want %s", answer, got, err, want)
		}
	}
}
