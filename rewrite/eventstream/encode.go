package eventstream

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// MaxValue is the longest header value that AppendFrame writes, in bytes.
const MaxValue = math.MaxInt16

// AppendFrame appends f as the wire has it, for platforms that are faked and for
// tests. Headers that are empty are left out, and so is the :message-type of
// KindOther; what a value has beyond MaxValue is cut. It does not check f
// against the format's limits.
func AppendFrame(dst []byte, f *Frame) []byte {
	var headers []byte
	if f.Kind != KindOther {
		headers = appendHeader(headers, ":message-type", []byte(f.Kind.String()))
	}
	for _, h := range []struct {
		name  string
		value []byte
	}{
		{":event-type", f.EventType},
		{":exception-type", f.ExceptionType},
		{":error-code", f.ErrorCode},
		{":error-message", f.ErrorMessage},
		{":content-type", f.ContentType},
	} {
		if len(h.value) > 0 {
			headers = appendHeader(headers, h.name, h.value)
		}
	}
	return appendMessage(dst, headers, f.Payload)
}

// appendHeader appends a header whose value is a string.
func appendHeader(dst []byte, name string, value []byte) []byte {
	value = value[:min(len(value), MaxValue)]
	dst = append(dst, byte(len(name))) //nolint:gosec // names are this file's, and short
	dst = append(dst, name...)
	dst = append(dst, typeString)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(value))) //nolint:gosec // cut above
	return append(dst, value...)
}

// appendMessage frames headers and payload.
func appendMessage(dst, headers, payload []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(overhead+len(headers)+len(payload))) //nolint:gosec // not beyond the format's limits
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(headers)))                       //nolint:gosec // as above
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
	dst = append(dst, headers...)
	dst = append(dst, payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}
