package wire

import (
	"maps"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accesslogdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// sampleLogs is a message with n entries as Envoy sends them.
func sampleLogs(n int) *accesslogv3.StreamAccessLogsMessage {
	entries := make([]*accesslogdatav3.HTTPAccessLogEntry, n)
	for i := range entries {
		entries[i] = sampleLog()
	}
	node, _ := structpb.NewStruct(map[string]any{"role": "sidecar"})
	return &accesslogv3.StreamAccessLogsMessage{
		Identifier: &accesslogv3.StreamAccessLogsMessage_Identifier{LogName: "exchange", Node: &corev3.Node{
			Id: "node", Cluster: "cluster", Metadata: node, UserAgentName: "envoy", ClientFeatures: []string{"a", "b"},
			Extensions: []*corev3.Extension{{Name: "envoy.filters.http.ext_proc", Category: "envoy.filters.http", TypeUrls: []string{"x", "y"}}},
		}},
		LogEntries: &accesslogv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: &accesslogv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: entries}},
	}
}

func sampleLog() *accesslogdatav3.HTTPAccessLogEntry {
	state, _ := structpb.NewStruct(map[string]any{
		"id": "01JAZ4M4S7J9V3T2F9K0QZ8W6X", "node": "10.0.0.1:9000", "attempt": "1", "target": "crossdoor-target-primary",
		"state": `{"route":"main","model":"claude-sonnet","attempts":[{"target":"primary","key":0}]}`,
	})
	tail, _ := structpb.NewStruct(map[string]any{"text": `event: message_delta data: {"delta":{"stop_reason":"end_turn"}}`, "bytes": 4711.0})
	object, _ := anypb.New(state)
	span := func(ms int64) *durationpb.Duration { return durationpb.New(time.Duration(ms) * time.Millisecond) }
	address := func(port uint32) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}}
	}
	return &accesslogdatav3.HTTPAccessLogEntry{
		CommonProperties: &accesslogdatav3.AccessLogCommon{
			DownstreamRemoteAddress: address(40000), DownstreamLocalAddress: address(10000), DownstreamDirectRemoteAddress: address(40000),
			UpstreamRemoteAddress: address(443), UpstreamLocalAddress: address(50000), UpstreamCluster: "crossdoor-target-primary",
			StartTime: &timestamppb.Timestamp{Seconds: 1760000000, Nanos: 123456789}, TimeToLastRxByte: span(1), TimeToFirstUpstreamTxByte: span(2),
			TimeToLastUpstreamTxByte: span(3), TimeToFirstUpstreamRxByte: span(200), TimeToLastUpstreamRxByte: span(900),
			TimeToFirstDownstreamTxByte: span(201), TimeToLastDownstreamTxByte: span(901), Duration: span(902),
			ResponseFlags: &accesslogdatav3.ResponseFlags{UpstreamRemoteReset: true},
			Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
				"crossdoor": state, "crossdoor.tail": tail, "envoy.filters.http.ext_proc": {},
			}},
			FilterStateObjects: map[string]*anypb.Any{"object": object}, CustomTags: map[string]string{"tag": "value"},
			StreamId: "5c9c3e7c-8d1f-4a54-9c4a-0f3c39b5d8a3", RouteName: "300s", UpstreamRequestAttemptCount: 1,
			TlsProperties: &accesslogdatav3.TLSProperties{TlsSniHostname: "api.example", PeerCertificateProperties: &accesslogdatav3.TLSProperties_CertificateProperties{
				Subject: "CN=peer", SubjectAltName: []*accesslogdatav3.TLSProperties_CertificateProperties_SubjectAltName{
					{San: &accesslogdatav3.TLSProperties_CertificateProperties_SubjectAltName_Dns{Dns: "peer.example"}},
				},
			}},
		},
		Request: &accesslogdatav3.HTTPRequestProperties{
			RequestMethod: corev3.RequestMethod_POST, Scheme: "http", Authority: "localhost", Path: "/v1/messages", UserAgent: "client/1.0",
			RequestId: "5c9c3e7c-8d1f-4a54-9c4a-0f3c39b5d8a3", RequestHeadersBytes: 400, RequestBodyBytes: 1024,
			RequestHeaders: map[string]string{"a": "b"},
		},
		Response: &accesslogdatav3.HTTPResponseProperties{
			ResponseCode: wrapperspb.UInt32(200), ResponseHeadersBytes: 300, ResponseBodyBytes: 4711, ResponseCodeDetails: "via_upstream",
			ResponseTrailers: map[string]string{"c": "d"},
		},
	}
}

// logOf is a message with one entry, whose AccessLogCommon has the contents.
func logOf(common ...[]byte) []byte { return field(2, field(1, field(1, common...))) }

