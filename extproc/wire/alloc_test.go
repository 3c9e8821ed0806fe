package wire

import (
	"runtime"
	"testing"

	"google.golang.org/grpc/mem"
)

// plannedAnswer is about what a plan answers to the body.
func plannedAnswer() *Response {
	return &Response{
		Kind:   KindRequestBody,
		Remove: []string{"cookie", "authorization", "x-forwarded-for"},
		Set: []HeaderField{
			{"x-crossdoor-id", "01JAZ4M4S7J9V3T2F9K0QZ8W6X"}, {"x-crossdoor-target", "crossdoor-target-primary"},
			{"x-crossdoor-length", "1024"}, {"x-api-key", "sk-ant-api03-0123456789"},
		},
		Meta: []HeaderField{{"id", "01JAZ4M4S7J9V3T2F9K0QZ8W6X"}, {"node", "10.0.0.1:9000"}},
	}
}

// TestAllocations states what a message costs, exactly: reading takes the
// Buffer, and the log's name of an access log, writing the head, and its bytes when they do not fit into it.
func TestAllocations(t *testing.T) {
	headers := mem.BufferSlice{mem.SliceBuffer(encoded(sample()))}
	body := mem.BufferSlice{mem.SliceBuffer(encoded(sampleBody(100000)))}
	planned := plannedAnswer()
	long := plannedAnswer()
	long.Set = append(long.Set, HeaderField{"x", string(make([]byte, 600))})
	var r Request
	read := func(data mem.BufferSlice) func() {
		return func() {
			if err := (Codec{}).Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			r.Release()
		}
	}
	write := func(m *Response) func() {
		return func() {
			parts, err := Codec{}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			parts.Free()
		}
	}
	logs := mem.BufferSlice{mem.SliceBuffer(encoded(sampleLogs(20)))}
	var logMessage LogMessage
	readLogs := func() {
		if err := (Codec{}).Unmarshal(logs, &logMessage); err != nil {
			t.Fatal(err)
		}
		logMessage.Release()
	}
	cases := []struct {
		name string
		run  func()
		want float64
	}{
		{"read headers", read(headers), 1},
		{"read a body", read(body), 1},
		{"read an access log", readLogs, 2},
		{"continue", write(&Response{Kind: KindRequestHeaders}), 1},
		{"planned", write(planned), 1},
		{"longer head", write(long), 2},
	}
	for _, c := range cases {
		if got := testing.AllocsPerRun(100, c.run); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
	wantLive(t, 0)
}

// TestBytesPerBodyByte: reading a body and sending it back, in steady state.
func TestBytesPerBodyByte(t *testing.T) {
	for _, n := range []int{64 << 10, 1 << 20, bigBody} {
		data := mem.BufferSlice{mem.SliceBuffer(encoded(sampleBody(n)))}
		var r Request
		turn := func() {
			if err := (Codec{}).Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			m := Response{Kind: KindRequestHeaders, Replace: true, Body: r.TakeBody()}
			parts, err := Codec{}.Marshal(&m)
			if err != nil {
				t.Fatal(err)
			}
			m.Reset()
			r.Release()
			wantLive(t, 1)
			parts.Free()
		}
		turn()
		var before, after runtime.MemStats
		const turns = 20
		runtime.ReadMemStats(&before)
		for range turns {
			turn()
		}
		runtime.ReadMemStats(&after)
		// 0.02 a byte is the aim for the whole service; here it is a fixed cost.
		if got := (after.TotalAlloc - before.TotalAlloc) / turns; got > 1500 {
			t.Errorf("body of %d bytes: %d bytes allocated a turn", n, got)
		}
		wantLive(t, 0)
	}
}
