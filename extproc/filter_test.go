package extproc

import (
	"context"
	"maps"
	"strconv"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// peerPatience ends a stream whose answer never comes, in the bubble's time.
const peerPatience = 2 * time.Hour

// filter is one ext_proc stream as Envoy has it.
type filter struct {
	r      *replica
	stream extprocv3.ExternalProcessor_ProcessClient
	cancel context.CancelFunc
	meta   map[string]string // what Envoy forwards of the namespace
}

// open begins a stream of a role.
func (r *replica) open(role string, meta map[string]string) *filter {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), peerPatience)
	ctx = metadata.AppendToOutgoingContext(ctx, names.Role, role, names.Render, r.policy.RenderHash)
	stream, err := extprocv3.NewExternalProcessorClient(r.conn).Process(ctx)
	if err != nil {
		r.Fatal(err)
	}
	return &filter{r: r, stream: stream, cancel: cancel, meta: meta}
}

func (p *filter) send(m *extprocv3.ProcessingRequest) {
	p.r.Helper()
	if p.meta != nil {
		fields := map[string]*structpb.Value{}
		for k, v := range p.meta {
			fields[k] = structpb.NewStringValue(v)
		}
		m.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{names.Namespace: {Fields: fields}}}
	}
	_ = p.stream.Send(m) // the service may be done with the stream
}

func (p *filter) requestHeaders(end bool, headers map[string]string) {
	p.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: httpHeaders(headers, end)}})
}

func (p *filter) responseHeaders(end bool, headers map[string]string) {
	p.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: httpHeaders(headers, end)}})
}

func (p *filter) requestBody(body string) {
	p.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true},
	}})
}

func (p *filter) responseBody(body string, end bool) {
	p.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: end},
	}})
}

// recv is the next answer, nil when the service closed the stream.
func (p *filter) recv() *extprocv3.ProcessingResponse {
	out, err := p.stream.Recv()
	if err != nil {
		return nil
	}
	return out
}

// silentFor reports whether no answer comes within d of the bubble's time.
func (p *filter) silentFor(d time.Duration) bool {
	got := make(chan struct{})
	go func() { defer close(got); p.recv() }()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-got:
		return false
	case <-timer.C:
		p.cancel()
		<-got
		return true
	}
}

// leave is the client that goes, once all that was sent is read: Envoy resets
// the stream.
func (p *filter) leave() {
	synctest.Wait()
	p.cancel()
	synctest.Wait()
}

func httpHeaders(headers map[string]string, end bool) *extprocv3.HttpHeaders {
	list := &corev3.HeaderMap{}
	for _, name := range sortedKeys(headers) {
		list.Headers = append(list.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(headers[name])})
	}
	return &extprocv3.HttpHeaders{Headers: list, EndOfStream: end}
}

// common is the mutation in an answer, nil when there is none.
func common(m *extprocv3.ProcessingResponse) *extprocv3.CommonResponse {
	switch {
	case m.GetRequestHeaders() != nil:
		return m.GetRequestHeaders().GetResponse()
	case m.GetRequestBody() != nil:
		return m.GetRequestBody().GetResponse()
	case m.GetResponseHeaders() != nil:
		return m.GetResponseHeaders().GetResponse()
	}
	return nil
}

// setHeaders are the headers that an answer sets, also an immediate one.
func setHeaders(m *extprocv3.ProcessingResponse) map[string]string {
	mutation := common(m).GetHeaderMutation()
	if i := m.GetImmediateResponse(); i != nil {
		mutation = i.GetHeaders()
	}
	out := map[string]string{}
	for _, h := range mutation.GetSetHeaders() {
		out[h.GetHeader().GetKey()] = string(h.GetHeader().GetRawValue())
	}
	return out
}

func removedHeaders(m *extprocv3.ProcessingResponse) []string {
	return common(m).GetHeaderMutation().GetRemoveHeaders()
}

// metaOf is the dynamic metadata of an answer.
func metaOf(m *extprocv3.ProcessingResponse) map[string]string {
	out := map[string]string{}
	for k, v := range m.GetDynamicMetadata().GetFields()[names.Namespace].GetStructValue().GetFields() {
		out[k] = v.GetStringValue()
	}
	return out
}

// envoy is one request as Envoy carries it: its header map, which all attempts
// share, its body and its metadata.
type envoy struct {
	*replica

	plan    *filter
	headers map[string]string
	meta    map[string]string
	body    string
	count   int // attempts that were sent
}

