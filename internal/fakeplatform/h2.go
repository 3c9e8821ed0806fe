package fakeplatform

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
)

// serveH2 serves one connection until it ends.
func serveH2(s *Server, c net.Conn, id int) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.handleH2(w, req, id) })
	(&http2.Server{}).ServeConn(c, &http2.ServeConnOpts{Handler: handler}) //nolint:staticcheck // http.Server takes listeners, not one connection that has shaken hands
}

func (s *Server) handleH2(w http.ResponseWriter, req *http.Request, id int) {
	r := &Request{Conn: id, Proto: req.Proto, Method: req.Method, Target: req.RequestURI, Header: headerList(req)}
	s.record(r)
	if takeBody(s, r, req.Body) != nil {
		return // the caller left while it sent
	}
	a := s.next(r)
	p := player{s: s, r: r, w: &h2Writer{w: w}, gone: req.Context().Done()}
	if p.play(a) != EndClean {
		// net/http turns this into RST_STREAM, which is all that a stream can do.
		panic(http.ErrAbortHandler)
	}
}

// headerList has Host first and the rest by name: HTTP/2 as net/http gives it
// has no order left.
func headerList(req *http.Request) []Field {
	out := []Field{{"host", req.Host}}
	if req.ContentLength >= 0 && req.Header.Get("Content-Length") == "" && req.Method != http.MethodGet {
		out = append(out, Field{"content-length", strconv.FormatInt(req.ContentLength, 10)})
	}
	for name, values := range req.Header {
		for _, v := range values {
			out = append(out, Field{strings.ToLower(name), v})
		}
	}
	slices.SortStableFunc(out[1:], func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// h2Writer writes an answer through net/http.
type h2Writer struct{ w http.ResponseWriter }

func (w *h2Writer) head(a Answer) error {
	for _, f := range a.Header {
		w.w.Header().Add(f.Name, f.Value)
	}
	switch {
	case a.Length > 0:
		w.w.Header().Set("content-length", strconv.FormatInt(a.Length, 10))
	case a.Length == LengthAuto:
		w.w.Header().Set("content-length", strconv.FormatInt(a.size(), 10))
	}
	w.w.WriteHeader(a.Status)
	return http.NewResponseController(w.w).Flush()
}

func (w *h2Writer) piece(data []byte) error {
	if _, err := w.w.Write(data); err != nil {
		return err
	}
	return http.NewResponseController(w.w).Flush()
}

func (w *h2Writer) finish() error { return nil }
