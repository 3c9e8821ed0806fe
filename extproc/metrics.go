package extproc

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/internal/trail"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
)

// buckets for everything that takes time, in seconds (contract, section 10).
var buckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// other is the label of what is neither in the policy nor in the built-in
// table: a client cannot create series.
const other = "other"

// Metrics are the service's own, all with the prefix crossdoor_.
type Metrics struct {
	registry prometheus.Registerer
	known    func(model string) bool

	requests        *prometheus.CounterVec
	requestSeconds  *prometheus.HistogramVec
	attempts        *prometheus.CounterVec
	attemptSeconds  *prometheus.HistogramVec
	firstToken      *prometheus.HistogramVec
	failoverAdded   *prometheus.HistogramVec
	skipped         *prometheus.CounterVec
	opened          *prometheus.CounterVec
	heldBytes       prometheus.Gauge
	heldStreams     prometheus.Gauge
	streamEnds      *prometheus.CounterVec
	degraded        *prometheus.CounterVec
	stripped        *prometheus.CounterVec
	leftover        *prometheus.CounterVec
	rewriteRefused  *prometheus.CounterVec
	joinMiss        prometheus.Counter
	tokens          *prometheus.CounterVec
	streams         *prometheus.CounterVec
	messages        *prometheus.CounterVec
	releasedUnready *prometheus.CounterVec
}

// NewMetrics registers the metrics. known says which model IDs may be labels.
func NewMetrics(r prometheus.Registerer, known func(model string) bool) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "crossdoor_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "crossdoor_" + name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	m := &Metrics{
		registry: r, known: known,
		requests:        counter("requests_total", "Exchanges by what they came to.", "route", "outcome"),
		requestSeconds:  histogram("request_seconds", "From the request's headers to the end of the answer.", "route", "outcome"),
		attempts:        counter("attempts_total", "Attempts by what they came to.", "route", "target", "model", "outcome"),
		attemptSeconds:  histogram("attempt_seconds", "From an attempt's start to its answer's headers.", "target"),
		firstToken:      histogram("first_token_seconds", "From an attempt's start to a stream's first content event.", "target"),
		failoverAdded:   histogram("failover_added_seconds", "What failed attempts and waits took before the serving attempt began.", "route"),
		skipped:         counter("skipped_total", "Targets left out of a plan.", "target", "reason"),
		opened:          counter("breaker_opened_total", "Ejections.", "target", "reason"),
		streamEnds:      counter("stream_ends_total", "How committed streams ended.", "target", "end"),
		degraded:        counter("degraded_total", "Exchanges served by a degraded target, or with something stripped that changes behaviour.", "target"),
		stripped:        counter("stripped_total", "Attempts that went out without a member which changes behaviour.", "target", "member"),
		leftover:        counter("guard_leftover_total", "Members that the guard found for a target which does not take them.", "target", "member"),
		rewriteRefused:  counter("rewrite_refused_total", "Requests that a platform refused for a member or a beta.", "target"),
		tokens:          counter("tokens_total", "Tokens as the platforms count them.", "target", "model", "direction"),
		streams:         counter("grpc_streams_total", "ext_proc streams by role.", "role"),
		messages:        counter("grpc_messages_total", "ext_proc messages received by role.", "role"),
		releasedUnready: counter("released_unready_total", "Held streams that were released as they were.", "target", "reason"),
	}
	m.heldBytes = gauge(r, "held_bytes", "Bytes of streams that are held.")
	m.heldStreams = gauge(r, "held_streams", "Answers that are held.")
	m.joinMiss = prometheus.NewCounter(prometheus.CounterOpts{Name: "crossdoor_join_miss_total", Help: "Messages about exchanges that another replica planned."})
	r.MustRegister(m.joinMiss)
	return m
}

func gauge(r prometheus.Registerer, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "crossdoor_" + name, Help: help})
	r.MustRegister(g)
	return g
}

// watch adds what is read off the server when it is asked for.
func (m *Metrics) watch(s *Server) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crossdoor_inflight", Help: "Exchanges that run."},
			func() float64 { return float64(s.table.Len()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "crossdoor_trail_dropped_total", Help: "Trail records that were dropped."},
			func() float64 { return float64(s.trail.Dropped()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crossdoor_body_bytes", Help: "Request bodies that are kept."},
			func() float64 { return float64(s.table.Bytes()) }),
		breakerStates{health: s.health},
		credentialExpiry{server: s},
	)
}

// Opened counts an ejection; it is for policy.Observer.
func (m *Metrics) Opened(e policy.Event) { m.opened.WithLabelValues(e.Target, string(e.Kind)).Inc() }

// breakerStates collects breaker_state from the health registry.
type breakerStates struct{ health *policy.Health }

var breakerState = prometheus.NewDesc("crossdoor_breaker_state", "0 closed, 1 half-open, 2 open.", []string{"scope", "target", "model", "key"}, nil)

