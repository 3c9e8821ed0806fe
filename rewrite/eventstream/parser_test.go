package eventstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// feed gives the chunks to a parser and returns the frames as text.
func feed(p *Parser, chunks ...[]byte) (frames []string, err error) {
	for _, c := range chunks {
		chunk := bytes.Clone(c)
		err = p.Feed(chunk, func(f *Frame) bool {
			frames = append(frames, f.text())
			return true
		})
		for i := range chunk {
			chunk[i] = '#' // whatever still points here shows
		}
	}
	return frames, err
}

func (f *Frame) text() string {
	return fmt.Sprintf("%v|%s|%s|%s|%s|%s|%s", f.Kind, f.EventType, f.ExceptionType, f.ErrorCode, f.ErrorMessage, f.ContentType, f.Payload)
}

func frame(f Frame) []byte { return AppendFrame(nil, &f) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// known is a frame made by hand, byte for byte, with checksums of another
// implementation (Python's zlib): an encoder that errs as the parser does shows.
var known = []byte("\x00\x00\x00\x29\x00\x00\x00\x16\x5d\x27\x27\x4d" + "\x0d:message-type\x07\x00\x05event" + "abc" + "\xbc\x94\xb3\x4a")

var chunkFrame = frame(Frame{Kind: KindEvent, EventType: []byte("chunk"), ContentType: []byte("application/json"), Payload: []byte(`{"bytes":"e30="}`)})

func TestParser(t *testing.T) {
	everyType := "\x01a\x00" + "\x01b\x01" + "\x01c\x02\x7f" + "\x01d\x03\x01\x02" + "\x01e\x04\x01\x02\x03\x04" + "\x01f\x05\x01\x02\x03\x04\x05\x06\x07\x08" +
		"\x01g\x06\x00\x03\x0dx\x07" + "\x01h\x07\x00\x02hi" + "\x01i\x08\x01\x02\x03\x04\x05\x06\x07\x08" + "\x01j\x09" + strings.Repeat("u", 16)
	header := func(name, value string) string { return string(appendHeader(nil, name, []byte(value))) }
	message := func(headers, payload string) []byte { return appendMessage(nil, []byte(headers), []byte(payload)) }
	for _, c := range []struct {
		name   string
		stream []byte
		want   []string
		err    error
	}{
		{"nothing", nil, nil, nil},
		{"chunk", chunkFrame, []string{`event|chunk||||application/json|{"bytes":"e30="}`}, nil},
		{"two", join(chunkFrame, chunkFrame), []string{`event|chunk||||application/json|{"bytes":"e30="}`, `event|chunk||||application/json|{"bytes":"e30="}`}, nil},
		{"exception", frame(Frame{Kind: KindException, ExceptionType: []byte("throttlingException"), Payload: []byte(`{"message":"m"}`)}), []string{`exception||throttlingException||||{"message":"m"}`}, nil},
		{"error", frame(Frame{Kind: KindError, ErrorCode: []byte("InternalFailure"), ErrorMessage: []byte("boom")}), []string{`error|||InternalFailure|boom||`}, nil},
		{"neither headers nor payload", message("", ""), []string{`other||||||`}, nil},
		{"payload alone", message("", "x"), []string{`other||||||x`}, nil},
		{"unknown message type", message(header(":message-type", "news"), ""), []string{`other||||||`}, nil},
		{"every type is passed over", message(everyType+header(":message-type", "event")+everyType, "x"), []string{`event||||||x`}, nil},
		{"a known name of another type is none", message("\x0d:message-type\x06\x00\x05event", ""), []string{`other||||||`}, nil},
		{"the last of two counts", message(header(":event-type", "a")+header(":event-type", "b"), ""), []string{`other|b|||||`}, nil},
		{"names count with their case", message(header(":Event-Type", "a"), ""), []string{`other||||||`}, nil},
		{"unfinished", join(chunkFrame, chunkFrame[:len(chunkFrame)-1]), []string{`event|chunk||||application/json|{"bytes":"e30="}`}, nil},
		{"header without a name", message("\x00\x00", ""), nil, ErrBadHeader},
		{"header of an unknown type", message("\x01a\x0a", ""), nil, ErrBadHeader},
		{"header cut in its name", message("\x05ab", ""), nil, ErrBadHeader},
		{"header cut before its type", message("\x02ab", ""), nil, ErrBadHeader},
		{"header cut in its length", message("\x01a\x07\x00", ""), nil, ErrBadHeader},
		{"header cut in its value", message("\x01a\x07\x00\x05abcd", "efgh"), nil, ErrBadHeader},
		{"header cut in its number", message("\x01a\x05\x01\x02", "12345678"), nil, ErrBadHeader},
		{"text", []byte("<html><body>503</body></html>"), nil, ErrCorruptPrelude},
		{"after a good one", join(chunkFrame, []byte("event: ping\ndata: {}\n\n")), []string{`event|chunk||||application/json|{"bytes":"e30="}`}, ErrCorruptPrelude},
		{"headers longer than the frame", prelude(20, 5), nil, ErrCorruptPrelude},
		{"shorter than its frame", prelude(15, 0), nil, ErrCorruptPrelude},
		{"endless headers", prelude(overhead+maxHeaders+1, maxHeaders+1), nil, ErrTooLarge},
		{"endless payload", prelude(overhead+DefaultMaxPayload+1, 0), nil, ErrTooLarge},
		{"the longest number", prelude(1<<32-1, 1<<32-1), nil, ErrCorruptPrelude},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(how string, chunks ...[]byte) {
				t.Helper()
				got, err := feed(&Parser{}, chunks...)
				if !errors.Is(err, c.err) || fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Fatalf("%s: %q, %v; want %q, %v", how, got, err, c.want, c.err)
				}
			}
			check("whole", c.stream)
			for n := range len(c.stream) + 1 {
				check(fmt.Sprintf("cut at %d", n), c.stream[:n], nil, c.stream[n:])
			}
			check("one by one", bytes.Split(c.stream, nil)...)
		})
	}
}

