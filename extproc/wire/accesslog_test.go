package wire

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	accesslogdatav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// plainLogs is what a message says, free of buffers, for comparison.
type plainLogs struct {
	Log        string
	Identified bool
	Entries    []plainLog
}

type plainLog struct {
	Status         uint32
	Details        string
	Flags          LogFlags
	Start          time.Time // zero when not sent
	LastByte, Took string    // "" when not sent
	State          map[string]string
	Tail           string
	HasTail        bool
	TailBytes      uint64 // the number's bits
}

func plainLogsOfStock(m *accesslogv3.StreamAccessLogsMessage) plainLogs {
	p := plainLogs{Log: m.GetIdentifier().GetLogName(), Identified: m.GetIdentifier() != nil}
	for _, e := range m.GetHttpLogs().GetLogEntry() {
		p.Entries = append(p.Entries, plainLogOfStock(e))
	}
	return p
}

func plainLogOfStock(e *accesslogdatav3.HTTPAccessLogEntry) plainLog {
	common, f := e.GetCommonProperties(), e.GetCommonProperties().GetResponseFlags()
	p := plainLog{
		Status: e.GetResponse().GetResponseCode().GetValue(), Details: e.GetResponse().GetResponseCodeDetails(),
		Flags: LogFlags{
			DC: f.GetDownstreamConnectionTermination(), SI: f.GetStreamIdleTimeout(), UC: f.GetUpstreamConnectionTermination(),
			UR: f.GetUpstreamRemoteReset(), UPE: f.GetUpstreamProtocolError(),
		},
		State: map[string]string{},
	}
	if t := common.GetStartTime(); t != nil {
		p.Start = t.AsTime()
	}
	if d := common.GetTimeToLastDownstreamTxByte(); d != nil {
		p.LastByte = d.AsDuration().String()
	}
	if d := common.GetDuration(); d != nil {
		p.Took = d.AsDuration().String()
	}
	meta := common.GetMetadata().GetFilterMetadata()
	for name, v := range meta["crossdoor"].GetFields() {
		if s, ok := v.GetKind().(*structpb.Value_StringValue); ok {
			p.State[name] = s.StringValue
		}
	}
	tail := meta["crossdoor.tail"].GetFields()
	text, ok := tail["text"]
	p.Tail, p.HasTail, p.TailBytes = text.GetStringValue(), ok, math.Float64bits(tail["bytes"].GetNumberValue())
	return p
}

func plainLogsOf(m *LogMessage) plainLogs {
	p := plainLogs{Log: m.Log, Identified: m.Identified}
	for i := range m.Entries {
		e := &m.Entries[i]
		one := plainLog{
			Status: e.Status, Details: string(e.Details), Flags: e.Flags, State: map[string]string{},
			Tail: string(e.Tail), HasTail: e.HasTail, TailBytes: math.Float64bits(e.TailBytes),
		}
		if e.Start.Set {
			one.Start = e.Start.Time()
		}
		if e.LastByte.Set {
			one.LastByte = e.LastByte.Span().String()
		}
		if e.Duration.Set {
			one.Took = e.Duration.Span().String()
		}
		for _, h := range e.State {
			one.State[string(h.Name)] = string(h.Value)
		}
		p.Entries = append(p.Entries, one)
	}
	return p
}

// differLogs reads raw with both codecs and returns how they differ.
func differLogs(t *testing.T, m *LogMessage, raw []byte) string {
	t.Helper()
	var generated accesslogv3.StreamAccessLogsMessage
	stockErr := proto.Unmarshal(raw, &generated)
	half := len(raw) / 2
	err := Codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw[:half]), mem.SliceBuffer(raw[half:])}, m)
	if (err == nil) != (stockErr == nil) {
		return cmp.Diff(stockErr, err, cmp.Transformer("text", func(e error) string { return e.Error() }))
	}
	if err != nil {
		return cmp.Diff(plainLogs{}, plainLogsOf(m))
	}
	for i := range m.Entries {
		if diff := differOne(m, i, &generated); diff != "" {
			return diff
		}
	}
	return cmp.Diff(plainLogsOfStock(&generated), plainLogsOf(m))
}

// differOne hands entry i on and returns how it differs from what came.
func differOne(m *LogMessage, i int, generated *accesslogv3.StreamAccessLogsMessage) string {
	var one accesslogv3.StreamAccessLogsMessage
	if err := proto.Unmarshal(EncodeLog(m.Log, m.Entries[i].Raw), &one); err != nil {
		return "handed on: " + err.Error()
	}
	want := &accesslogv3.StreamAccessLogsMessage{
		Identifier: &accesslogv3.StreamAccessLogsMessage_Identifier{LogName: m.Log},
		LogEntries: &accesslogv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: &accesslogv3.StreamAccessLogsMessage_HTTPAccessLogEntries{
			LogEntry: generated.GetHttpLogs().GetLogEntry()[i : i+1],
		}},
	}
	if !proto.Equal(want, &one) {
		return "handed on, it differs"
	}
	return ""
}

func TestLogsAsGenerated(t *testing.T) {
	var m LogMessage
	for name, raw := range logCases() {
		t.Run(name, func(t *testing.T) {
			if diff := differLogs(t, &m, raw); diff != "" {
				t.Errorf("generated type (-), ours (+): %s", diff)
			}
		})
	}
	m.Release()
	wantLive(t, 0)
}

