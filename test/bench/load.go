package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// settled is how many text events of a stream are left out: the first ones are
// held until the commit, on the side that has one.
const settled = 10

// request is what every client of a case sends, to whichever side.
type request struct {
	body    []byte
	events  int           // 0 asks for JSON
	pace    time.Duration // between events
	fate    fate          // fails: the first attempt gets a 529
	marked  bool          // takes the route on which attempts fail
	hold    int           // the platform answers when so many wait
	sum     string        // of the body as it is sent
	crossed string        // of the body as Amazon Bedrock must get it
}

// newRequest makes a Messages request of exactly size bytes.
func newRequest(size, events int, pace time.Duration) *request {
	// What Amazon Bedrock must get in the place of either head.
	const crossedHead = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1024,"messages":[{"role":"user","content":"`
	head := `{"model":"claude-sonnet-4-5","max_tokens":1024,"messages":[{"role":"user","content":"`
	if events > 0 {
		head = `{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"`
	}
	const shut = `"}]}`
	text := strings.Repeat(words, (size-len(head)-len(shut))/len(words))
	text += strings.Repeat(".", size-len(head)-len(shut)-len(text))
	body := []byte(head + text + shut)
	return &request{body: body, events: events, pace: pace, sum: sumOf(body), crossed: sumOf([]byte(crossedHead + text + shut))}
}

// sumOf is a body's length and CRC.
func sumOf(body []byte) string {
	return fmt.Sprintf("%d-%08x", len(body), crc32.Checksum(body, castagnoli))
}

// with is r with another fate.
func (r *request) with(f fate) *request {
	c := *r
	c.fate, c.marked = f, f == failing
	if f == crossing {
		c.sum = r.crossed
	}
	return &c
}

// healing is a JSON request that takes the route on which attempts fail, and
// does not.
func healing() *request {
	r := newRequest(kib, 0, 0)
	r.marked = true
	return r
}

// orders is the header that the platform obeys.
func (r *request) orders() string {
	s := "body=" + r.sum
	if r.events > 0 {
		s += fmt.Sprintf("&events=%d&pace=%d", r.events, r.pace.Microseconds())
	}
	if r.fate == failing {
		s += "&fail=1"
	}
	if r.hold > 0 {
		s += fmt.Sprintf("&hold=%d", r.hold)
	}
	return s
}

// sample is one answer. Times are microseconds.
type sample struct {
	took   float64   // whole answer, from when it was to be sent
	first  float64   // until the answer's first byte after the headers
	events []float64 // each event, from the platform's clock to the client's
}

// send sends r to a side; due is when it was to be sent.
func (s *side) send(ctx context.Context, r *request, due time.Time) (sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(r.body))
	if err != nil {
		return sample{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("User-Agent", "bench")
	req.Header.Set(orders, r.orders())
	if r.marked {
		req.Header.Set("X-Bench-Fail", "1")
	}
	if r.fate == crossing {
		req.Header.Set("X-Bench-Cross", "1")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w: %s", s.name, err, s.envoy.out)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or broken
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // the status is the error, this its explanation
		return sample{}, fmt.Errorf("%s: %s: %s", s.name, resp.Status, text)
	}
	var out sample
	if r.events > 0 {
		err = out.readEvents(resp.Body, r.events, due)
	} else {
		err = drainAll(resp.Body)
		out.first = micros(time.Since(due))
	}
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w", s.name, err)
	}
	out.took = micros(time.Since(due))
	return out, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// readEvents reads a stream to its end and compares the digest that the
// platform put into the last event with that of the bytes that came.
func (s *sample) readEvents(body io.Reader, n int, due time.Time) error {
	digest := sha256.New()
	var pending []byte // the lines of the event at hand
	want, texts := "", 0
	in := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		now := time.Now()
		if s.first == 0 {
			s.first = micros(now.Sub(due))
		}
		pending = append(pending, line...)
		if at, ok := value(line, `"at":`); ok {
			if texts++; texts > settled {
				s.events = append(s.events, micros(now.Sub(began.Add(at))))
			}
		}
		if _, after, ok := bytes.Cut(line, []byte(`"sha256":"`)); ok {
			want = string(after[:min(2*sha256.Size, len(after))])
			break
		}
		if len(line) == 1 || err != nil {
			digest.Write(pending)
			pending = pending[:0]
		}
		if err != nil {
			break
		}
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != want || texts != n {
		return fmt.Errorf("the stream arrived with other bytes than were sent: %d of %d events, digest %.8s, not %.8s", texts, n, got, want)
	}
	return drainAll(in)
}

// value is the whole number after key in line.
func value(line []byte, key string) (time.Duration, bool) {
	_, after, ok := bytes.Cut(line, []byte(key))
	if !ok {
		return 0, false
	}
	end := bytes.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(string(after[:max(0, end)]), 10, 64)
	return time.Duration(n), err == nil
}

// collector gathers samples of several clients.
type collector struct {
	mu      sync.Mutex
	samples []sample
	err     error
}

func (c *collector) add(s sample, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = errors.Join(c.err, err)
		return
	}
	c.samples = append(c.samples, s)
}

// closedLoop sends n requests by so many clients, each its next one when the
// last is answered.
func (s *side) closedLoop(ctx context.Context, r *request, clients, n int) ([]sample, error) {
	var c collector
	var wait sync.WaitGroup
	for k := range clients {
		wait.Go(func() {
			for i := k; i < n; i += clients {
				one, err := s.send(ctx, r, time.Now())
				if c.add(one, err); err != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	return c.samples, c.err
}

// openLoop sends n requests at a fixed rate a second, whatever became of those
// before; times count from when each was due.
func (s *side) openLoop(ctx context.Context, r *request, n int, rate float64) ([]sample, error) {
	var c collector
	var wait sync.WaitGroup
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range n {
		due := begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		timer.Reset(time.Until(due))
		<-timer.C
		wait.Go(func() { c.add(s.send(ctx, r, due)) })
	}
	wait.Wait()
	return c.samples, c.err
}
