package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	procv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
)

func bufferOf(s string) *Buffer {
	b := NewBuffer(len(s))
	copy(b.Bytes(), s)
	return b
}

// bytesOf encodes m and gives back what encoding took, as gRPC would.
func bytesOf(m *Response) ([]byte, error) {
	parts, err := Codec{}.Marshal(m)
	if err != nil {
		return nil, err
	}
	defer parts.Free()
	return parts.Materialize(), nil
}

// stockOf says the same as m in the generated type.
func stockOf(m *Response) *extprocv3.ProcessingResponse {
	out := &extprocv3.ProcessingResponse{}
	if len(m.Meta) > 0 {
		inner := &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for _, f := range m.Meta {
			inner.Fields[f.Name] = structpb.NewStringValue(f.Value)
		}
		out.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{"crossdoor": structpb.NewStructValue(inner)}}
	}
	if m.AskBody {
		out.ModeOverride = &procv3.ProcessingMode{
			RequestHeaderMode: procv3.ProcessingMode_SEND, ResponseHeaderMode: procv3.ProcessingMode_SKIP,
			RequestBodyMode: procv3.ProcessingMode_BUFFERED, ResponseBodyMode: procv3.ProcessingMode_NONE,
		}
	}
	common := commonOf(m)
	trailers := &extprocv3.TrailersResponse{HeaderMutation: mutationOf(m.Set, m.Remove)}
	switch m.Kind {
	case KindRequestHeaders:
		out.Response = &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{Response: common}}
	case KindResponseHeaders:
		out.Response = &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{Response: common}}
	case KindRequestBody:
		out.Response = &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{Response: common}}
	case KindResponseBody:
		out.Response = &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: &extprocv3.BodyResponse{Response: common}}
	case KindRequestTrailers:
		out.Response = &extprocv3.ProcessingResponse_RequestTrailers{RequestTrailers: trailers}
	case KindResponseTrailers:
		out.Response = &extprocv3.ProcessingResponse_ResponseTrailers{ResponseTrailers: trailers}
	case KindImmediate:
		out.Response = &extprocv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extprocv3.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(m.Immediate.Status)},
			Headers: mutationOf(m.Immediate.Headers, nil), Body: m.Immediate.Body, Details: m.Immediate.Details,
		}}
	}
	return out
}

func mutationOf(set []HeaderField, remove []string) *extprocv3.HeaderMutation {
	if len(set)+len(remove) == 0 {
		return nil
	}
	out := &extprocv3.HeaderMutation{RemoveHeaders: remove}
	for _, f := range set {
		o := &corev3.HeaderValueOption{
			Header:         &corev3.HeaderValue{Key: f.Name, RawValue: []byte(f.Value)},
			AppendAction:   corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			KeepEmptyValue: f.Value == "",
		}
		out.SetHeaders = append(out.SetHeaders, o)
	}
	return out
}

func commonOf(m *Response) *extprocv3.CommonResponse {
	c := &extprocv3.CommonResponse{HeaderMutation: mutationOf(m.Set, m.Remove), ClearRouteCache: m.ClearRouteCache}
	if m.Replace {
		c.Status = extprocv3.CommonResponse_CONTINUE_AND_REPLACE
	}
	switch {
	case m.ClearBody:
		c.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_ClearBody{ClearBody: true}}
	case m.Body != nil || m.HasBody:
		c.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: m.Body.Bytes()}}
	}
	if proto.Size(c) == 0 {
		return nil
	}
	return c
}

// compareResponse encodes m, decodes it with the generated type and compares.
func compareResponse(t *testing.T, m *Response) {
	t.Helper()
	raw, err := bytesOf(m)
	if err != nil {
		t.Fatal(err)
	}
	var got extprocv3.ProcessingResponse
	if err := proto.Unmarshal(raw, &got); err != nil {
		t.Fatalf("our bytes are refused: %v", err)
	}
	if len(got.ProtoReflect().GetUnknown()) != 0 {
		t.Error("unknown fields in our bytes")
	}
	want := stockOf(m)
	if !proto.Equal(want, &got) {
		t.Errorf("meant (-), decoded (+): %s", cmp.Diff(want, &got, protocmp.Transform()))
	}
	if len(raw) != proto.Size(&got) {
		t.Errorf("%d bytes, the generated type needs %d", len(raw), proto.Size(&got))
	}
}