// prelude is the beginning of a frame that states these lengths, and a few more
// bytes.
func prelude(total, headers uint32) []byte {
	b := appendMessage(nil, nil, nil)[:8]
	binary.BigEndian.PutUint32(b, total)
	binary.BigEndian.PutUint32(b[4:], headers)
	return append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), make([]byte, 20)...)
}

// TestEveryFlippedBitIsSeen: a checksum of 32 bits finds every single fault.
func TestEveryFlippedBitIsSeen(t *testing.T) {
	for i := range chunkFrame {
		for bit := range 8 {
			bad := join(chunkFrame, chunkFrame)
			bad[i] ^= 1 << bit
			want := ErrCorruptMessage
			if i < preludeLen {
				want = ErrCorruptPrelude
			}
			if got, err := feed(&Parser{}, bad); !errors.Is(err, want) || got != nil {
				t.Fatalf("bit %d of byte %d: %q, %v; want %v", bit, i, got, err, want)
			}
		}
	}
}

func TestKnownFrame(t *testing.T) {
	want := frame(Frame{Kind: KindEvent, Payload: []byte("abc")})
	if !bytes.Equal(known, want) {
		t.Errorf("% x\nwant % x", want, known)
	}
}

func TestLimits(t *testing.T) {
	at := frame(Frame{Kind: KindEvent, Payload: make([]byte, 100)})
	above := frame(Frame{Kind: KindEvent, Payload: make([]byte, 101)})
	if got, err := feed(&Parser{MaxPayload: 100}, at, above, at); len(got) != 1 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d frames, %v; want one and %v", len(got), err, ErrTooLarge)
	}
	// No option raises the format's own limit, and nothing is allocated for a
	// length that is only stated.
	p := Parser{MaxPayload: 1 << 40}
	if _, err := feed(&p, prelude(overhead+DefaultMaxPayload+1, 0)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v, want %v", err, ErrTooLarge)
	}
	p = Parser{}
	if _, err := feed(&p, prelude(overhead+DefaultMaxPayload, 0)); err != nil || cap(p.part) > 1<<10 {
		t.Errorf("%v, %d bytes kept for 32", err, cap(p.part))
	}
	// The longest there may be, in pieces; its buffer goes with it.
	long := frame(Frame{Kind: KindEvent, Payload: make([]byte, DefaultMaxPayload)})
	p, frames := Parser{}, 0
	for piece := range slicesOf(long, 16<<10) {
		if err := p.Feed(piece, func(*Frame) bool { frames++; return true }); err != nil {
			t.Fatal(err)
		}
	}
	if frames != 1 || p.part != nil {
		t.Errorf("%d frames, %d bytes kept", frames, cap(p.part))
	}
}

