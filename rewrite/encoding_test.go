package rewrite

import (
	"bytes"
	"compress/gzip"
	"testing"
)

func zipped(t *testing.T, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDecode(t *testing.T) {
	plain := bytes.Repeat([]byte(`{"model":"m"} `), 1000)
	good := zipped(t, plain)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	lying := bytes.Clone(good)
	copy(lying[len(lying)-4:], []byte{0xff, 0xff, 0xff, 0xff})
	bomb := zipped(t, make([]byte, 8<<20))
	for _, c := range []struct {
		name, encoding string
		body           []byte
		limit          int64
		status         int
	}{
		{"none", "", plain, 1 << 20, 0},
		{"identity", "identity", plain, 1 << 20, 0},
		{"identity above the limit", "", plain, 100, 413},
		{"gzip", "gzip", good, 1 << 20, 0},
		{"gzip in capitals, with blanks", " GZip ", good, 1 << 20, 0},
		{"its old name", "x-gzip", good, 1 << 20, 0},
		{"exactly the limit", "gzip", good, int64(len(plain)), 0},
		{"one above the limit", "gzip", good, int64(len(plain)) - 1, 413},
		{"a bomb", "gzip", bomb, 1 << 20, 413},
		{"two members", "gzip", append(zipped(t, plain[:5000]), zipped(t, plain[5000:])...), 1 << 20, 0},
		{"nothing", "gzip", nil, 1 << 20, 400},
		{"not gzip", "gzip", plain, 1 << 20, 400},
		{"cut", "gzip", good[:len(good)/2], 1 << 20, 400},
		{"trailer cut", "gzip", good[:len(good)-3], 1 << 20, 400},
		{"wrong checksum", "gzip", flipped, 1 << 20, 400},
		{"a length that lies", "gzip", lying, 1 << 20, 400},
		{"bytes after it", "gzip", append(bytes.Clone(good), "junk"...), 1 << 20, 400},
		{"brotli", "br", plain, 1 << 20, 415},
		{"zstd", "zstd", plain, 1 << 20, 415},
		{"twice", "gzip, gzip", zipped(t, good), 1 << 20, 415},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Decode(c.encoding, c.body, c.limit)
			if c.status == 0 {
				if err != nil || !bytes.Equal(got, plain) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				return
			}
			refusal := AsRequestError(err)
			want := map[int]string{400: "invalid_request_error", 413: "request_too_large", 415: "invalid_request_error"}[c.status]
			if refusal == nil || refusal.Status != c.status || refusal.Type != want || got != nil {
				t.Fatalf("%+v, want %d %s", refusal, c.status, want)
			}
		})
	}
}

func TestDecodeIdentityIsTheSameSlice(t *testing.T) {
	body := []byte("{}")
	if got, err := Decode("identity", body, 10); err != nil || &got[0] != &body[0] {
		t.Errorf("not the same bytes (%v)", err)
	}
}

func TestDecodedBytesSurviveTheNextCall(t *testing.T) {
	a, err := Decode("gzip", zipped(t, []byte("first")), 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode("gzip", zipped(t, []byte("other")), 100); err != nil {
		t.Fatal(err)
	}
	if string(a) != "first" {
		t.Errorf("overwritten by a later call: %q", a)
	}
}

func TestReadable(t *testing.T) {
	const text = `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(text))
	_ = w.Flush() // what was written can be read although the end is missing
	cut := bytes.Clone(packed.Bytes())
	_ = w.Close()
	for _, c := range []struct {
		encoding string
		body     []byte
		limit    int64
		want     string
	}{
		{"", []byte(text), 5, text},
		{"Identity", []byte(text), 1 << 10, text},
		{"gzip", packed.Bytes(), 1 << 10, text},
		{"gzip", packed.Bytes(), 7, text[:7]},
		{"gzip", cut, 1 << 10, text},
		{"gzip", []byte(text), 1 << 10, ""},
		{"br", []byte(text), 1 << 10, ""},
	} {
		if got := Readable(c.encoding, c.body, c.limit); string(got) != c.want {
			t.Errorf("%s: %q, want %q", c.encoding, got, c.want)
		}
	}
}
