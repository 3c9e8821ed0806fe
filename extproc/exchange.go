package extproc

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/messages"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// exchange is one client request and its answer, as this replica knows it. The
// handlers of its streams and the access log share it under mu.
type exchange struct {
	id      string
	node    string // address of the replica that planned, "" when it has none
	policy  *config.Policy
	client  clientRequest
	started time.Time // when the request's headers came
	// clientName is who the client is, by the policy's header.
	clientName string
	joined     bool // another replica planned it
	// foreignCredential: the headers came back from Envoy with some target's
	// credential in them; the client's own is not known here.
	foreignCredential bool

	mu    sync.Mutex
	run   *policy.Exchange // nil when the request was answered without a plan
	other *otherCall       // a request on a path that nothing plans
	facts rewrite.Facts
	// placements say what each entry of the chain makes of the body, in its order;
	// nil where no body has been seen.
	placements []placement
	files      *fileSet // that the request names
	body       *lease   // the client's bytes, decoded; nil once let go
	encoded    bool     // the client sent them encoded: what Envoy holds differs

	issued    int         // attempts that Envoy was told of
	waitUntil time.Time   // when the next one is due
	seen      seenAnswer  // what a judge knows of the running attempt
	kept      *keptAnswer // the most recent 429 or 529, for section 7
	// translated is an answer in the client's schema in place of the platform's.
	translated *keptAnswer
	envoyN     map[string]int // Envoy's attempt count -> ours
	details    []detail       // one an attempt, for the trail
	wrote      string         // the state that went to Envoy last

	passable  int       // the failed attempt whose answer may go to the client
	servedBy  int       // the attempt whose answer goes to the client; 0: none
	committed time.Time // when that was settled
	status    int       // what the client was answered with

	judged bool   // the answer that went to the client was a stream
	asIs   string // why it was released before its first content, "" when it was not
	opaque bool   // it is encoded: its bytes cannot be read
	// converted is how it ended, where the client got it in another form.
	converted *convertedEnd

	connection *connection // that carried the plan stream
	end        ending
}

// seenAnswer is what is known of attempt n's answer before it is decided.
type seenAnswer struct {
	n      int
	answer policy.Answer
}

// keptAnswer is an answer that may have to be given after a later attempt came
// to nothing.
type keptAnswer struct {
	attempt int
	status  int
	headers []field
	body    []byte
}

// detail is what the trail says of an attempt beyond its outcome.
type detail struct {
	requestID string
	message   string
}

// now is the attempt that runs, nil when none does. x.mu is held.
func (x *exchange) now() *policy.Attempt {
	if x.run == nil {
		return nil
	}
	if a := x.run.Last(); a != nil && !a.Closed() {
		return a
	}
	return nil
}

// target is where attempt a goes.
func (x *exchange) target(a *policy.Attempt) *config.Target {
	return x.run.Plan.Places[a.Place].Entry.Target
}

// letGo frees the body: nothing is tried again. x.mu is held.
func (x *exchange) letGo() {
	x.body.free()
	x.body = nil
}