// clientHeadersOf are those of a client's POST, plus the given pairs.
func clientHeadersOf(path string, pairs ...string) map[string]string {
	h := map[string]string{
		":method": "POST", ":path": path, ":authority": "llm.example", ":scheme": "http",
		"content-type": "application/json", "user-agent": "client/1", "x-request-id": "rid", "cookie": "session=1",
	}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = pairs[i+1]
	}
	return h
}

const plainBody = `{"model":"claude-opus-5","max_tokens":100,"messages":[]}`
const streamBody = `{"model":"claude-opus-5","max_tokens":100,"stream":true,"messages":[]}`

// post sends a request as far as the plan's answer to its body, which must be
// a plan.
func (r *replica) post(body string, pairs ...string) *envoy {
	r.Helper()
	e, answer := r.ask(body, pairs...)
	if answer.GetRequestBody() == nil {
		r.Fatalf("want a plan, got %v", answer)
	}
	return e
}

// ask is post with any answer.
func (r *replica) ask(body string, pairs ...string) (*envoy, *extprocv3.ProcessingResponse) {
	r.Helper()
	e := &envoy{replica: r, plan: r.open(names.RolePlan, nil), headers: clientHeadersOf("/v1/messages", pairs...), meta: map[string]string{}, body: body}
	e.plan.requestHeaders(false, e.headers)
	first := e.plan.recv()
	if first.GetRequestHeaders() == nil {
		return e, first
	}
	e.plan.requestBody(body)
	answer := e.plan.recv()
	if e.apply(answer); e.headers[names.Prepared] != "" {
		e.count = 1
	}
	return e, answer
}

// apply does to the request what an answer says, as Envoy does.
func (e *envoy) apply(m *extprocv3.ProcessingResponse) {
	for _, name := range removedHeaders(m) {
		delete(e.headers, name)
	}
	if common(m) != nil {
		maps.Copy(e.headers, setHeaders(m))
	}
	maps.Copy(e.meta, metaOf(m))
}

// attempt asks a replica for the next attempt and gives the body when it wants
// it.
func (e *envoy) attempt(at *replica) *extprocv3.ProcessingResponse {
	e.Helper()
	p := at.open(names.RoleAttempt, maps.Clone(e.meta))
	defer p.cancel()
	e.count++
	headers := maps.Clone(e.headers)
	headers[names.EnvoyAttemptCount] = strconv.Itoa(e.count)
	p.requestHeaders(false, headers)
	m := p.recv()
	if m.GetModeOverride() != nil {
		p.requestBody(e.body)
		m = p.recv()
	}
	e.apply(m)
	return m
}

// judge opens a judge stream for the attempt that runs.
func (e *envoy) judge(at *replica, end bool, headers map[string]string) *filter {
	e.Helper()
	p := at.open(names.RoleJudge, maps.Clone(e.meta))
	p.responseHeaders(end, headers)
	return p
}

// judged is a judge's answer to an error; wait is over when it comes.
func (e *envoy) judged(at *replica, headers map[string]string, body string) *extprocv3.ProcessingResponse {
	e.Helper()
	p := e.judge(at, body == "", headers)
	defer p.cancel()
	if body != "" {
		p.responseBody(body, true)
	}
	m := p.recv()
	e.apply(&extprocv3.ProcessingResponse{DynamicMetadata: m.GetDynamicMetadata()})
	return m
}

// final sends the response headers to the plan.
func (e *envoy) final(headers map[string]string) *extprocv3.ProcessingResponse {
	e.Helper()
	e.plan.meta = maps.Clone(e.meta)
	e.plan.responseHeaders(false, headers)
	return e.plan.recv()
}

// from is an answer that a platform gave.
func from(status int, contentType string, pairs ...string) map[string]string {
	h := map[string]string{":status": strconv.Itoa(status), "content-type": contentType, names.Local: "-;via_upstream"}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = pairs[i+1]
	}
	return h
}

// local is an answer that Envoy made in a platform's place.
func local(status int, flags string) map[string]string {
	return map[string]string{":status": strconv.Itoa(status), "content-type": "text/plain", names.Local: flags}
}

const overloadedBody = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`

func retries(m *extprocv3.ProcessingResponse) bool { return setHeaders(m)[names.Retry] == "1" }
