package wire

import "google.golang.org/protobuf/encoding/protowire"

// maxDepth is protobuf's own limit of nesting (protowire.DefaultRecursionLimit).
const maxDepth = protowire.DefaultRecursionLimit

// shape tells of a message what matters for its validity: which fields are
// strings and which are messages. It is indexed by field number. Everything
// else is valid when it can be stepped over.
type shape []part

type part struct {
	as partKind
	of *shape
}

type partKind uint8

const (
	asAny     partKind = iota // no string, no message
	asText                    // string
	asMessage                 // message of shape `of`
	asEntry                   // map entry of shape `of`
)

// The messages that are only checked. struct and value refer to each other, so
// they are filled in by init.
var (
	flatShape   shape // a message of numbers only
	structShape shape
	valueShape  shape

	listShape        = shape{1: {asMessage, &valueShape}}
	anyShape         = shape{1: {as: asText}}
	structEntryShape = shape{1: {as: asText}, 2: {asMessage, &structShape}}
	anyEntryShape    = shape{1: {as: asText}, 2: {asMessage, &anyShape}}
	valueEntryShape  = shape{1: {as: asText}, 2: {asMessage, &valueShape}}
)

func init() { //nolint:gochecknoinits // a cycle, which the language refuses in initialisers
	structShape = shape{1: {asEntry, &valueEntryShape}}
	valueShape = shape{3: {as: asText}, 5: {asMessage, &structShape}, 6: {asMessage, &listShape}}
}

// check says whether b is a valid message of the shape; depth is how many more
// levels may follow.
func check(b []byte, s *shape, depth int) error {
	if depth--; depth < 0 {
		return errDepth
	}
	c := cursor{b: b}
	for c.next() {
		if int(c.num) >= len(*s) {
			continue
		}
		p := (*s)[c.num]
		if p.as == asEntry && depth < 1 { // counted before the wire type is looked at
			return errDepth
		}
		if c.typ != protowire.BytesType {
			continue
		}
		switch p.as {
		case asText:
			c.text()
		case asMessage, asEntry:
			if err := check(c.val, p.of, depth); err != nil {
				return err
			}
		}
	}
	return c.err
}
