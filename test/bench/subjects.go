package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/credential"
	"github.com/crossdoor/crossdoor/rewrite/eventstream"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// subjects are the bodies of requests and one stream.
func subjects() []subject {
	out := make([]subject, 0, 8)
	for _, b := range []struct {
		name             string
		shape            shape
		open, part, shut string
		size             int
	}{
		{"prose", shapeText, openText, words, `"}]` + foot, mib},
		{"base64 image", shapeText, openImage, pixels, `"}}]}]` + foot, mib},
		{"tool calls", shapeCalls, openMessages, call, `{"role":"user","content":"Go on."}]` + foot, mib},
		{"a cache_control each 100 bytes", shapeMarks, openBlocks, cached, `{"type":"text","text":"."}]}]` + foot, mib},
		{"tiny tokens", shapeTiny, openAny, tiny, `0]` + foot, mib},
		{"prose", shapeText, openText, words, `"}]` + foot, 32 * mib},
		{"base64 image", shapeText, openImage, pixels, `"}}]}]` + foot, 32 * mib},
	} {
		body := []byte(b.open + strings.Repeat(b.part, (b.size-len(b.open)-len(b.shut))/len(b.part)) + b.shut)
		out = append(out, subject{name: fmt.Sprintf("%s, %d MB", b.name, b.size/mib), shape: b.shape, size: len(body), steps: bodySteps(body)})
	}
	return append(out, streamSubject())
}

// The texts that bodies are made of.
const (
	openMessages = `{"max_tokens":1024,"stream":true,"messages":[`
	openText     = openMessages + `{"role":"user","content":"`
	openImage    = openMessages + `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`
	openBlocks   = openMessages + `{"role":"user","content":[`
	openAny      = `{"max_tokens":1024,"stream":true,"messages":[],"metadata":[`
	foot         = `,"model":"` + benchModel + `"}`
	words        = `The quick brown fox jumps over the lazy dog, says \"hello\" and goes on.\n`
	pixels       = `iVBORw0KGgoAAAANSUhEUgAA`
	cached       = `{"type":"text","text":"A line of a file, as an agent sends it.","cache_control":{"type":"ephemeral","ttl":"1h"}},`
	call         = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01","name":"read","input":{"path":"a/b.go","lines":[1,20],"all":false}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"package b\n"}]},`
	tiny = `{"a":1,"b":[true,null],"c":"d"},`

	benchModel = "claude-sonnet-4-6"
)

// bodySteps are what planning and an attempt do with a body. The room that a
// changed body goes to is kept, as the service keeps it in a pool.
func bodySteps(body []byte) []step {
	r := &rewriting{body: body, room: make([]byte, 0, len(body)+kib)}
	steps := []step{
		{stepCopy, func() error { r.room = append(r.room[:0], body...); return nil }},
		{stepUTF8, func() error {
			if !utf8.Valid(body) {
				return errors.New("not UTF-8")
			}
			return nil
		}},
		{stepInspect, r.inspect},
		{stepFoundry, r.all("foundry", nil)},
		{stepBedrock, r.all("bedrock", map[rewrite.Feature]rewrite.Action{rewrite.CacheControl: rewrite.Strip, rewrite.CacheTTL: rewrite.Strip})},
		{stepNothing, r.to("anthropic", nil)},
	}
	if len(body) > 8*mib {
		steps = append(steps, step{stepSign, func() error { return sign(body) }})
	}
	return steps
}

// rewriting is a body on its way.
type rewriting struct {
	body, room []byte
	facts      rewrite.Facts
}

func (r *rewriting) inspect() (err error) {
	r.facts, err = rewrite.Inspect(r.body)
	return err
}

// to is what is done for a target once the body is inspected.
func (r *rewriting) to(where string, own map[rewrite.Feature]rewrite.Action) func() error {
	spec, _ := platform.Get(where)
	host := rewrite.Host{Platform: where, Model: benchModel, Overrides: own}
	model := benchModel
	if where != "anthropic" {
		model = "the-id-of-" + where
	}
	return func() error {
		fit := r.facts.Fit(&host, nil)
		change := spec.Change(&r.facts, platform.Call{Operation: platform.Messages, Model: model})
		change.Strip = fit.Stripped | fit.Lossless
		edits := r.facts.Edits(&change)
		if (len(edits) == 0) != (where == "anthropic") {
			return fmt.Errorf("%d edits for %s", len(edits), where)
		}
		if len(edits) > 0 {
			r.room = rewrite.Splice(r.room[:0], r.body, edits)
		}
		return nil
	}
}

// all is inspect and to.
func (r *rewriting) all(where string, own map[rewrite.Feature]rewrite.Action) func() error {
	change := r.to(where, own)
	return func() error {
		if err := r.inspect(); err != nil {
			return err
		}
		return change()
	}
}

// sign makes what a request to Amazon Bedrock is signed with.
func sign(body []byte) error {
	_, err := credential.Sign(credential.AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, credential.Unsigned{
		Method: "POST", Authority: "bedrock-runtime.us-east-1.amazonaws.com", Path: "/model/m/invoke", ContentType: "application/json",
		PayloadHash: credential.PayloadHash(body), Service: "bedrock", Region: "us-east-1",
	}, time.Now())
	return err
}

// streamSubject is a stream of Amazon Bedrock of text deltas, in pieces as they
// come from a socket.
func streamSubject() subject {
	const piece = 16 * kib
	stream := bytes.Repeat(fakeplatform.Chunk([]byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some words"}}`)), 4000)
	room := make([]byte, 0, len(stream))
	return subject{name: "text deltas in AWS's frames", shape: shapeStream, size: len(stream), steps: []step{
		{stepCopy, func() error { room = append(room[:0], stream...); return nil }},
		{stepConvert, func() error {
			var c eventstream.Converter
			for at := 0; at < len(stream); at += piece {
				room, _ = c.Convert(room[:0], stream[at:min(at+piece, len(stream))], nil)
			}
			return c.Err()
		}},
	}}
}
