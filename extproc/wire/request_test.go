package wire

import (
	"bytes"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
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

func encoded(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// field is a length-delimited field.
func field(num protowire.Number, contents ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), join(contents...))
}

func number(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func fixed64(num protowire.Number) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), 7)
}

func header(name, value, raw string) []byte {
	return field(1, field(1, []byte(name)), field(2, []byte(value)), field(3, []byte(raw)))
}

// stateOf is a metadata_context with one filter_metadata entry for the key and
// the given contents of its Struct.
func stateOf(key string, contents ...[]byte) []byte {
	return field(8, field(1, field(1, []byte(key)), field(2, contents...)))
}

func stateField(name string, values ...[]byte) []byte {
	return field(1, join(field(1, []byte(name)), join(values...)))
}

// deepValue is a Value that nests `levels` lists.
func deepValue(levels int) []byte {
	v := []byte{}
	for range levels {
		v = field(6, field(1, v))
	}
	return v
}

// sample is a message as Envoy sends it.
func sample() *extprocv3.ProcessingRequest {
	state, _ := structpb.NewStruct(map[string]any{"id": "01J", "node": "10.0.0.1:9000", "n": 3.0, "list": []any{"a", true, nil}})
	other, _ := structpb.NewStruct(map[string]any{"deep": map[string]any{"er": "x"}})
	any1, _ := anypb.New(state)
	return &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
				{Key: ":method", RawValue: []byte("POST")}, {Key: ":path", RawValue: []byte("/v1/messages")},
				{Key: "x-raw", RawValue: []byte("\xff\x00")}, {Key: "x-value", Value: "text"}, {Key: "x-empty"},
			}},
			EndOfStream: true,
		}},
		MetadataContext: &corev3.Metadata{
			FilterMetadata:      map[string]*structpb.Struct{"crossdoor": state, "other": other},
			TypedFilterMetadata: map[string]*anypb.Any{"typed": any1},
		},
		Attributes:     map[string]*structpb.Struct{"attr": other},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{SendBodyWithoutWaitingForHeaderResponse: true},
	}
}

func sampleBody(n int) *extprocv3.ProcessingRequest {
	m := sample()
	m.Request = &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{
		Body: bytes.Repeat([]byte("b"), n), EndOfStream: true,
	}}
	return m
}

