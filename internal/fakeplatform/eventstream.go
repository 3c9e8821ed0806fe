package fakeplatform

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
)

// Frame is one message of application/vnd.amazon.eventstream: total length,
// headers' length, CRC-32 of both, headers (all strings), payload, CRC-32 of all
// before it.
func Frame(payload []byte, header ...Field) []byte {
	var h []byte
	for _, f := range header {
		h = append(h, byte(len(f.Name)))
		h = append(h, f.Name...)
		h = append(h, 7) // a string
		h = binary.BigEndian.AppendUint16(h, uint16(len(f.Value)))
		h = append(h, f.Value...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// letters are what padding is taken from.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// Chunk is the frame of one event's JSON, padded as Bedrock pads.
func Chunk(data []byte) []byte {
	payload := fmt.Sprintf(`{"bytes":%q,"p":%q}`, base64.StdEncoding.EncodeToString(data), letters[:1+len(data)*7%len(letters)])
	return Frame([]byte(payload), Field{":event-type", "chunk"}, Field{":content-type", "application/json"}, Field{":message-type", "event"})
}

// KeepAlive is a chunk whose JSON has no type; a caller drops it.
func KeepAlive() []byte { return Chunk([]byte(`{"keepAlive":true}`)) }

// Exception is a modelled exception inside a stream: throttlingException, ...
func Exception(kind, message string) []byte {
	payload, err := json.Marshal(map[string]string{"message": message})
	if err != nil { // a string always encodes
		payload = []byte("{}")
	}
	return Frame(payload, Field{":exception-type", kind}, Field{":content-type", "application/json"}, Field{":message-type", "exception"})
}

// ErrorFrame is an unmodelled error inside a stream; it has no payload.
func ErrorFrame(code, message string) []byte {
	return Frame(nil, Field{":error-code", code}, Field{":error-message", message}, Field{":message-type", "error"})
}

// CorruptMessage returns the frame with one bit of its payload turned: the CRC
// of the message no longer fits.
func CorruptMessage(frame []byte) []byte {
	b := bytes.Clone(frame)
	b[len(b)-5] ^= 1
	return b
}

// CorruptPrelude returns the frame with a CRC of its lengths that does not fit.
func CorruptPrelude(frame []byte) []byte {
	b := bytes.Clone(frame)
	b[8] ^= 1
	return b
}

// Reframe turns an SSE event of this package into the frame that Bedrock has for
// it. Comments become keep-alives, message_stop gets the metrics of the
// invocation, and what is no SSE event stays as it is.
func Reframe(event []byte) []byte {
	if bytes.HasPrefix(event, []byte(":")) {
		return KeepAlive()
	}
	_, data, ok := strings.Cut(string(event), "data:")
	if !ok {
		return event
	}
	data = strings.TrimSpace(data)
	if rest, ok := strings.CutSuffix(data, `"message_stop"}`); ok {
		data = rest + fmt.Sprintf(`"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":%d,"outputTokenCount":%d,"invocationLatency":1250,"firstByteLatency":310}}`, InputTokens, OutputTokens)
	}
	return Chunk([]byte(data))
}

// Frames answers 200 with the frames, each its own write.
func Frames(frames ...[]byte) Answer {
	a := Stream(frames...)
	a.Name = "frames"
	a.Header = []Field{{"content-type", "application/vnd.amazon.eventstream"}, {"x-amzn-bedrock-content-type", "application/json"}}
	return a
}

// StreamFor is Stream in the platform's framing: the events are SSE as
// MessageStart and the others make them.
func StreamFor(platform string, events ...[]byte) Answer {
	if platform != Bedrock {
		return Stream(events...)
	}
	frames := make([][]byte, len(events))
	for i, e := range events {
		frames[i] = Reframe(e)
	}
	return Frames(frames...)
}
