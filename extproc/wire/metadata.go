package wire

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// metaOf is the string with that name among texts, a copy; "" when absent.
func metaOf(texts []Header, name string) string {
	for i := range texts {
		if string(texts[i].Name) == name {
			return string(texts[i].Value)
		}
	}
	return ""
}

// readTexts appends the strings of the Struct in an entry of filter_metadata,
// already checked. What else is in it is let go.
func readTexts(texts []Header, entry []byte) []Header {
	for c := (cursor{b: entry}); c.next(); {
		if !c.bytes(2) {
			continue
		}
		for s := (cursor{b: c.val}); s.next(); {
			if s.bytes(1) {
				texts = setText(texts, entryKey(s.val), entryValue(s.val))
			}
		}
	}
	return texts
}

// setText keeps one field of a Struct: the last one with a name counts, and
// only when it is a string.
func setText(texts []Header, name []byte, v value) []Header {
	at := len(texts)
	for i := range texts {
		if string(texts[i].Name) == string(name) {
			at = i
			break
		}
	}
	switch {
	case v.isText && at < len(texts):
		texts[at].Value = v.text
	case v.isText:
		texts = append(texts, Header{Name: name, Value: v.text})
	case at < len(texts):
		last := len(texts) - 1
		texts[at] = texts[last]
		texts = texts[:last]
	}
	return texts
}

// entryKey is the key of a map entry: the last one counts.
func entryKey(entry []byte) (key []byte) {
	for c := (cursor{b: entry}); c.next(); {
		if c.bytes(1) {
			key = c.val
		}
	}
	return key
}

// value is a protobuf.Value that is a string or a number. The zero value is one
// of another kind, or of none.
type value struct {
	text   []byte
	isText bool
	number float64
}

// entryValue is the Value of a map entry: the member of its oneof that was set
// last counts.
func entryValue(entry []byte) (out value) {
	for c := (cursor{b: entry}); c.next(); {
		if !c.bytes(2) {
			continue
		}
		for v := (cursor{b: c.val}); v.next(); {
			switch {
			case v.bytes(3):
				out = value{text: v.val, isText: true}
			case v.num == 2 && v.typ == protowire.Fixed64Type:
				out = value{number: math.Float64frombits(v.u)}
			case v.varint(1), v.varint(4), v.bytes(5), v.bytes(6):
				out = value{}
			}
		}
	}
	return out
}
