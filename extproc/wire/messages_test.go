package wire

import (
	"bytes"
	"maps"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

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

// text is the value of a map entry: a Value with a string.
func text(s string) []byte { return field(2, field(3, []byte(s))) }

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
	cases := phaseCases()
	maps.Copy(cases, wireCases())
	maps.Copy(cases, metadataCases())
	maps.Copy(cases, depthCases())
	return cases
}

// phaseCases: the six phases, and what merges or replaces what.
func phaseCases() map[string][]byte {
	trailers := &extprocv3.HttpTrailers{Trailers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: "grpc-status", RawValue: []byte("0")}}}}
	return map[string][]byte{
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
		"request trailers":          encoded(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestTrailers{RequestTrailers: trailers}}),
		"response trailers":         encoded(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: trailers}}),
		"end of stream taken back":  field(3, number(3, 1), number(3, 0)),
		"end of stream 2":           field(3, number(3, 2)),
		"end of stream, fixed64":    field(3, fixed64(3)),
		"headers merged in one":     field(2, field(1, header("a", "1", "")), field(1, header("b", "", "2"))),
		"headers merged in two":     join(field(2, field(1, header("a", "1", "")), number(3, 1)), field(2, field(1, header("b", "", "2")))),
		"oneof: last wins":          join(field(2, field(1, header("a", "1", ""))), field(4, field(1, []byte("x")), number(2, 1))),
		"oneof: there and back":     join(field(2, field(1, header("a", "1", ""))), field(4), field(2, field(1, header("b", "2", "")))),
		"oneof: wrong type is none": join(field(2, field(1, header("a", "1", ""))), number(4, 1)),
		"oneof: loser invalid":      join(field(2, field(1, header("a\xff", "1", ""))), field(4)),
		"raw wins over value":       field(2, field(1, header("a", "value", "raw"))),
		"header twice inside":       field(2, field(1, field(1, field(1, []byte("a")), field(1, []byte("b")), field(3, []byte("x")), field(3)))),
		"name not UTF-8":            field(2, field(1, header("a\xff", "", "x"))),
		"value not UTF-8":           field(2, field(1, header("a", "\xc0\x80", "x"))),
		"raw not UTF-8":             field(2, field(1, header("a", "", "\xff"))),
	}
}

// wireCases: unknown fields, and bytes that are no protobuf.
func wireCases() map[string][]byte {
	return map[string][]byte{
		"unknown fields":         join(field(100, []byte("x")), number(101, 5), fixed64(102), field(2, field(99, []byte("y")))),
		"unknown group":          {0xa3, 0x06, 0x08, 0x01, 0xa4, 0x06},
		"group unended":          {0xa3, 0x06, 0x08, 0x01},
		"group ended by another": {0xa3, 0x06, 0xac, 0x06},
		"end group alone":        {0xa4, 0x06},
		"known field as group":   {0x13, 0x08, 0x01, 0x14},
		"field 0":                {0x02, 0x00},
		"field too large":        protowire.AppendVarint(nil, (1<<29)<<3|2),
		"wire type 6":            {0x16},
		"wire type 7":            {0x17},
		"tag overflows":          bytes.Repeat([]byte{0xff}, 11),
		"tag not minimal":        {0xa2, 0x80, 0x00, 0x00},
		"length beyond the end":  {0x22, 0x05, 0x0a},
		"length overflows":       append([]byte{0x22}, bytes.Repeat([]byte{0xff}, 10)...),
	}
}

// metadataCases: the state, and what is checked and let go.
func metadataCases() map[string][]byte {
	return map[string][]byte{
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
	}
}

// depthCases: the very level at which both give up, for each member that nests.
func depthCases() map[string][]byte {
	cases := map[string][]byte{
		"deep enough": stateOf("other", stateField("a", field(2, deepValue(4000)))),
		"too deep":    stateOf("other", stateField("a", field(2, deepValue(5001)))),
	}
	for _, levels := range []int{4995, 4996, 4997, 4998} {
		v := field(2, deepValue(levels))
		cases["depth in the state "+strconv.Itoa(levels)] = stateOf("crossdoor", stateField("a", v))
		cases["depth in attributes "+strconv.Itoa(levels)] = field(9, field(2, stateField("a", v)))
		cases["depth in headers' attributes "+strconv.Itoa(levels)] = field(2, field(2, field(2, stateField("a", v))))
	}
	return cases
}
