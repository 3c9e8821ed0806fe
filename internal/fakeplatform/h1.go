package fakeplatform

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

var errHeaders = errors.New("malformed request")

const (
	// maxHead bounds one request's header lines.
	maxHead = 1 << 20
	// maxReserve bounds what a stated length reserves.
	maxReserve = 64 << 20
)

// h1 is one HTTP/1.1 connection. raw is the TCP connection below c.
type h1 struct {
	s   *Server
	c   net.Conn
	raw net.Conn
	br  *bufio.Reader
	id  int
}

// serveH1 serves requests one after the other until the connection ends.
func serveH1(s *Server, c, raw net.Conn, id int) {
	h := &h1{s: s, c: c, raw: raw, br: bufio.NewReaderSize(c, 64<<10), id: id}
	for h.serveOne() {
	}
	_ = c.Close() // the caller may have closed it
}

func (h *h1) serveOne() bool {
	r, err := readHead(h.br)
	if err != nil {
		return false
	}
	r.Conn = h.id
	h.s.record(r)
	if err := h.readBody(r); err != nil {
		h.s.update(r, func(r *Request) { r.Gone = time.Now() })
		return false
	}
	a := h.s.next(r)
	gone := make(chan struct{})
	more := make(chan bool, 1) // whether another request follows
	go func() {
		_, err := h.br.Peek(1)
		if err != nil {
			close(gone)
		}
		more <- err == nil
	}()
	p := player{s: h.s, r: r, w: &h1Writer{c: h.c, method: r.Method}, gone: gone}
	switch p.play(a) {
	case EndReset:
		if t, ok := h.raw.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // makes the close an RST; without it a FIN ends it
		}
		_ = h.raw.Close() // the peek ends by it
		<-more
		return false
	case EndClean:
		return <-more
	}
	_ = h.c.Close() // the peek ends by it
	<-more
	return false
}

func readHead(br *bufio.Reader) (*Request, error) {
	line, err := readLine(br)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%w: request line", errHeaders)
	}
	r := &Request{Method: parts[0], Target: parts[1], Proto: parts[2]}
	for size := 0; size < maxHead; {
		line, err := readLine(br)
		if err != nil {
			return nil, err
		}
		if line == "" {
			r.Chunked = strings.EqualFold(r.Get("transfer-encoding"), "chunked")
			return r, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("%w: header line", errHeaders)
		}
		size += len(line)
		r.Header = append(r.Header, Field{name, strings.TrimSpace(value)})
	}
	return nil, fmt.Errorf("%w: too many headers", errHeaders)
}

func readLine(br *bufio.Reader) (string, error) {
	line, err := br.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

func (h *h1) readBody(r *Request) error {
	var src io.Reader = http.NoBody
	if r.Chunked {
		src = httputil.NewChunkedReader(h.br)
	} else if v := r.Get("content-length"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%w: content-length", errHeaders)
		}
		src = &exactReader{r: h.br, left: n}
	}
	if err := takeBody(h.s, r, src); err != nil {
		return err
	}
	if !r.Chunked {
		return nil
	}
	for { // trailers, up to the empty line
		line, err := readLine(h.br)
		if err != nil || line == "" {
			return err
		}
	}
}

// exactReader is io.LimitReader that does not take a short body for a whole one.
type exactReader struct {
	r    io.Reader
	left int64
}

func (e *exactReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// takeBody reads the whole body into the record.
func takeBody(s *Server, r *Request, src io.Reader) error {
	var buf bytes.Buffer
	if n, err := strconv.Atoi(r.Get("content-length")); err == nil && n > 0 && n <= maxReserve {
		buf.Grow(n + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(src); err != nil {
		return err
	}
	body := buf.Bytes()
	sum := sha256.Sum256(body)
	read := readBody(s.Platform, r, body)
	kept := bytes.Clone(body[:min(int64(len(body)), s.KeepBody)])
	s.update(r, func(r *Request) {
		r.BodySize, r.BodySHA256, r.Body = int64(len(body)), hex.EncodeToString(sum[:]), kept
		r.call, r.doc, r.notJSON, r.Tokens = read.call, read.doc, read.notJSON, read.Tokens
		r.Model, r.Stream, r.Received = read.Model, read.Stream, time.Now()
	})
	return nil
}

// h1Writer writes an answer on the connection itself.
type h1Writer struct {
	c       net.Conn
	method  string
	chunked bool
}

func (w *h1Writer) head(a Answer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	for _, f := range a.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	switch {
	case a.Length == LengthChunked:
		w.chunked = true
		b.WriteString("transfer-encoding: chunked\r\n")
	case a.Length > 0:
		fmt.Fprintf(&b, "content-length: %d\r\n", a.Length)
	default:
		fmt.Fprintf(&b, "content-length: %d\r\n", a.size())
	}
	b.WriteString("\r\n")
	_, err := w.c.Write(b.Bytes())
	return err
}

func (w *h1Writer) piece(data []byte) error {
	if !w.chunked {
		_, err := w.c.Write(data)
		return err
	}
	if len(data) == 0 {
		return nil
	}
	b := make([]byte, 0, len(data)+16)
	b = fmt.Appendf(b, "%x\r\n", len(data))
	b = append(append(b, data...), '\r', '\n')
	_, err := w.c.Write(b)
	return err
}

func (w *h1Writer) finish() error {
	if !w.chunked {
		return nil
	}
	_, err := io.WriteString(w.c, "0\r\n\r\n")
	return err
}