// requestCases are valid and invalid messages by name.
func requestCases() map[string][]byte {
	trailers := &extprocv3.HttpTrailers{Trailers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: "grpc-status", RawValue: []byte("0")}}}}
	text := func(s string) []byte { return field(2, field(3, []byte(s))) }
	cases := map[string][]byte{
		"empty":                   {},
		"headers as Envoy sends":  encoded(sample()),
		"body":                    encoded(sampleBody(100)),
		"body, empty":             field(4),
		"body before the state":   join(field(4, number(2, 1), field(1, []byte("x"))), stateOf("crossdoor", stateField("id", text("1")))),
		"state before the body":   join(stateOf("crossdoor", stateField("id", text("1"))), field(4, field(1, []byte("x")))),
		"body twice, last wins":   field(5, field(1, []byte("one")), field(1, []byte("two"))),
		"body cleared by a later": field(5, field(1, []byte("one")), field(1)),
		"body field of wrong type": field(4, field(1, []byte("kept")),
			number(1, 3)),
		"request trailers":            encoded(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{RequestTrailers: trailers}}),
		"response trailers":           encoded(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: trailers}}),
		"end of stream taken back":    field(3, number(3, 1), number(3, 0)),
		"end of stream 2":             field(3, number(3, 2)),
		"end of stream, fixed64":      field(3, fixed64(3)),
		"headers merged in one":       field(2, field(1, header("a", "1", "")), field(1, header("b", "", "2"))),
		"headers merged in two":       join(field(2, field(1, header("a", "1", "")), number(3, 1)), field(2, field(1, header("b", "", "2")))),
		"oneof: last wins":            join(field(2, field(1, header("a", "1", ""))), field(4, field(1, []byte("x")), number(2, 1))),
		"oneof: there and back":       join(field(2, field(1, header("a", "1", ""))), field(4), field(2, field(1, header("b", "2", "")))),
		"oneof: wrong type is none":   join(field(2, field(1, header("a", "1", ""))), number(4, 1)),
		"oneof: loser invalid":        join(field(2, field(1, header("a\xff", "1", ""))), field(4)),
		"raw wins over value":         field(2, field(1, header("a", "value", "raw"))),
		"header twice inside":         field(2, field(1, field(1, field(1, []byte("a")), field(1, []byte("b")), field(3, []byte("x")), field(3)))),
		"name not UTF-8":              field(2, field(1, header("a\xff", "", "x"))),
		"value not UTF-8":             field(2, field(1, header("a", "\xc0\x80", "x"))),
		"raw not UTF-8":               field(2, field(1, header("a", "", "\xff"))),
		"unknown fields":              join(field(100, []byte("x")), number(101, 5), fixed64(102), field(2, field(99, []byte("y")))),
		"unknown group":               {0xa3, 0x06, 0x08, 0x01, 0xa4, 0x06},
		"group unended":               {0xa3, 0x06, 0x08, 0x01},
		"group ended by another":      {0xa3, 0x06, 0xac, 0x06},
		"end group alone":             {0xa4, 0x06},
		"known field as group":        {0x13, 0x08, 0x01, 0x14},
		"field 0":                     {0x02, 0x00},
		"field too large":             protowire.AppendVarint(nil, (1<<29)<<3|2),
		"wire type 6":                 {0x16},
		"wire type 7":                 {0x17},
		"tag overflows":               bytes.Repeat([]byte{0xff}, 11),
		"tag not minimal":             {0xa2, 0x80, 0x00, 0x00},
		"length beyond the end":       {0x22, 0x05, 0x0a},
		"length overflows":            append([]byte{0x22}, bytes.Repeat([]byte{0xff}, 10)...),
		"state replaced by a later":   join(stateOf("crossdoor", stateField("a", text("1"))), stateOf("crossdoor", stateField("b", text("2")))),
		"state emptied by a later":    join(stateOf("crossdoor", stateField("a", text("1"))), stateOf("crossdoor")),
		"state of others":             stateOf("other", stateField("a", text("1"))),
		"state: key after value":      field(8, field(1, field(2, stateField("a", text("1"))), field(1, []byte("crossdoor")))),
		"state: key twice":            field(8, field(1, field(1, []byte("crossdoor")), field(2, stateField("a", text("1"))), field(1, []byte("x")))),
		"state: structs merged":       field(8, field(1, field(1, []byte("crossdoor")), field(2, stateField("a", text("1"))), field(2, stateField("b", text("2"))))),
		"state: name twice":           stateOf("crossdoor", stateField("a", text("1")), stateField("a", text("2"))),
		"state: string, then number":  stateOf("crossdoor", stateField("b", text("0")), stateField("a", text("1")), stateField("a", field(2, fixed64(2)))),
		"state: number, then string":  stateOf("crossdoor", stateField("a", field(2, fixed64(2))), stateField("a", text("1"))),
		"state: no value":             stateOf("crossdoor", stateField("a")),
		"state: no name":              stateOf("crossdoor", field(1, text("1"))),
		"state: values merged":        stateOf("crossdoor", stateField("a", text("1"), field(2))),
		"state: values merged, other": stateOf("crossdoor", stateField("a", text("1"), field(2, number(4, 1)))),
		"state: number, wrong type":   stateOf("crossdoor", stateField("a", text("1"), field(2, number(2, 1)))),
		"state: null":                 stateOf("crossdoor", stateField("a", field(2, field(3, []byte("x")), number(1, 0)))),
		"state: struct":               stateOf("crossdoor", stateField("a", field(2, field(3, []byte("x")), field(5)))),
		"state: list":                 stateOf("crossdoor", stateField("a", field(2, field(3, []byte("x")), field(6)))),
		"state: not UTF-8":            stateOf("crossdoor", stateField("a", text("\xff"))),
		"state: name not UTF-8":       stateOf("crossdoor", stateField("\xff", text("1"))),
		"state: namespace not UTF-8":  stateOf("\xff"),
		"attributes not UTF-8":        field(9, field(1, []byte("\xff"))),
		"attributes of headers":       field(2, field(2, field(1, []byte("a")), field(2, stateField("b", text("\xff"))))),
		"typed metadata not UTF-8":    field(8, field(2, field(2, field(1, []byte("\xff"))))),
		"typed metadata value":        field(8, field(2, field(2, field(2, []byte("\xff"))))),
		"protocol config truncated":   field(11, []byte{0x08}),
		"flow control":                join(field(12, number(1, 5)), field(13, number(2, 1<<63)), number(10, 1)),
		"deep enough":                 stateOf("other", stateField("a", field(2, deepValue(4000)))),
		"too deep":                    stateOf("other", stateField("a", field(2, deepValue(5001)))),
	}
	// The very level at which both give up, for each member that can nest.
	for _, levels := range []int{4995, 4996, 4997, 4998} {
		v := field(2, deepValue(levels))
		cases["depth in the state "+string(rune('a'+levels-4995))] = stateOf("crossdoor", stateField("a", v))
		cases["depth in attributes "+string(rune('a'+levels-4995))] = field(9, field(2, stateField("a", v)))
		cases["depth in headers' attributes "+string(rune('a'+levels-4995))] = field(2, field(2, field(2, stateField("a", v))))
	}
	return cases
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
		if len(raw) > 700 {
			continue
		}
		for i := range raw {
			for _, mask := range []byte{0xff, 0x80, 0x01, 0x04, 0x08} {
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
