package rewrite

import "encoding/json"

// Edit replaces the bytes of a span by New; an empty New removes them, an empty
// span inserts. New stays the caller's and is only read.
type Edit struct {
	Span

	New []byte
}

// Splice appends body to dst with the edits made and returns the result. Edits
// come in ascending order and do not overlap; one that begins before the
// previous one ended, or reaches beyond the body, is left out. body and dst must
// not overlap. With room for Length bytes in dst nothing is allocated.
func Splice(dst, body []byte, edits []Edit) []byte {
	at := 0
	for _, e := range edits {
		if !e.fits(at, len(body)) {
			continue
		}
		dst = append(dst, body[at:e.Start]...)
		dst = append(dst, e.New...)
		at = e.End
	}
	return append(dst, body[at:]...)
}

// Length is the number of bytes that Splice makes of body.
func Length(body []byte, edits []Edit) int {
	n, at := len(body), 0
	for _, e := range edits {
		if e.fits(at, len(body)) {
			n += len(e.New) - e.Len()
			at = e.End
		}
	}
	return n
}

func (e Edit) fits(at, end int) bool {
	return e.Start >= at && e.End >= e.Start && e.End <= end
}

// SetModel is the edit that puts the platform's model ID in the place of the
// client's.
func SetModel(f Facts, id string) Edit {
	text, err := json.Marshal(id)
	if err != nil { // cannot be: every string has a JSON form
		text = []byte(`""`)
	}
	return Edit{Span: f.ModelSpan, New: text}
}
