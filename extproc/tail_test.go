package extproc

import (
	"testing"
	"time"

	accesslogdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
)

// readLogs is what the service reads of entries.
func readLogs(tb testing.TB, m *wire.LogMessage, entries ...*accesslogdatav3.HTTPAccessLogEntry) mem.BufferSlice {
	tb.Helper()
	raw, err := proto.Marshal(&accesslogv3.StreamAccessLogsMessage{
		LogEntries: &accesslogv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: &accesslogv3.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: entries}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	data := mem.BufferSlice{mem.SliceBuffer(raw)}
	if err := (wire.Codec{}).Unmarshal(data, m); err != nil {
		tb.Fatal(err)
	}
	return data
}

// logEnvoy writes entries of an exchange "ours".
func logEnvoy() *envoy {
	return &envoy{
		headers: map[string]string{names.ID: "ours", names.Target: "crossdoor-target-a"},
		meta:    map[string]string{names.MetaNode: "10.0.0.1:9000", names.MetaState: "{}"},
	}
}

func TestReadEntryFlags(t *testing.T) {
	cases := map[string]struct {
		end  ended
		want flags
	}{
		"whole":                 {ended{}, flags{}},
		"DC":                    {ended{flag: "DC"}, flags{downstreamGone: true}},
		"SI":                    {ended{flag: "SI"}, flags{idle: true}},
		"UPE":                   {ended{flag: "UPE"}, flags{upstreamBroke: true}},
		"UC":                    {ended{flag: "UC"}, flags{upstreamBroke: true}},
		"UR":                    {ended{flag: "UR"}, flags{upstreamBroke: true}},
		"UF tells of no answer": {ended{flag: "UF"}, flags{}},
		"reset by its details":  {ended{details: "upstream_reset_after_response_started{protocol_error}"}, flags{upstreamBroke: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m wire.LogMessage
			defer m.Release()
			readLogs(t, &m, logEnvoy().entry(names.LogExchange, c.end))
			if got := readEntry(&m.Entries[0]).flags; got != c.want {
				t.Errorf("flags %+v, want %+v", got, c.want)
			}
		})
	}
}

// The end is the last byte downstream, else the end of the request, by Envoy's
// clock; an entry that lacks either part does not say.
func TestReadEntryOver(t *testing.T) {
	start := time.Unix(1760000000, 5).UTC()
	cases := map[string]struct {
		common *accesslogdatav3.AccessLogCommon
		want   time.Time
	}{
		"both": {&accesslogdatav3.AccessLogCommon{
			StartTime: timestamppb.New(start), TimeToLastDownstreamTxByte: durationpb.New(time.Second), Duration: durationpb.New(time.Minute),
		}, start.Add(time.Second)},
		"no byte":  {&accesslogdatav3.AccessLogCommon{StartTime: timestamppb.New(start), Duration: durationpb.New(time.Minute)}, start.Add(time.Minute)},
		"no span":  {&accesslogdatav3.AccessLogCommon{StartTime: timestamppb.New(start)}, time.Time{}},
		"no start": {&accesslogdatav3.AccessLogCommon{Duration: durationpb.New(time.Minute)}, time.Time{}},
		"at once":  {&accesslogdatav3.AccessLogCommon{StartTime: timestamppb.New(start), Duration: durationpb.New(0)}, start},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var m wire.LogMessage
			defer m.Release()
			readLogs(t, &m, &accesslogdatav3.HTTPAccessLogEntry{CommonProperties: c.common})
			if got := readEntry(&m.Entries[0]).over; !got.Equal(c.want) {
				t.Errorf("over at %v, want %v", got, c.want)
			}
		})
	}
}

// What is kept of an entry is still there when its message is gone.
func TestReadEntryCopies(t *testing.T) {
	var m wire.LogMessage
	readLogs(t, &m, logEnvoy().entry(names.LogAttempt, ended{tail: "the last bytes", count: "2", details: "via_upstream"}))
	e := readEntry(&m.Entries[0])
	for i := range m.Entries[0].Raw {
		m.Entries[0].Raw[i] = 'x'
	}
	m.Release()
	if e.id != "ours" || e.node != "10.0.0.1:9000" || e.attempt != "2" || e.details != "via_upstream" {
		t.Errorf("kept: %+v", e)
	}
	if e.status != 200 || !e.hasTail || string(e.tail) != "the last bytes" {
		t.Errorf("kept: %+v", e)
	}
}

// BenchmarkReadEntry reads one message with one entry, as Envoy sends it when
// the load is low.
func BenchmarkReadEntry(b *testing.B) {
	var m wire.LogMessage
	defer m.Release()
	data := readLogs(b, &m, logEnvoy().entry(names.LogAttempt, ended{tail: "the last bytes", count: "2", details: "via_upstream"}))
	b.ReportAllocs()
	for b.Loop() {
		if err := (wire.Codec{}).Unmarshal(data, &m); err != nil {
			b.Fatal(err)
		}
		if readEntry(&m.Entries[0]).id != "ours" {
			b.Fatal("not read")
		}
	}
}
