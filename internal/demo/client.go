package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// requestLimit ends a request of the tour that gets no answer: later than every
// timeout of the policy.
const requestLimit = 18 * time.Second

// kind is whether a client asks for a message or for a stream.
type kind uint8

const (
	asJSON kind = iota
	asStream
)

func (k kind) String() string {
	if k == asStream {
		return "stream"
	}
	return "message"
}

// answer is what a client has of an answer so far.
type answer struct {
	status  int // 0 until the headers are there
	header  http.Header
	body    []byte
	err     error         // of the connection; nil when all came as its framing says
	headers time.Duration // until the headers
	total   time.Duration // until the end
}

// flight is a request that is under way. Its methods are safe for concurrent use.
type flight struct {
	kind    kind
	model   string
	sentSHA string
	began   time.Time
	done    chan struct{}

	mu sync.Mutex
	a  answer
}

// requestBody is a request for the model, spaced as no encoder would: the bytes
// that arrive are compared.
func requestBody(model string, k kind) []byte {
	stream := ""
	if k == asStream {
		stream = ` "stream": true,`
	}
	return fmt.Appendf(nil, `{ "model": %q,  "max_tokens":64,%s "messages": [ {"role":"user","content":"Say hello."} ] }`, model, stream)
}

// send sends a request and returns at once.
func (w *world) send(ctx context.Context, model string, k kind) *flight {
	body := requestBody(model, k)
	sum := sha256.Sum256(body)
	f := &flight{kind: k, model: model, sentSHA: hex.EncodeToString(sum[:]), began: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		ctx, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		err := f.run(ctx, w.http, "http://"+local(w.listen)+"/v1/messages", body)
		f.update(func(a *answer) { a.err, a.total = err, time.Since(f.began) })
	}()
	return f
}

func (f *flight) run(ctx context.Context, client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("content-type", "application/json")
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set("x-api-key", keyClient)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // all was read, or the rest is not wanted
	f.update(func(a *answer) {
		a.status, a.header, a.headers = resp.StatusCode, resp.Header, time.Since(f.began)
	})
	chunk := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(chunk)
		f.update(func(a *answer) { a.body = append(a.body, chunk[:n]...) })
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f *flight) update(change func(*answer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.a)
}

// now is a copy of what is there; the header map is not changed any more.
func (f *flight) now() answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.a
	a.body = bytes.Clone(a.body)
	return a
}

// wait is the whole answer.
func (f *flight) wait() answer {
	<-f.done
	return f.now()
}

// words is how many content events the client has.
func (a answer) words() int { return bytes.Count(a.body, []byte("event: content_block_delta\n")) }

// events is how many events the client has.
func (a answer) events() int { return bytes.Count(a.body, []byte("event: ")) }
