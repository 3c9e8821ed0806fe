package fakeplatform

import "time"

// Field is one header line as it was received or is sent.
type Field struct{ Name, Value string }

// End is how an answer ends after its last part.
type End uint8

// The ends. Clean is complete by its framing; Close ends the connection in the
// middle (FIN); Reset ends it with RST; Stall sends nothing more until the
// caller leaves or the server closes.
const (
	EndClean End = iota
	EndClose
	EndReset
	EndStall
)

// Length says how a body is framed when it is not simply the sum of its parts.
const (
	// LengthAuto states the sum of the parts as content-length.
	LengthAuto int64 = 0
	// LengthChunked sends the body chunked.
	LengthChunked int64 = -1
)

// Part is a piece of a body, written with one write.
type Part struct {
	Wait   time.Duration // before the piece
	Data   []byte
	Repeat int // further times, each after Wait; -1 is for ever
}

// Answer is one scripted answer. Status 0 sends no headers at all: End then says
// what happens to the connection. An Answer is not changed by the server and may
// be used for several requests at once.
type Answer struct {
	Name   string        // for reading a trace of what happened
	Wait   time.Duration // before the headers
	Status int
	Header []Field
	Parts  []Part
	Length int64
	End    End
	// Gate holds the answer back before its headers until it is closed; nil does
	// not hold.
	Gate <-chan struct{}
	// Mid holds the answer back before Parts[MidPart] until it is closed.
	Mid     <-chan struct{}
	MidPart int
}

// With returns a copy with more header lines.
func (a Answer) With(fields ...Field) Answer {
	a.Header = append(append([]Field{}, a.Header...), fields...)
	return a
}

// After returns a copy that waits before its headers.
func (a Answer) After(d time.Duration) Answer {
	a.Wait = d
	return a
}

// Held returns a copy that sends no header before gate is closed.
func (a Answer) Held(gate <-chan struct{}) Answer {
	a.Gate = gate
	return a
}

// Ending returns a copy that ends as stated. An answer with a computed
// content-length then promises more than it sends.
func (a Answer) Ending(e End) Answer {
	if a.Length == LengthAuto && e != EndClean {
		a.Length = a.size() + 512
	}
	a.End = e
	return a
}

// Body returns the bytes of all parts, those that repeat for ever once.
func (a Answer) Body() []byte {
	var b []byte
	for _, p := range a.Parts {
		for range max(1, p.Repeat+1) {
			b = append(b, p.Data...)
		}
	}
	return b
}

func (a Answer) size() int64 {
	var n int64
	for _, p := range a.Parts {
		n += int64(len(p.Data)) * int64(max(1, p.Repeat+1))
	}
	return n
}

// ResetBeforeHeaders resets the connection instead of answering.
func ResetBeforeHeaders() Answer { return Answer{Name: "reset before headers", End: EndReset} }

// CloseBeforeHeaders ends the connection instead of answering.
func CloseBeforeHeaders() Answer { return Answer{Name: "close before headers", End: EndClose} }

// Silence never answers.
func Silence() Answer { return Answer{Name: "silence", End: EndStall} }

// Raw answers with exactly this status, content type and body.
func Raw(status int, contentType string, body []byte, fields ...Field) Answer {
	h := append([]Field{{"content-type", contentType}}, fields...)
	return Answer{Name: "raw", Status: status, Header: h, Parts: []Part{{Data: body}}}
}
