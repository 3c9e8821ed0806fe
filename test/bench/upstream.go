package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// orders is the request header that tells the platform what to do, in the form
// of a URL query. Every side passes it on.
const orders = "X-Bench"

// began is the zero of all send times: they are readings of the monotonic clock
// of this process, which is both the platform and the client.
var began = time.Now()

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	goodAnswer = `{"id":"msg_bench","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Good."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":3}}`
	overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
)

// upstream is the platform behind every side. It has two ports: Crossdoor's
// failing target is the second one; Envoy's own retry goes to the first one
// again, where the attempt count tells it apart.
type upstream struct {
	main, busy int
	failed     atomic.Int64 // answers with 529 so far
	crossed    atomic.Int64 // requests to paths of Amazon Bedrock so far
	gate       gate
	servers    []*http.Server
}

func startUpstream(ctx context.Context) (*upstream, error) {
	u := &upstream{}
	var err error
	if u.main, err = u.listen(ctx, u.serveMain); err != nil {
		return nil, err
	}
	u.busy, err = u.listen(ctx, u.serveBusy)
	return u, err
}

func (u *upstream) listen(ctx context.Context, h http.HandlerFunc) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("platform: %w", err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	u.servers = append(u.servers, s)
	go func() { _ = s.Serve(l) }() // until close
	return portOf(l), nil
}

func (u *upstream) close() {
	for _, s := range u.servers {
		_ = s.Close() // nothing is left to lose
	}
}

func (u *upstream) serveMain(w http.ResponseWriter, r *http.Request) {
	u.serve(w, r, r.Header.Get("X-Envoy-Attempt-Count") == "1")
}

func (u *upstream) serveBusy(w http.ResponseWriter, r *http.Request) { u.serve(w, r, true) }

func (u *upstream) serve(w http.ResponseWriter, r *http.Request, first bool) {
	o, err := url.ParseQuery(r.Header.Get(orders))
	if err == nil {
		err = checkBody(r, o)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusTeapot)
	case strings.HasPrefix(r.URL.Path, "/model/"):
		u.crossed.Add(1)
		serveBedrock(w, r, o)
	case first && o.Get("fail") == "1":
		u.failed.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(529)
		_, _ = io.WriteString(w, overloaded) // a proxy that left shows at the client
	case o.Has("events"):
		w.Header().Set("Content-Type", "text/event-stream")
		playEvents(w, o, func(event []byte) []byte { return event })
	default:
		if n := number(o, "hold"); n > 0 {
			u.gate.wait(r.Context(), n)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodAnswer)
	}
}

func number(o url.Values, name string) int {
	n, err := strconv.Atoi(o.Get(name))
	if err != nil {
		return 0
	}
	return n
}

// checkBody reads the body whole and compares it with what the client sent.
func checkBody(r *http.Request, o url.Values) error {
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, r.Body)
	if err != nil {
		return fmt.Errorf("body after %d bytes: %w", n, err)
	}
	if got := fmt.Sprintf("%d-%08x", n, h.Sum32()); got != o.Get("body") {
		return fmt.Errorf("the body arrived as %s, not as %s", got, o.Get("body"))
	}
	return nil
}

// serveBedrock answers as InvokeModel and its stream do.
func serveBedrock(w http.ResponseWriter, r *http.Request, o url.Values) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	if !o.Has("events") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, goodAnswer) // a proxy that left shows at the client
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	playEvents(w, o, func(event []byte) []byte {
		_, data, _ := bytes.Cut(event, []byte("\ndata: "))
		return fakeplatform.Chunk(bytes.TrimSuffix(data, []byte("\n\n")))
	})
}

// playEvents streams a Messages answer of as many text deltas as o says, one
// each pace, each with its send time, as framed makes it of a server-sent event.
// The last event carries the SHA-256 of all events before it.
func playEvents(w http.ResponseWriter, o url.Values, framed func(event []byte) []byte) {
	n, pace := number(o, "events"), time.Duration(number(o, "pace"))*time.Microsecond
	digest := sha256.New()
	flush := http.NewResponseController(w)
	send := func(format string, args ...any) bool {
		event := fmt.Appendf(nil, format, args...)
		digest.Write(event) // of a hash: never an error
		_, err := w.Write(framed(event))
		return errors.Join(err, flush.Flush()) == nil
	}
	send("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_bench\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"usage\":{\"input_tokens\":12,\"output_tokens\":1}}}\n\n")
	send("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range n {
		timer.Reset(time.Until(begin.Add(time.Duration(i) * pace)))
		<-timer.C
		if !send("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" some words\"},\"at\":%d}\n\n", time.Since(began)) {
			return
		}
	}
	send("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n")
	send("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":%d}}\n\n", n)
	send("event: message_stop\ndata: {\"type\":\"message_stop\",\"sha256\":%q}\n\n", hex.EncodeToString(digest.Sum(nil)))
}

// gate lets requests through when enough of them are waiting.
type gate struct {
	mu      sync.Mutex
	waiting int
	open    chan struct{}
}

func (g *gate) wait(ctx context.Context, n int) {
	g.mu.Lock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
	open := g.open
	if g.waiting++; g.waiting >= n {
		close(open)
		g.waiting, g.open = 0, nil
	}
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}