// TestLogsDamaged cuts each message at every byte and damages each byte; the
// larger ones in one way only, which makes other fields of the tags.
func TestLogsDamaged(t *testing.T) {
	var m LogMessage
	for name, raw := range logCases() {
		masks := []byte{0x08, 0xff, 0x80, 0x01}
		switch {
		case len(raw) > 2000:
			continue
		case len(raw) > 500:
			masks = masks[:1]
		}
		for i := range raw {
			for _, mask := range masks {
				b := bytes.Clone(raw)
				b[i] ^= mask
				if diff := differLogs(t, &m, b); diff != "" {
					t.Fatalf("%s, byte %d xor %#x: %s", name, i, mask, diff)
				}
			}
			if diff := differLogs(t, &m, raw[:i]); diff != "" {
				t.Fatalf("%s, cut at %d: %s", name, i, diff)
			}
		}
	}
	m.Release()
	wantLive(t, 0)
}

func FuzzLogs(f *testing.F) {
	for _, raw := range logCases() {
		if len(raw) < 3<<10 {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m LogMessage
		if diff := differLogs(t, &m, raw); diff != "" {
			t.Errorf("generated type (-), ours (+): %s", diff)
		}
		m.Release()
		wantLive(t, 0)
	})
}

// TestLogShapes compares the shapes with the descriptors: every string, every
// message and every map that the generated types know must be known here.
func TestLogShapes(t *testing.T) {
	seen := map[*shape]protoreflect.FullName{}
	sameShape(t, seen, &logsShape, (&accesslogv3.StreamAccessLogsMessage{}).ProtoReflect().Descriptor())
	if len(seen) < 25 {
		t.Errorf("only %d shapes were compared", len(seen))
	}
}

func sameShape(t *testing.T, seen map[*shape]protoreflect.FullName, s *shape, d protoreflect.MessageDescriptor) {
	t.Helper()
	if seen[s] == d.FullName() {
		return
	}
	seen[s] = d.FullName()
	for num := range *s {
		if (*s)[num].as != asAny && d.Fields().ByNumber(protoreflect.FieldNumber(num)) == nil {
			t.Errorf("%s has no field %d", d.FullName(), num)
		}
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		var have part
		if n := int(f.Number()); n < len(*s) {
			have = (*s)[n]
		}
		if want := kindOf(t, f); have.as != want {
			t.Errorf("%s: kind %d, want %d", f.FullName(), have.as, want)
		} else if f.Message() != nil {
			sameShape(t, seen, have.of, f.Message())
		}
	}
}

func kindOf(t *testing.T, f protoreflect.FieldDescriptor) partKind {
	t.Helper()
	switch {
	case f.IsMap():
		return asEntry
	case f.Kind() == protoreflect.GroupKind:
		t.Errorf("%s is a group, which a shape cannot tell", f.FullName())
	case f.Message() != nil:
		return asMessage
	case f.Kind() == protoreflect.StringKind:
		return asText
	case f.IsList() && f.Kind() != protoreflect.BytesKind:
		t.Errorf("%s may be packed, which a shape cannot tell", f.FullName())
	}
	return asAny
}

// TestLogsReused: nothing of one message is in the next, and what was copied
// stays.
func TestLogsReused(t *testing.T) {
	var m LogMessage
	read := func(raw []byte) {
		t.Helper()
		if err := (Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, &m); err != nil {
			t.Fatal(err)
		}
	}
	read(encoded(sampleLogs(3)))
	handed := EncodeLog(m.Log, m.Entries[1].Raw)
	id := m.Entries[1].Meta("id")
	if got := m.Entries[0].Meta("nothing"); got != "" {
		t.Errorf("metadata that was not sent is %q", got)
	}
	wantLive(t, 1)
	read(field(2, field(1), field(1), field(1)))
	wantLive(t, 1)
	if diff := cmp.Diff(plainLogs{Entries: []plainLog{{State: map[string]string{}}, {State: map[string]string{}}, {State: map[string]string{}}}}, plainLogsOf(&m)); diff != "" {
		t.Errorf("of the first message there is left: %s", diff)
	}
	m.Release()
	m.Release()
	wantLive(t, 0)
	if id != "01JAZ4M4S7J9V3T2F9K0QZ8W6X" {
		t.Errorf("the copied id is %q", id)
	}
	read(handed)
	if len(m.Entries) != 1 || m.Log != "exchange" || !strings.HasSuffix(string(m.Entries[0].Tail), "end_turn\"}}") {
		t.Errorf("handed on: log %q, %d entries", m.Log, len(m.Entries))
	}
	m.Release()
	wantLive(t, 0)
}

// The version is that of the Envoy which sends, as its node says it.
func TestLogMinor(t *testing.T) {
	for name, c := range map[string]struct {
		node *corev3.Node
		want int
	}{
		"1.37.0": {&corev3.Node{Id: "a", UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{
			UserAgentBuildVersion: &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 37}},
		}}, 37},
		"a text":  {&corev3.Node{UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "1.37"}}, 0},
		"no node": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := proto.Marshal(&accesslogv3.StreamAccessLogsMessage{
				Identifier: &accesslogv3.StreamAccessLogsMessage_Identifier{Node: c.node, LogName: "attempt"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var m LogMessage
			if err := (Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &m); err != nil {
				t.Fatal(err)
			}
			defer m.Release()
			if m.Minor != c.want || m.Log != "attempt" {
				t.Errorf("minor %d of %q, want %d", m.Minor, m.Log, c.want)
			}
		})
	}
}
