package wire

import (
	"bytes"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// plain is what a request says, free of buffers, for comparison.
type plain struct {
	Kind        Kind
	Headers     [][2]string
	EndOfStream bool
	Body        string
	State       map[string]string
}

func plainOfStock(m *extprocv3.ProcessingRequest) plain {
	p := plain{State: map[string]string{}}
	headers := func(h *corev3.HeaderMap) {
		for _, v := range h.GetHeaders() {
			value := string(v.GetRawValue())
			if value == "" {
				value = v.GetValue()
			}
			p.Headers = append(p.Headers, [2]string{v.GetKey(), value})
		}
	}
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		p.Kind, p.EndOfStream = KindRequestHeaders, r.RequestHeaders.GetEndOfStream()
		headers(r.RequestHeaders.GetHeaders())
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		p.Kind, p.EndOfStream = KindResponseHeaders, r.ResponseHeaders.GetEndOfStream()
		headers(r.ResponseHeaders.GetHeaders())
	case *extprocv3.ProcessingRequest_RequestBody:
		p.Kind, p.EndOfStream = KindRequestBody, r.RequestBody.GetEndOfStream()
		p.Body = string(r.RequestBody.GetBody())
	case *extprocv3.ProcessingRequest_ResponseBody:
		p.Kind, p.EndOfStream = KindResponseBody, r.ResponseBody.GetEndOfStream()
		p.Body = string(r.ResponseBody.GetBody())
	case *extprocv3.ProcessingRequest_RequestTrailers:
		p.Kind = KindRequestTrailers
		headers(r.RequestTrailers.GetTrailers())
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		p.Kind = KindResponseTrailers
		headers(r.ResponseTrailers.GetTrailers())
	}
	for name, v := range m.GetMetadataContext().GetFilterMetadata()["crossdoor"].GetFields() {
		if s, ok := v.GetKind().(*structpb.Value_StringValue); ok {
			p.State[name] = s.StringValue
		}
	}
	return p
}

func plainOf(r *Request) plain {
	p := plain{Kind: r.Kind, EndOfStream: r.EndOfStream, Body: string(r.Body.Bytes()), State: map[string]string{}}
	for _, h := range r.Headers {
		p.Headers = append(p.Headers, [2]string{string(h.Name), string(h.Value)})
	}
	for _, h := range r.State {
		p.State[string(h.Name)] = string(h.Value)
	}
	return p
}

// differ reads raw with both codecs and returns how they differ.
func differ(t *testing.T, r *Request, raw []byte) string {
	t.Helper()
	var stockMessage extprocv3.ProcessingRequest
	stockErr := proto.Unmarshal(raw, &stockMessage)
	half := len(raw) / 2 // several buffers, as from gRPC
	err := Codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw[:half]), mem.SliceBuffer(raw[half:])}, r)
	if (err == nil) != (stockErr == nil) {
		return cmp.Diff(stockErr, err, cmp.Transformer("text", func(e error) string { return e.Error() }))
	}
	if err != nil {
		if diff := cmp.Diff(plain{State: map[string]string{}}, plainOf(r)); diff != "" {
			return "not empty after an error: " + diff
		}
		return ""
	}
	if r.Kind.isBody() && r.Body == nil {
		return "a body message without Body"
	}
	return cmp.Diff(plainOfStock(&stockMessage), plainOf(r))
}

func wantLive(t *testing.T, want int64) {
	t.Helper()
	if got := Live(); got != want {
		t.Errorf("live buffers: %d, want %d", got, want)
	}
}

func TestRequestAsGenerated(t *testing.T) {
	var r Request
	for name, raw := range requestCases() {
		t.Run(name, func(t *testing.T) {
			if diff := differ(t, &r, raw); diff != "" {
				t.Errorf("generated type (-), ours (+): %s", diff)
			}
		})
	}
	r.Release()
	wantLive(t, 0)
}

// TestRequestDamaged cuts each message at every byte and damages each byte.
func TestRequestDamaged(t *testing.T) {
	var r Request
	for name, raw := range requestCases() {
		if len(raw) > 500 {
			continue
		}
		for i := range raw {
			for _, mask := range []byte{0xff, 0x80, 0x01, 0x08} {
				b := bytes.Clone(raw)
				b[i] ^= mask
				if diff := differ(t, &r, b); diff != "" {
					t.Fatalf("%s, byte %d xor %#x: %s", name, i, mask, diff)
				}
			}
			if diff := differ(t, &r, raw[:i]); diff != "" {
				t.Fatalf("%s, cut at %d: %s", name, i, diff)
			}
		}
	}
	r.Release()
	wantLive(t, 0)
}

func FuzzRequest(f *testing.F) {
	for _, raw := range requestCases() {
		if len(raw) < 1<<10 {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r Request
		if diff := differ(t, &r, raw); diff != "" {
			t.Errorf("generated type (-), ours (+): %s", diff)
		}
		r.Release()
		wantLive(t, 0)
	})
}

func TestRequestReused(t *testing.T) {
	var r Request
	read := func(m proto.Message) {
		t.Helper()
		if err := (Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(encoded(m))}, &r); err != nil {
			t.Fatal(err)
		}
	}
	read(sample())
	if v, ok := r.Header(":path"); !ok || string(v) != "/v1/messages" {
		t.Errorf(":path is %q, %v", v, ok)
	}
	if _, ok := r.Header("Path"); ok {
		t.Error("a header that was not sent is found")
	}
	if got := r.Meta("id"); got != "01J" {
		t.Errorf("state id is %q", got)
	}
	if got := r.Meta("n"); got != "" {
		t.Errorf("a number is taken for a string: %q", got)
	}

	read(sampleBody(50000))
	wantLive(t, 1)
	body := r.TakeBody()
	if n := cap(body.Bytes()); n != 50000 {
		t.Errorf("an append to the body could overwrite the state: capacity %d", n)
	}
	if again := r.TakeBody(); again != nil {
		t.Error("the body can be taken twice")
	}
	if len(r.Headers) != 0 || r.Meta("node") != "10.0.0.1:9000" {
		t.Errorf("after the body: headers %v, node %q", r.Headers, r.Meta("node"))
	}
	read(sample())
	wantLive(t, 2)
	if got := string(body.Bytes()); got != string(bytes.Repeat([]byte("b"), 50000)) {
		t.Error("the taken body changed with the next message")
	}
	r.Release()
	r.Release()
	wantLive(t, 1)
	body.Free()
	wantLive(t, 0)
	if r.Kind != KindNone || len(r.Headers)+len(r.State) != 0 {
		t.Errorf("not empty after Release: %+v", r)
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{KindNone: "none", KindResponseBody: "response body", KindImmediate: "immediate response", 99: "unknown"} {
		if got := k.String(); got != want {
			t.Errorf("Kind(%d) is %q, want %q", k, got, want)
		}
	}
}
