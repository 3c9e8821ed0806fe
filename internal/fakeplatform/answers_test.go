package fakeplatform

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
)

// frame is one message read back.
type frame struct {
	header  map[string]string
	payload []byte
}

var errCRC = errors.New("CRC")

// readFrame reads the first message of b and returns what follows.
func readFrame(b []byte) (frame, []byte, error) {
	f := frame{header: map[string]string{}}
	if len(b) < 16 || int(binary.BigEndian.Uint32(b)) > len(b) {
		return f, nil, io.ErrUnexpectedEOF
	}
	total, headers := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) || crc32.ChecksumIEEE(b[:total-4]) != binary.BigEndian.Uint32(b[total-4:]) {
		return f, nil, errCRC
	}
	for h := b[12 : 12+headers]; len(h) > 0; {
		n := int(h[0])
		size := int(binary.BigEndian.Uint16(h[n+2:]))
		f.header[string(h[1:1+n])] = string(h[n+4 : n+4+size])
		h = h[n+4+size:]
	}
	f.payload = b[12+headers : total-4]
	return f, b[total:], nil
}

// TestFrameVector is a message written out by the format's description: no
// headers, no payload, and its two checksums.
func TestFrameVector(t *testing.T) {
	if got := hex.EncodeToString(Frame(nil)); got != "00000010"+"00000000"+"05c248eb"+"7d98c8ff" {
		t.Errorf("got %s", got)
	}
}

