package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// parse reads envoy.service.ext_proc.v3.ProcessingRequest into r, which is
// empty. It returns the body of a body message, a part of b. Field numbers are
// those of external_processor.proto.
func (r *Request) parse(b []byte) (body []byte, err error) {
	const depth = maxDepth - 1
	body = b[:0]
	c := cursor{b: b}
	for c.next() && err == nil {
		if c.typ != protowire.BytesType {
			continue
		}
		switch c.num {
		case 2, 3, 4, 5, 6, 7: // the oneof
			if k := kindOfField(c.num); k != r.Kind {
				r.Kind, r.Headers, r.EndOfStream, body = k, r.Headers[:0], false, b[:0]
			}
			err = r.parsePhase(c.val, &body, depth)
		case 8: // metadata_context
			err = r.parseMetadata(c.val, depth)
		case 9: // attributes, a map
			err = check(c.val, &structEntryShape, depth)
		case 11, 12, 13: // protocol_config, flow_control_init, client_window_update
			err = check(c.val, &flatShape, depth)
		}
	}
	if err == nil {
		err = c.err
	}
	return body, err
}

func (r *Request) parsePhase(b []byte, body *[]byte, depth int) error {
	switch {
	case r.Kind.isHeaders():
		return r.parseHeaders(b, depth-1)
	case r.Kind.isBody():
		return r.parseBody(b, body)
	default:
		return r.parseTrailers(b)
	}
}

// parseHeaders reads HttpHeaders.
func (r *Request) parseHeaders(b []byte, depth int) (err error) {
	c := cursor{b: b}
	for c.next() && err == nil {
		switch {
		case c.bytes(1):
			err = r.parseHeaderMap(c.val)
		case c.bytes(2): // attributes, a map
			err = check(c.val, &structEntryShape, depth)
		case c.varint(3):
			r.EndOfStream = protowire.DecodeBool(c.u)
		}
	}
	if err == nil {
		err = c.err
	}
	return err
}

// parseTrailers reads HttpTrailers.
func (r *Request) parseTrailers(b []byte) error {
	c := cursor{b: b}
	for c.next() {
		if c.bytes(1) {
			if err := r.parseHeaderMap(c.val); err != nil {
				return err
			}
		}
	}
	return c.err
}

// parseBody reads HttpBody.
func (r *Request) parseBody(b []byte, body *[]byte) error {
	c := cursor{b: b}
	for c.next() {
		switch {
		case c.bytes(1):
			*body = c.val
		case c.varint(2):
			r.EndOfStream = protowire.DecodeBool(c.u)
		}
	}
	return c.err
}

// parseHeaderMap reads config.core.v3.HeaderMap.
func (r *Request) parseHeaderMap(b []byte) error {
	c := cursor{b: b}
	for c.next() {
		if !c.bytes(1) {
			continue
		}
		h, err := parseHeaderValue(c.val)
		if err != nil {
			return err
		}
		r.Headers = append(r.Headers, h)
	}
	return c.err
}

// parseHeaderValue reads config.core.v3.HeaderValue.
func parseHeaderValue(b []byte) (Header, error) {
	var h Header
	var raw []byte
	c := cursor{b: b}
	for c.next() {
		switch {
		case c.bytes(1):
			h.Name = c.text()
		case c.bytes(2):
			h.Value = c.text()
		case c.bytes(3):
			raw = c.val
		}
	}
	if len(raw) > 0 {
		h.Value = raw
	}
	return h, c.err
}

// parseMetadata reads config.core.v3.Metadata.
func (r *Request) parseMetadata(b []byte, depth int) error {
	depth--
	c := cursor{b: b}
	for c.next() {
		var err error
		switch {
		case c.bytes(1): // filter_metadata, a map
			if err = check(c.val, &structEntryShape, depth); err == nil {
				r.readState(c.val)
			}
		case c.bytes(2): // typed_filter_metadata, a map
			err = check(c.val, &anyEntryShape, depth)
		}
		if err != nil {
			return err
		}
	}
	return c.err
}

// readState reads an entry of filter_metadata, already checked, when it is
// ours. A later entry with the same key replaces an earlier one.
func (r *Request) readState(entry []byte) {
	if string(entryKey(entry)) == names.Namespace {
		r.State = readTexts(r.State[:0], entry)
	}
}