// pause waits until the next attempt is due, or until ctx ends.
func pause(ctx context.Context, until time.Time) error {
	d := time.Until(until)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// issue notes that Envoy sends attempt a as its own attempt number count. x.mu
// is held.
func (x *exchange) issue(a *policy.Attempt, count string) {
	x.issued, x.judged, x.asIs, x.opaque = a.N, false, "", false
	x.counted(count, a.N)
}

// counted notes that attempt n is the one that Envoy counts as count. x.mu is
// held.
func (x *exchange) counted(count string, n int) {
	if x.envoyN == nil {
		x.envoyN = make(map[string]int, 1)
	}
	x.envoyN[count] = n
}

// detail is attempt a's, to be written to. x.mu is held.
func (x *exchange) detail(a *policy.Attempt) *detail {
	for len(x.details) < a.N {
		x.details = append(x.details, detail{})
	}
	return &x.details[a.N-1]
}

// seenRequestID keeps the platform's name for attempt a. x.mu is held.
func (x *exchange) seenRequestID(a *policy.Attempt, req *wire.Request) {
	if id := requestIDOf(req); id != "" {
		x.detail(a).requestID = id
	}
}

func requestIDOf(req *wire.Request) string {
	for _, name := range [...]string{"request-id", "x-amzn-requestid", "apim-request-id"} {
		if id := headerOf(req, name); id != "" {
			return id
		}
	}
	return ""
}

// note keeps the platform's own words about a failure, as far as the trail may
// have them. x.mu is held.
func (x *exchange) note(a *policy.Attempt, o policy.Outcome, answer *policy.Answer) {
	switch {
	case !fromProvider(answer.Local):
		x.detail(a).message = o.Reason
	case answer.Message != "" || answer.ErrorType != "":
		x.detail(a).message = errorText(answer)
	case o.Reason != "":
		x.detail(a).message = o.Reason
	}
}

// errorText is a platform's message for the trail; for the kinds of answers
// that may quote the request only the error's type and the path it names.
func errorText(answer *policy.Answer) string {
	status := answer.Status
	if answer.Stream {
		status = statusOf[answer.ErrorType]
	}
	switch status {
	case 400, 404, 409, 413, 422:
		return strings.TrimSuffix(answer.ErrorType+" "+messages.Path(answer.Message), " ")
	}
	if answer.Message == "" {
		return answer.ErrorType
	}
	return messages.Redact(answer.Message)
}

// statusOf is the status that an error event would have had as an answer, for
// the types whose messages may quote the request.
var statusOf = map[string]int{
	messages.TypeInvalidRequest: 400, messages.TypeNotFound: 404, messages.TypeTooLarge: 413,
}

// keep remembers a 429 or 529 that is whole. x.mu is held.
func (x *exchange) keep(a *policy.Attempt, o policy.Outcome, h *held) {
	if (o.Status != 429 && o.Status != 529) || !h.provider() || !h.whole || h.size > maxErrorBody || h.streaming {
		return
	}
	x.kept = h.keptAs(a)
}

// keptAs is the answer to be given later, in the client's schema where the
// platform speaks another one.
func (h *held) keptAs(a *policy.Attempt) *keptAnswer {
	status, body, translated := h.translated()
	k := &keptAnswer{attempt: a.N, status: status, body: body}
	for _, f := range h.headers {
		switch {
		case strings.HasPrefix(f.Name, ":"), strings.HasPrefix(f.Name, names.Prefix),
			f.Name == "content-length", f.Name == "transfer-encoding", f.Name == "connection":
		case translated && strings.HasPrefix(f.Name, "content-"):
		default:
			k.headers = append(k.headers, f)
		}
	}
	if translated {
		k.headers = append(k.headers, field{Name: "content-type", Value: typeJSON})
	}
	return k
}

// translate keeps the answer of attempt a, which goes to the client, where its
// platform speaks another schema than the client's. x.mu is held.
func (x *exchange) translate(a *policy.Attempt, h *held) {
	if x.spec(a).Errors == platform.SchemaMessages || h.streaming || !h.provider() {
		return
	}
	if _, _, changed := h.translated(); changed {
		x.translated = h.keptAs(a)
	}
}

// translated is the answer in the client's schema: the very bytes that came where
// it speaks that already.
func (h *held) translated() (status int, body []byte, changed bool) {
	plain := func(name string) string {
		if name == "content-encoding" {
			return "" // it is off
		}
		return h.header(name)
	}
	status, body, changed = messages.Translate(h.answer.Status, h.answer.ContentType, plain, h.readable())
	if !changed {
		return status, h.body, false
	}
	return status, withoutSecrets(body, h.secrets), true
}

// broken is what attempt a came to when its answer never reached the judge's
// decision: by what was seen of it, else by why Envoy answered in its place.
// x.mu is held.
func (x *exchange) broken(a *policy.Attempt, local string, status int) policy.Outcome {
	now := time.Now()
	if x.seen.n == a.N && (x.seen.answer.Status != 200 || !fromProvider(x.seen.answer.Local)) {
		return classify(x.seen.answer, now)
	}
	if local != "" && !fromProvider(local) {
		return classify(policy.Answer{Status: status, Local: local, Platform: x.target(a).Platform}, now)
	}
	return policy.OutcomeOf(config.KindConnection, "reset")
}

// classify is policy.Classify, without the status of an answer that Envoy made
// in the platform's place.
func classify(a policy.Answer, now time.Time) policy.Outcome {
	o := policy.Classify(a, now)
	if !fromProvider(a.Local) {
		o.Status = 0
	}
	return o
}

// headerOf is a copy of a header's first value, "" when absent.
func headerOf(req *wire.Request, name string) string {
	v, _ := req.Header(name)
	return string(v)
}