func slicesOf(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 && yield(b[:min(n, len(b))]) {
			b = b[min(n, len(b)):]
		}
	}
}

func TestStop(t *testing.T) {
	p, seen := Parser{}, 0
	for range 3 {
		if err := p.Feed(join(chunkFrame, chunkFrame, chunkFrame, []byte("rubbish")), func(*Frame) bool { seen++; return seen < 2 }); err != nil {
			t.Fatal(err)
		}
	}
	if seen != 2 {
		t.Errorf("%d frames after yield said stop at the second", seen)
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	stream := bytes.Repeat(chunkFrame, 50)
	yield := func(*Frame) bool { return true }
	for _, piece := range []int{len(stream), 100, 7} {
		p := Parser{}
		if n := testing.AllocsPerRun(20, func() {
			for b := range slicesOf(stream, piece) {
				if err := p.Feed(b, yield); err != nil {
					t.Error(err)
				}
			}
		}); n != 0 {
			t.Errorf("pieces of %d: %v allocations a run of 50 frames, want none", piece, n)
		}
	}
}

func FuzzParser(f *testing.F) {
	f.Add(join(chunkFrame, chunkFrame), uint(3))
	f.Add(known, uint(12))
	f.Add(prelude(1<<31, 16), uint(1))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint) {
		want, wantErr := feed(&Parser{}, stream)
		p := Parser{}
		var got []string
		var err error
		for b := range slicesOf(stream, int(piece%64)+1) {
			var more []string
			more, err = feed(&p, b)
			got = append(got, more...)
		}
		if !errors.Is(err, wantErr) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("in pieces: %q, %v; whole: %q, %v", got, err, want, wantErr)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(uint8(1), []byte("chunk"), []byte(""), []byte(""), []byte(""), []byte("application/json"), []byte(`{"bytes":"e30="}`))
	f.Add(uint8(3), []byte(""), []byte(""), []byte("InternalFailure"), []byte("boom"), []byte(""), []byte(""))
	f.Fuzz(func(t *testing.T, kind uint8, event, exception, code, message, content, payload []byte) {
		want := Frame{Kind(kind % 4), event, exception, code, message, content, payload}
		for _, v := range []*[]byte{&want.EventType, &want.ExceptionType, &want.ErrorCode, &want.ErrorMessage, &want.ContentType} {
			*v = (*v)[:min(len(*v), MaxValue/2)]
		}
		got, err := feed(&Parser{}, AppendFrame(nil, &want))
		if err != nil || len(got) != 1 || got[0] != want.text() {
			t.Fatalf("%q, %v; want %q", got, err, want.text())
		}
	})
}

func BenchmarkParser(b *testing.B) {
	stream := bytes.Repeat(frame(Frame{Kind: KindEvent, EventType: []byte("chunk"), ContentType: []byte("application/json"), Payload: make([]byte, 250)}), 100)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	p := Parser{}
	for b.Loop() {
		if err := p.Feed(stream, func(*Frame) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