// Describe is part of prometheus.Collector.
func (breakerStates) Describe(c chan<- *prometheus.Desc) { c <- breakerState }

// Collect is part of prometheus.Collector.
func (b breakerStates) Collect(c chan<- prometheus.Metric) {
	for _, st := range b.health.Snapshot() {
		c <- prometheus.MustNewConstMetric(breakerState, prometheus.GaugeValue, float64(st.State), string(st.Scope), st.Target, st.Model, st.Key)
	}
}

// credentialExpiry collects credential_expiry_seconds: how long the credential
// that a cloud issued for a target is still valid.
type credentialExpiry struct{ server *Server }

var expiryDesc = prometheus.NewDesc("crossdoor_credential_expiry_seconds", "Until the credential of a target ends; negative when it has.", []string{"target"}, nil)

// Describe is part of prometheus.Collector.
func (credentialExpiry) Describe(c chan<- *prometheus.Desc) { c <- expiryDesc }

// Collect is part of prometheus.Collector.
func (e credentialExpiry) Collect(c chan<- prometheus.Metric) {
	for _, t := range e.server.Policy().Targets {
		if end, ok := e.server.issued.Expiry(t.Keys[0].Place()); ok {
			c <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, time.Until(end).Seconds(), t.Name)
		}
	}
}

// count counts an exchange once, from what was recorded of it. x.mu is held.
func (s *Server) count(x *exchange, r *trail.Record, now time.Time) {
	m, route := s.metrics, r.Route
	if route == "" {
		route = other
	}
	m.requests.WithLabelValues(route, r.Outcome).Inc()
	m.requestSeconds.WithLabelValues(route, r.Outcome).Observe(now.Sub(x.started).Seconds())
	if x.run == nil {
		return
	}
	for _, p := range r.Plan {
		if p.Skipped != "" {
			m.skipped.WithLabelValues(p.Target, p.Skipped).Inc()
		}
	}
	for _, a := range x.run.Attempts[:x.issued] {
		target := x.target(a).Name
		m.attempts.WithLabelValues(route, target, m.model(a.Model), string(a.Outcome.Kind)).Inc()
		for _, member := range x.run.Plan.Places[a.Place].Stripped {
			m.stripped.WithLabelValues(target, member).Inc()
		}
		if !a.Headers.IsZero() {
			m.attemptSeconds.WithLabelValues(target).Observe(a.Headers.Sub(a.Start).Seconds())
		}
	}
	if x.servedBy > 0 {
		m.served(x, r, route)
	}
}

// served counts what concerns the answer that the client got. x.mu is held.
func (m *Metrics) served(x *exchange, r *trail.Record, route string) {
	a := x.run.Attempts[x.servedBy-1]
	if x.servedBy > 1 {
		m.failoverAdded.WithLabelValues(route).Observe(a.Start.Sub(x.run.Plan.Start).Seconds())
	}
	if len(r.Degraded) > 0 {
		m.degraded.WithLabelValues(r.ServedBy).Inc()
	}
	if x.judged && a.Decision == policy.VerbServe {
		m.streamEnds.WithLabelValues(r.ServedBy, string(a.Outcome.Kind)).Inc()
		if x.asIs == "" {
			m.firstToken.WithLabelValues(r.ServedBy).Observe(x.committed.Sub(a.Start).Seconds())
		} else {
			m.releasedUnready.WithLabelValues(r.ServedBy, x.asIs).Inc()
		}
	}
	if u := r.Usage; u != nil && a.Outcome.Kind == config.KindOK {
		model := m.model(a.Model)
		m.tokens.WithLabelValues(r.ServedBy, model, "input").Add(float64(u.InputTokens))
		m.tokens.WithLabelValues(r.ServedBy, model, "output").Add(float64(u.OutputTokens))
		m.tokens.WithLabelValues(r.ServedBy, model, "cache_read").Add(float64(u.CacheReadInputTokens))
		m.tokens.WithLabelValues(r.ServedBy, model, "cache_creation").Add(float64(u.CacheCreationInputTokens))
	}
}

func (m *Metrics) model(id string) string {
	if m.known == nil || m.known(id) {
		return id
	}
	return other
}

// counted is a stream whose messages are counted.
type counted struct {
	wire.Stream

	received prometheus.Counter
}

// stream counts a stream of a role, and then its messages.
func (m *Metrics) stream(role string, s wire.Stream) counted {
	switch role {
	case names.RolePlan, names.RoleAttempt, names.RoleJudge:
	default:
		role = other
	}
	m.streams.WithLabelValues(role).Inc()
	return counted{Stream: s, received: m.messages.WithLabelValues(role)}
}

// Recv is wire.Stream's, counted.
func (c counted) Recv(r *wire.Request) error {
	err := c.Stream.Recv(r)
	if err == nil {
		c.received.Inc()
	}
	return err
}