func TestResponseAsGenerated(t *testing.T) {
	set := []HeaderField{{"x-crossdoor-id", "01J"}, {"authorization", "Bearer \xff"}, {"x-empty", ""}}
	long := strings.Repeat("v", 20000)
	cases := map[string]Response{
		"continue, request headers":   {Kind: KindRequestHeaders},
		"continue, response headers":  {Kind: KindResponseHeaders},
		"continue, request body":      {Kind: KindRequestBody},
		"continue, response body":     {Kind: KindResponseBody},
		"continue, request trailers":  {Kind: KindRequestTrailers},
		"continue, response trailers": {Kind: KindResponseTrailers},
		"set":                         {Kind: KindRequestHeaders, Set: set},
		"set, long":                   {Kind: KindRequestHeaders, Set: []HeaderField{{"x", long}}},
		"remove":                      {Kind: KindRequestHeaders, Remove: []string{"cookie", "x-api-key"}},
		"set and remove, plan":        {Kind: KindRequestBody, Set: set, Remove: []string{"cookie"}, Meta: []HeaderField{{"id", "1"}, {"state", long}, {"none", ""}}},
		"trailers set":                {Kind: KindResponseTrailers, Set: set, Remove: []string{"x"}},
		"route cache":                 {Kind: KindRequestHeaders, ClearRouteCache: true},
		"route cache, body":           {Kind: KindRequestBody, ClearRouteCache: true},
		"ask for the body":            {Kind: KindRequestHeaders, AskBody: true},
		"ask with headers and state":  {Kind: KindRequestHeaders, AskBody: true, Set: set, Meta: []HeaderField{{"id", "1"}}},
		"replace, small":              {Kind: KindRequestHeaders, Replace: true, Body: bufferOf("hello"), Set: set},
		"replace, in place":           {Kind: KindRequestHeaders, Replace: true, Body: bufferOf(long), Set: set, ClearRouteCache: true, Meta: set[:1]},
		"replace, empty":              {Kind: KindRequestHeaders, Replace: true, HasBody: true},
		"replace, empty buffer":       {Kind: KindRequestHeaders, Replace: true, Body: bufferOf("")},
		"replace, at the border":      {Kind: KindRequestHeaders, Replace: true, Body: bufferOf(long[:inPlace])},
		"replace, over the border":    {Kind: KindRequestHeaders, Replace: true, Body: bufferOf(long[:inPlace+1])},
		"body, small":                 {Kind: KindResponseBody, Body: bufferOf("event: x\n\n")},
		"body, in place":              {Kind: KindResponseBody, Body: bufferOf(long), HasBody: true},
		"body, empty":                 {Kind: KindResponseBody, HasBody: true},
		"clear body":                  {Kind: KindResponseBody, ClearBody: true},
		"immediate":                   {Kind: KindImmediate, Immediate: &Immediate{Status: 529, Headers: set, Body: []byte(`{"type":"error"}`), Details: "crossdoor_no_target"}},
		"immediate, bare":             {Kind: KindImmediate, Immediate: &Immediate{Status: 200}},
		"immediate, large, state":     {Kind: KindImmediate, Immediate: &Immediate{Status: 599, Body: []byte(long)}, Meta: set[:1]},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			compareResponse(t, &m)
			m.Reset()
		})
	}
	wantLive(t, 0)
}

