package operate

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/crossdoor/crossdoor/internal/trail"
)

// Bounds of the admin server. Its requests have no bodies.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = time.Minute
	idleTimeout  = 2 * time.Minute
	maxHeader    = 16 << 10
)

// Options is what the handlers show; all but TokenFile must be given. Everything
// is called from many goroutines at once.
type Options struct {
	// Ready tells the state of now; it must not wait for anything.
	Ready func() Ready
	// Metrics serves `/metrics`.
	Metrics http.Handler
	// Recent is the records in memory, newest last; trail.Sink has it.
	Recent func(trail.Filter) []*trail.Record
	// TokenFile, when set, is what callers of everything but the probes must
	// show as a bearer token.
	TokenFile string
}

// AdminHandler serves `--admin`: `/healthz`, `/readyz`, `/metrics`, `/trail`.
func AdminHandler(o Options) http.Handler {
	a := admin{o}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", healthz)
	mux.HandleFunc("/readyz", a.readyz)
	mux.Handle("/metrics", a.guarded(o.Metrics))
	mux.Handle("/trail", a.guarded(http.HandlerFunc(a.trail)))
	mux.HandleFunc("/", unknown("there are /healthz, /readyz, /metrics, /trail"))
	return readOnly(mux)
}

// MetricsHandler serves `--metrics`: probes and metrics for everybody, without
// the names of targets in `/readyz`. Only Ready and Metrics of o are used.
func MetricsHandler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", healthz)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { o.Ready().writeNameless(w) })
	mux.Handle("/metrics", o.Metrics)
	mux.HandleFunc("/", unknown("there are /healthz, /readyz, /metrics"))
	return readOnly(mux)
}

// NewServer is a server for one of the handlers with bounds on time and size.
// The caller serves (Serve, ServeTLS) and shuts down. log gets what net/http
// has to tell, at debug level; it may be nil.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

type admin struct{ o Options }

// readyz is open to probes, which cannot show tokens: they get no names.
func (a admin) readyz(w http.ResponseWriter, r *http.Request) {
	if a.refusal(r) != nil {
		a.o.Ready().writeNameless(w)
		return
	}
	a.o.Ready().write(w)
}

func (a admin) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if no := a.refusal(r); no != nil {
			no.write(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// refusal is nil for callers who may see everything. Without a token the
// address itself is the protection, and a browser on the same machine would
// carry a foreign page's requests through it: such a page's requests have a
// foreign host name (DNS rebinding).
func (a admin) refusal(r *http.Request) *answerError {
	if a.o.TokenFile != "" {
		if authorized(r, a.o.TokenFile) {
			return nil
		}
		return &answerError{http.StatusUnauthorized, "show the token of --admin-token-file as `Authorization: Bearer …`"}
	}
	if host := hostOnly(r.Host); !loopback(host) && host != socketHost {
		return &answerError{http.StatusForbidden, fmt.Sprintf("host %q: without a token the admin API answers to 127.0.0.1, [::1] and localhost only", host)}
	}
	return nil
}

func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	if n := len(hostport); n > 2 && hostport[0] == '[' && hostport[n-1] == ']' {
		return hostport[1 : n-1]
	}
	return hostport
}

// trail answers with JSON lines, newest last.
func (a admin) trail(w http.ResponseWriter, r *http.Request) {
	filter, err := trail.ParseValues(r.URL.Query(), time.Now())
	if err != nil {
		(&answerError{http.StatusBadRequest, err.Error()}).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	for _, rec := range a.o.Recent(filter) {
		line, err := trail.Encode(rec)
		if err != nil {
			continue // the file writer has told
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return // the caller has left
		}
	}
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	// A probe that has left is not worth a word.
	_, _ = w.Write([]byte("ok\n"))
}

func unknown(help string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		(&answerError{http.StatusNotFound, help}).write(w)
	}
}

// readOnly refuses other methods, and bodies with the methods that are left.
func readOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			(&answerError{http.StatusMethodNotAllowed, "only GET and HEAD"}).write(w)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 0)
		h.ServeHTTP(w, r)
	})
}

// answerError is a refusal as callers get it.
type answerError struct {
	status  int
	message string
}

func (e *answerError) write(w http.ResponseWriter) {
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.status, errorBody{e.message})
}

type errorBody struct {
	Error string `json:"error"`
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) //nolint:errchkjson // the status is out: a caller that has left is all that can go wrong
}
