// Package eventstream reads the frames of AWS's event stream
// (application/vnd.amazon.eventstream) as their bytes arrive, and makes of
// Bedrock's the server-sent events of the client's schema.
//
// A Parser is fed; it never reads. Both checksums of a frame are checked, each
// byte is looked at a fixed number of times however the stream is cut, and a
// frame that lies whole in one chunk is handed on without a copy. A Converter
// stands on a Parser: bytes of frames in, bytes of events out, and an account of
// how the answer ended.
//
// Framing: big-endian; total length, length of the headers, CRC-32 of these
// eight bytes, headers, payload, CRC-32 of all before it (platform reference,
// section 5.6).
package eventstream