// inner is the event inside a chunk.
func inside(t *testing.T, f frame) string {
	t.Helper()
	var chunk struct{ Bytes, P string }
	if err := json.Unmarshal(f.payload, &chunk); err != nil || chunk.P == "" {
		t.Fatalf("chunk %s: %v", f.payload, err)
	}
	b, err := base64.StdEncoding.DecodeString(chunk.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStreamOfBedrock(t *testing.T) {
	s := newServer(t, Bedrock)
	b := bases[Bedrock]
	resp, err := http.DefaultClient.Do(request(t, s, strings.Replace(b.path, "invoke", "invoke-with-response-stream", 1), b.body, b.fields...))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("content-type"); ct != "application/vnd.amazon.eventstream" || resp.Header.Get("x-amzn-requestid") == "" {
		t.Errorf("headers: %v", resp.Header)
	}
	var events []string
	for len(body) > 0 {
		var f frame
		if f, body, err = readFrame(body); err != nil {
			t.Fatal(err)
		}
		if f.header[":message-type"] != "event" || f.header[":event-type"] != "chunk" {
			t.Errorf("headers %v", f.header)
		}
		events = append(events, inside(t, f))
	}
	if !strings.Contains(events[0], `"id":"msg_bdrk_fake_1"`) || !strings.Contains(events[0], `"model":"claude-opus-5-5"`) {
		t.Errorf("start: %s", events[0])
	}
	if last := events[len(events)-1]; !strings.Contains(last, `"amazon-bedrock-invocationMetrics":{"inputTokenCount":25,"outputTokenCount":15`) || !json.Valid([]byte(last)) {
		t.Errorf("end: %s", last)
	}
}

func TestFramesOfFailure(t *testing.T) {
	f, rest, err := readFrame(Exception("throttlingException", `too "many"`))
	if err != nil || len(rest) != 0 || f.header[":message-type"] != "exception" || f.header[":exception-type"] != "throttlingException" || string(f.payload) != `{"message":"too \"many\""}` {
		t.Errorf("exception: %v %v %s", err, f.header, f.payload)
	}
	f, _, err = readFrame(ErrorFrame("InternalError", "m"))
	if err != nil || f.header[":message-type"] != "error" || f.header[":error-code"] != "InternalError" || f.header[":error-message"] != "m" {
		t.Errorf("error: %v %v", err, f.header)
	}
	f, _, err = readFrame(KeepAlive())
	if err != nil || strings.Contains(inside(t, f), `"type"`) {
		t.Errorf("keep-alive: %v", err)
	}
	for name, b := range map[string][]byte{"message": CorruptMessage(KeepAlive()), "prelude": CorruptPrelude(KeepAlive())} {
		if _, _, err := readFrame(b); !errors.Is(err, errCRC) {
			t.Errorf("corrupt %s: %v", name, err)
		}
	}
	if f, _, err := readFrame(Reframe([]byte(": comment\n\n"))); err != nil || strings.Contains(inside(t, f), "type") {
		t.Errorf("comment: %v", err)
	}
	if got := Reframe([]byte("raw")); !bytes.Equal(got, []byte("raw")) {
		t.Errorf("what is no event: %q", got)
	}
}

func TestErrorShapes(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		header Field
		body   string
	}{
		{BedrockError(429, "", "m"), Field{"x-amzn-ErrorType", "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"}, `{"message":"m"}`},
		{BedrockError(403, excExpired, "m"), Field{"x-amzn-ErrorType", "ExpiredTokenException:http://internal.amazon.com/coral/com.amazon.bedrock/"}, `{"message":"m"}`},
		{GoogleError(429, "m"), Field{"content-type", "application/json"}, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`},
		{GoogleErrorOf(400, "FAILED_PRECONDITION", "m"), Field{"content-type", "application/json"}, `{"error":{"code":400,"message":"m","status":"FAILED_PRECONDITION"}}`},
		{InArray(GoogleError(503, "m")), Field{"content-type", "application/json"}, `[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]`},
	} {
		r := Request{Header: c.answer.Header}
		if got := string(c.answer.Body()); got != c.body || r.Get(c.header.Name) != c.header.Value {
			t.Errorf("got %s with %v", got, c.answer.Header)
		}
	}
}

func TestGoodInEachFraming(t *testing.T) {
	for platform, ids := range map[string]string{Anthropic: "msg_fake_anthropic_1", Bedrock: "msg_bdrk_fake_1", Mantle: "msg_bdrk_fake_1", Vertex: "msg_vrtx_fake_1"} {
		if body := string(Good(platform, "m", false).Body()); !strings.Contains(body, `"id":"`+ids+`"`) {
			t.Errorf("%s: %s", platform, body)
		}
		stream := Good(platform, "m", true)
		if binary := bytes.HasPrefix(stream.Body(), []byte{0, 0}); binary != (platform == Bedrock) {
			t.Errorf("%s: %q", platform, stream.Body())
		}
	}
	for id, want := range map[string]string{
		"eu.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5-20251001", "anthropic.claude-opus-4-6-v1": "claude-opus-4-6", "us-gov.anthropic.claude-sonnet-5-5": "claude-sonnet-5-5",
		"arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5-5": "claude-opus-5-5",
	} {
		if got := shortName(Bedrock, id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// kinds are the contract's that a platform can cause.
var kinds = strings.Fields("connection timeout overloaded server_error rate_limit billing_quota credential permission model_unavailable unsupported_feature too_large invalid_request stream_error truncated")

func TestFailuresOfEachPlatform(t *testing.T) {
	for _, platform := range Platforms() {
		names, have := map[string]bool{}, map[string]bool{}
		for _, f := range Failures(platform) {
			if names[f.Name] {
				t.Errorf("%s: %s twice", platform, f.Name)
			}
			names[f.Name], have[f.Kind] = true, true
			if late := f.Kind == "stream_error" || f.Kind == "truncated"; late != f.Committed || f.Committed && !f.Stream {
				t.Errorf("%s: %s is %s, committed %v", platform, f.Name, f.Kind, f.Committed)
			}
			if f.Stream != (f.Answer.Status == 200 && f.Answer.Length == LengthChunked) {
				t.Errorf("%s: %s, stream %v", platform, f.Name, f.Stream)
			}
			if f.Stream && (platform == Bedrock) != strings.Contains(Request{Header: f.Answer.Header}.Get("content-type"), "amazon") {
				t.Errorf("%s: %s in the wrong framing", platform, f.Name)
			}
		}
		for _, k := range kinds {
			if !have[k] && (k != "billing_quota" || platform != Vertex) && (k != "unsupported_feature" || platform != Anthropic) {
				t.Errorf("%s never fails by %s", platform, k)
			}
		}
	}
}

func TestUnknownPlatform(t *testing.T) {
	if _, err := New("azure"); err == nil || !strings.Contains(err.Error(), "bedrock") {
		t.Errorf("err %v", err)
	}
}