// logMeta is a message with one entry with one filter_metadata entry.
func logMeta(key string, contents ...[]byte) []byte { return logOf(metaEntry(key, contents...)) }

// metaEntry is a Metadata, in AccessLogCommon, with one filter_metadata entry.
func metaEntry(key string, contents ...[]byte) []byte {
	return field(17, field(1, field(1, []byte(key)), field(2, contents...)))
}

// logCases are valid and invalid messages by name.
func logCases() map[string][]byte {
	cases := wireCases()
	maps.Copy(cases, entryCases())
	maps.Copy(cases, tailCases())
	maps.Copy(cases, logTextCases())
	maps.Copy(cases, logDepthCases())
	return cases
}

// entryCases: what merges or replaces what.
func entryCases() map[string][]byte {
	one, other := field(1, field(4, field(6, []byte("one")))), field(1, field(4, field(6, []byte("other"))))
	return map[string][]byte{
		"empty":                    {},
		"as Envoy sends":           encoded(sampleLogs(1)),
		"several entries":          encoded(sampleLogs(20)),
		"identifier, empty":        field(1),
		"identifier, merged":       join(field(1, field(2, []byte("attempt"))), field(1)),
		"identifier, last name":    join(field(1, field(2, []byte("attempt"))), field(1, field(2, []byte("exchange")))),
		"identifier, name emptied": field(1, field(2, []byte("attempt")), field(2)),
		"identifier, wrong type":   number(1, 5),
		"entries merged":           join(field(2, one), field(2, other)),
		"oneof: TCP wins":          join(field(2, one), field(3, field(1, logOf()))),
		"oneof: there and back":    join(field(2, one), field(3), field(2, other)),
		"oneof: wrong type":        join(field(2, one), number(3, 1)),
		"TCP":                      field(3, field(1, field(1, field(15, []byte("c"))), field(2, number(1, 5)))),
		"TCP, not UTF-8":           field(3, field(1, field(1, field(15, []byte("\xff"))))),
		"TCP lost, invalid":        join(field(3, field(1, field(2, []byte{0x08}))), field(2, one)),
		"response merged":          field(2, field(1, field(4, field(1, number(1, 503))), field(4, field(6, []byte("details"))))),
		"status twice":             field(2, field(1, field(4, field(1, number(1, 503)), field(1, number(1, 200))))),
		"status kept":              field(2, field(1, field(4, field(1, number(1, 503)), field(1)))),
		"status of 64 bits":        field(2, field(1, field(4, field(1, number(1, 1<<40|200))))),
		"status, wrong type":       field(2, field(1, field(4, number(1, 5), field(1, fixed64(1))))),
		"flags":                    logOf(field(16, number(5, 1), number(7, 1), number(15, 1), number(17, 1), number(24, 1))),
		"flags, taken back":        logOf(field(16, number(5, 1), number(15, 2)), field(16, number(5, 0))),
		"flags, others":            logOf(field(16, number(6, 1), number(14, 1), number(16, 1), number(23, 1), number(25, 1))),
		"flags, wrong type":        logOf(field(16, field(5), fixed64(7)), number(16, 1)),
		"flags, unauthorized":      logOf(field(16, field(13, number(1, 1)))),
		"flags, invalid inside":    logOf(field(16, field(13, []byte{0x08}))),
		"start":                    logOf(field(5, number(1, 1760000000), number(2, 5))),
		"start, empty":             logOf(field(5)),
		"start, merged":            logOf(field(5, number(1, 1760000000)), field(5, number(2, 7))),
		"start, before 1970":       logOf(field(5, number(1, math64(-5)), number(2, math64(-1)))),
		"start, wrong type":        logOf(number(5, 1), fixed64(12), field(23, fixed64(1), field(2))),
		"durations":                logOf(field(12, number(1, 3), number(2, 4)), field(23, number(1, 5), number(2, 6))),
		"duration, too long":       logOf(field(12, number(1, 1<<62)), field(23, number(1, math64(-1<<62)))),
		"duration, nanos overflow": logOf(field(12, number(1, 9223372036), number(2, 1<<31-1)), field(23, number(2, 1<<33|5))),
		"common merged":            field(2, field(1, field(1, field(5, number(1, 5))), field(4), field(1, field(12, number(1, 6))))),
	}
}

func math64(v int64) uint64 { return uint64(v) }

// double is a number_value of a Value.
func double(bits uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), bits)
}