func TestResponseRefused(t *testing.T) {
	freed := bufferOf("x")
	freed.Free()
	one := []HeaderField{{"a", "b"}}
	cases := map[string]Response{
		"no kind":                  {},
		"unknown kind":             {Kind: KindImmediate + 1},
		"replace in a body answer": {Kind: KindRequestBody, Replace: true, HasBody: true},
		"replace without a body":   {Kind: KindRequestHeaders, Replace: true},
		"body without replace":     {Kind: KindRequestHeaders, Body: bufferOf("x")},
		"body for trailers":        {Kind: KindRequestTrailers, HasBody: true},
		"body and clear":           {Kind: KindRequestBody, Body: bufferOf("x"), ClearBody: true},
		"freed body":               {Kind: KindRequestBody, Body: freed},
		"ask from a body":          {Kind: KindRequestBody, AskBody: true},
		"route cache, trailers":    {Kind: KindRequestTrailers, ClearRouteCache: true},
		"immediate without":        {Kind: KindImmediate},
		"immediate beside":         {Kind: KindRequestBody, Immediate: &Immediate{Status: 400}},
		"immediate with set":       {Kind: KindImmediate, Immediate: &Immediate{Status: 400}, Set: one},
		"status 100":               {Kind: KindImmediate, Immediate: &Immediate{Status: 100}},
		"status 600":               {Kind: KindImmediate, Immediate: &Immediate{Status: 600}},
		"set name":                 {Kind: KindRequestHeaders, Set: []HeaderField{{"\xff", ""}}},
		"set without name":         {Kind: KindRequestHeaders, Set: []HeaderField{{"", "x"}}},
		"remove name":              {Kind: KindRequestHeaders, Remove: []string{"\xff"}},
		"state name":               {Kind: KindRequestHeaders, Meta: []HeaderField{{"\xff", ""}}},
		"state value":              {Kind: KindRequestHeaders, Meta: []HeaderField{{"a", "\xff"}}},
		"immediate header":         {Kind: KindImmediate, Immediate: &Immediate{Status: 400, Headers: []HeaderField{{"\xff", ""}}}},
		"immediate details":        {Kind: KindImmediate, Immediate: &Immediate{Status: 400, Details: "\xff"}},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := (Codec{}).Marshal(&m); !errors.Is(err, ErrResponse) {
				t.Errorf("error is %v, want ErrResponse", err)
			}
			m.Reset()
		})
	}
	wantLive(t, 0)
}

func FuzzResponse(f *testing.F) {
	f.Add(uint8(1), "a", "b", "c", []byte("body"), uint16(0), 200)
	f.Add(uint8(1), "x-crossdoor-id", "01J", "cookie", bytes.Repeat([]byte("b"), 9000), uint16(0xffff), 529)
	f.Add(uint8(3), "", "", "", []byte{}, uint16(5), 0)
	f.Add(uint8(5), "a", "\xff", "c", []byte{}, uint16(3), 0)
	f.Add(uint8(7), "a", "b", "d", []byte("{}"), uint16(8), 503)
	f.Fuzz(func(t *testing.T, kind uint8, name, value, other string, body []byte, bits uint16, status int) {
		m := fuzzedResponse(kind, name, value, other, body, bits, status)
		if _, err := bytesOf(m); err == nil {
			compareResponse(t, m)
		} else if !errors.Is(err, ErrResponse) || name != "" && other != "" && utf8.ValidString(name+" "+value+" "+other) && plausible(m) {
			t.Errorf("refused: %v", err)
		}
		m.Reset()
		wantLive(t, 0)
	})
}

func fuzzedResponse(kind uint8, name, value, other string, body []byte, bits uint16, status int) *Response {
	has := func(i int) bool { return bits>>i&1 == 1 }
	m := &Response{Kind: Kind(kind), Replace: has(4), HasBody: has(5), ClearBody: has(6), AskBody: has(7), ClearRouteCache: has(8)}
	if has(0) {
		m.Set = []HeaderField{{name, value}, {other, name}}
	}
	if has(1) {
		m.Remove = []string{other, name}
	}
	if has(2) {
		m.Meta = []HeaderField{{name, value}, {name + "2", other}}
	}
	if has(3) {
		m.Body = bufferOf(string(body))
	}
	if has(9) || m.Kind == KindImmediate {
		m.Immediate = &Immediate{Status: status, Headers: m.Set, Body: body, Details: other}
		m.Set, m.Remove = nil, nil
	}
	return m
}

// plausible is the part of the rules that the fuzz test states once more.
func plausible(m *Response) bool {
	if m.Kind == KindNone || m.Kind > KindImmediate || m.ClearBody && (m.Body != nil || m.HasBody) {
		return false
	}
	if m.Kind == KindImmediate {
		return m.Immediate.Status >= 200 && m.Immediate.Status < 600 && !m.mutatesBody() && !m.Replace && !m.AskBody && !m.ClearRouteCache
	}
	headers := m.Kind == KindRequestHeaders || m.Kind == KindResponseHeaders
	body := m.Kind == KindRequestBody || m.Kind == KindResponseBody
	return m.Immediate == nil && (headers || !m.Replace && !m.AskBody) && (headers || body || !m.ClearRouteCache) &&
		(m.Replace == m.mutatesBody() || body)
}
