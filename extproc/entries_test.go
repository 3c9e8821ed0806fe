package extproc

import (
	"context"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accesslogdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// ended is what an access-log entry says of an end.
type ended struct {
	status  int // 0 is 200, -1 is none
	flag    string
	details string
	tail    string // "" is none
	count   string // of an attempt, as Envoy counts; "" is the newest
}

// log sends one entry to a replica and lets it be read.
func (e *envoy) log(to *replica, name string, end ended) {
	e.Helper()
	to.logs(name, e.entry(name, end))
}

// served is a plain answer that reaches the client whole.
func (e *envoy) served() {
	e.Helper()
	e.final(from(200, "application/json"))
	e.plan.leave()
	e.log(e.replica, names.LogAttempt, ended{tail: `{"stop_reason":"end_turn"}`})
	e.log(e.replica, names.LogExchange, ended{})
}

// logs sends entries in one message.
func (r *replica) logs(name string, entries ...*accesslogdatav3.HTTPAccessLogEntry) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), peerPatience)
	defer cancel()
	stream, err := accesslogv3.NewAccessLogServiceClient(r.conn).StreamAccessLogs(ctx)
	if err != nil {
		r.Fatal(err)
	}
	err = stream.Send(&accesslogv3.StreamAccessLogsMessage{
		Identifier: &accesslogv3.StreamAccessLogsMessage_Identifier{LogName: name},
		LogEntries: &accesslogv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: &accesslogv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: entries}},
	})
	if err != nil {
		r.Fatal(err)
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		r.Fatal(err)
	}
	synctest.Wait()
}

func (e *envoy) entry(name string, end ended) *accesslogdatav3.HTTPAccessLogEntry {
	fields := map[string]*structpb.Value{
		names.MetaID: structpb.NewStringValue(e.headers[names.ID]), names.MetaNode: structpb.NewStringValue(e.meta[names.MetaNode]),
	}
	if name == names.LogAttempt {
		count := end.count
		if count == "" {
			count = itoa(e.count)
		}
		fields[names.MetaAttempt] = structpb.NewStringValue(count)
		fields[names.MetaTarget] = structpb.NewStringValue(e.headers[names.Target])
	} else {
		fields[names.MetaState] = structpb.NewStringValue(e.meta[names.MetaState])
	}
	meta := map[string]*structpb.Struct{names.Namespace: {Fields: fields}}
	if end.tail != "" {
		meta[names.TailNamespace] = &structpb.Struct{Fields: map[string]*structpb.Value{
			names.TailText: structpb.NewStringValue(end.tail), names.TailBytes: structpb.NewNumberValue(float64(len(end.tail))),
		}}
	}
	status := end.status
	if status == 0 {
		status = 200
	}
	return &accesslogdatav3.HTTPAccessLogEntry{
		CommonProperties: &accesslogdatav3.AccessLogCommon{
			Metadata: &corev3.Metadata{FilterMetadata: meta}, ResponseFlags: responseFlags(end.flag),
		},
		Response: &accesslogdatav3.HTTPResponseProperties{
			ResponseCode: wrapperspb.UInt32(uint32(max(status, 0))), ResponseCodeDetails: end.details,
		},
	}
}

func responseFlags(flag string) *accesslogdatav3.ResponseFlags {
	switch flag {
	case "DC":
		return &accesslogdatav3.ResponseFlags{DownstreamConnectionTermination: true}
	case "SI":
		return &accesslogdatav3.ResponseFlags{StreamIdleTimeout: true}
	case "UPE":
		return &accesslogdatav3.ResponseFlags{UpstreamProtocolError: true}
	case "UC":
		return &accesslogdatav3.ResponseFlags{UpstreamConnectionTermination: true}
	case "UR":
		return &accesslogdatav3.ResponseFlags{UpstreamRemoteReset: true}
	case "UF":
		return &accesslogdatav3.ResponseFlags{UpstreamConnectionFailure: true}
	}
	return nil
}