// tailCases: the two namespaces of the metadata.
func tailCases() map[string][]byte {
	const tail = "crossdoor.tail"
	const five, nan = 0x4014000000000000, 0x7ff8000000000001
	return map[string][]byte{
		"state":                    logMeta("crossdoor", stateField("id", text("1")), stateField("n", field(2, double(five)))),
		"state replaced":           logOf(metaEntry("crossdoor", stateField("id", text("1"))), metaEntry("crossdoor", stateField("b", text("2")))),
		"state: string, then not":  logMeta("crossdoor", stateField("id", text("1")), stateField("x", text("2")), stateField("id", field(2, number(4, 1)))),
		"state: key after value":   logOf(field(17, field(1, field(2, stateField("a", text("1"))), field(1, []byte("crossdoor"))))),
		"tail":                     logMeta(tail, stateField("text", text("t")), stateField("bytes", field(2, double(five)))),
		"tail, empty":              logMeta(tail, stateField("text", text(""))),
		"tail is no string":        logMeta(tail, stateField("text", field(2, double(five)))),
		"tail has no value":        logMeta(tail, stateField("text")),
		"tail twice":               logMeta(tail, stateField("text", text("t")), stateField("text", field(2, number(1, 0)))),
		"tail replaced":            logOf(metaEntry(tail, stateField("text", text("t")), stateField("bytes", field(2, double(five)))), metaEntry(tail)),
		"tail, structs merged":     logOf(field(17, field(1, field(1, []byte(tail)), field(2, stateField("text", text("t"))), field(2, stateField("bytes", field(2, double(five))))))),
		"bytes alone":              logMeta(tail, stateField("bytes", field(2, double(five)))),
		"bytes are a string":       logMeta(tail, stateField("bytes", text("5"))),
		"bytes: no number":         logMeta(tail, stateField("bytes", field(2, double(nan)))),
		"bytes twice":              logMeta(tail, stateField("bytes", field(2, double(five))), stateField("bytes", text("5"))),
		"bytes: values merged":     logMeta(tail, stateField("bytes", field(2, double(five)), field(2))),
		"bytes, then a list":       logMeta(tail, stateField("bytes", field(2, double(five), field(6)))),
		"bytes cut":                logMeta(tail, stateField("bytes", field(2, double(five)[:8]))),
		"metadata of others":       logMeta("other", stateField("text", text("t"))),
		"typed metadata":           logOf(field(17, field(2, field(1, []byte(tail)), field(2, field(1, []byte("x")))))),
		"metadata, wrong type":     logOf(number(17, 1), field(17, number(1, 1))),
		"metadata, not UTF-8":      logMeta(tail, stateField("text", text("\xff"))),
		"metadata, key not UTF-8":  logMeta("\xff"),
		"metadata, name not UTF-8": logMeta("other", stateField("\xff")),
	}
}

// logTextCases: a string at each place, not UTF-8. Which places there are is
// what TestLogShapes compares.
func logTextCases() map[string][]byte {
	bad := []byte("\xff")
	return map[string][]byte{
		"log name":           field(1, field(2, bad)),
		"node":               field(1, field(1, field(10, bad))),
		"node's parameters":  field(1, field(1, field(12, field(2, field(1, field(2, bad)))))),
		"node's address":     field(1, field(1, field(11, field(3, field(2, bad))))),
		"extension's URL":    field(1, field(1, field(9, field(6, bad)))),
		"extension's meta":   field(1, field(1, field(9, field(4, field(2, stateField("a", text("\xff"))))))),
		"address":            logOf(field(2, field(1, field(2, bad)))),
		"pipe":               logOf(field(13, field(2, field(1, bad)))),
		"certificate":        logOf(field(4, field(5, field(1, field(2, bad))))),
		"custom tag":         logOf(field(22, field(1, []byte("a")), field(2, bad))),
		"filter state":       logOf(field(21, field(2, field(1, bad)))),
		"filter state value": logOf(field(21, field(2, field(2, bad)))),
		"path":               field(2, field(1, field(3, field(5, bad)))),
		"request header":     field(2, field(1, field(3, field(13, field(2, bad))))),
		"trailer":            field(2, field(1, field(4, field(5, field(1, bad))))),
		"details":            field(2, field(1, field(4, field(6, bad)))),
		"stream's ID":        logOf(field(26, bad)),
	}
}

// logDepthCases: the very level at which both give up.
func logDepthCases() map[string][]byte {
	cases := map[string][]byte{}
	for levels := 4994; levels <= 4998; levels++ {
		v := stateField("a", field(2, deepValue(levels)))
		cases["depth in the state "+strconv.Itoa(levels)] = logMeta("crossdoor", v)
		cases["depth in the node "+strconv.Itoa(levels)] = field(1, field(1, field(3, v)))
	}
	return cases
}
