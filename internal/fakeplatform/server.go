package fakeplatform

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Server imitates one platform. Its methods are safe for concurrent use. The
// exported fields are set before the first request.
type Server struct {
	Platform string
	// KeepBody is how many bytes of each body a record keeps; the hash is always
	// of the whole.
	KeepBody int64

	listener net.Listener
	scheme   string
	done     chan struct{}
	wg       sync.WaitGroup

	mu       sync.Mutex
	rules    Rules
	queue    []Answer
	respond  func(Request) Answer
	requests []*Request
	conns    map[net.Conn]struct{}
	connN    int
	closed   bool
}

// New starts a server for plaintext HTTP/1.1 on a free port of 127.0.0.1. Close
// ends it.
func New(platform string) (*Server, error) { return start(platform, nil) }

// NewTLS is New with TLS by a certificate of ca for the names; HTTP/2 is taken
// when the caller offers it.
func NewTLS(platform string, ca *CA, names ...string) (*Server, error) {
	cert, err := ca.Issue(names...)
	if err != nil {
		return nil, err
	}
	return start(platform, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
}

func start(platform string, conf *tls.Config) (*Server, error) {
	if _, ok := traitsOf[platform]; !ok {
		return nil, fmt.Errorf("fake platform %q: not one of %s", platform, strings.Join(Platforms(), ", "))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fake platform %s: %w", platform, err)
	}
	s := &Server{Platform: platform, KeepBody: 1 << 20, listener: l, scheme: "http", done: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	if conf != nil {
		s.scheme = "https"
	}
	s.wg.Add(1)
	go s.accept(conf)
	return s, nil
}

// URL is scheme, host and port.
func (s *Server) URL() string { return s.scheme + "://" + s.Addr() }

// Addr is host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Port is the port alone.
func (s *Server) Port() int {
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// SetRules replaces what is checked besides the platform's own rules.
func (s *Server) SetRules(r Rules) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = r
}

// Script queues answers, one for each request that is not refused; those for
// files are answered by the rules alone. When none is left the answer is
// Respond's, or a good one.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, answers...)
}

// Respond sets what answers when the script is empty; nil is the good answer.
// The function is called from many goroutines.
func (s *Server) Respond(f func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// Always answers every request that the script does not with a.
func (s *Server) Always(a Answer) { s.Respond(func(Request) Answer { return a }) }

// Requests returns a copy of every record so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
	}
	return out
}

// Left is how many scripted answers nobody has asked for.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Connections is how many connections are open now.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Reset forgets records and script.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.requests, s.respond = nil, nil, nil
}

// Close ends the listener and every connection, and returns when all is over.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.done)
	for c := range s.conns {
		_ = c.Close() // it may be closed already; nobody waits for it
	}
	s.mu.Unlock()
	_ = s.listener.Close() // the accept loop ends by it
	s.wg.Wait()
}

func (s *Server) accept(conf *tls.Config) {
	defer s.wg.Done()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		id, ok := s.track(c)
		if !ok {
			_ = c.Close() // the server is closing
			return
		}
		s.wg.Go(func() {
			defer s.untrack(c)
			if conf == nil {
				serveH1(s, c, c, id)
				return
			}
			s.serveTLS(c, conf, id)
		})
	}
}

func (s *Server) track(c net.Conn) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, false
	}
	s.conns[c] = struct{}{}
	s.connN++
	return s.connN, true
}

func (s *Server) untrack(c net.Conn) {
	_ = c.Close() // closing twice does no harm
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// record enters a request whose headers are there.
func (s *Server) record(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	r.N = len(s.requests)
	r.Headed = time.Now()
}

// update changes a record under the lock that Requests reads it with.
func (s *Server) update(r *Request, f func(*Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(r)
}

// next chooses the answer for a whole request.
func (s *Server) next(r *Request) Answer {
	s.mu.Lock()
	rules := s.rules
	s.mu.Unlock()
	why, a := judge(s.Platform, rules, r) // only this goroutine writes what it reads
	s.mu.Lock()
	r.doc = nil // it keeps the whole body
	if why != "" {
		r.Refusal, r.Answer = why, a.Name
		s.mu.Unlock()
		return s.identified(r, a)
	}
	respond := s.respond
	isFile := r.call.op == opFile || r.call.op == opFileContent
	scripted := len(s.queue) > 0 && !isFile
	if scripted {
		a, s.queue = s.queue[0], s.queue[1:]
	}
	copied := *r
	s.mu.Unlock()
	switch {
	case scripted:
	case respond != nil && !isFile:
		a = respond(copied)
	default:
		a = good(s.Platform, rules, copied)
	}
	s.update(r, func(r *Request) { r.Answer = a.Name })
	return s.identified(r, a)
}

// identified adds the ids that the platform's answers carry.
func (s *Server) identified(r *Request, a Answer) Answer {
	if a.Status == 0 {
		return a
	}
	id := fmt.Sprintf("req_fake_%s_%d", s.Platform, r.N)
	switch s.Platform {
	case Bedrock:
		return a.With(Field{"x-amzn-requestid", id})
	case Vertex:
		return a.With(Field{"request-id", fmt.Sprintf("req_vrtx_fake_%d", r.N)})
	case ClaudeOnAWS, Mantle:
		return a.With(Field{"request-id", id}, Field{"x-amzn-requestid", "amzn_" + id})
	case Foundry:
		return a.With(Field{"request-id", id}, Field{"apim-request-id", "apim_" + id})
	}
	return a.With(Field{"request-id", id})
}
