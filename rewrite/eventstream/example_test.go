package eventstream_test

import (
	"encoding/base64"
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/eventstream"
)

// Bedrock's frames become the events that the client knows.
func Example() {
	event := base64.StdEncoding.EncodeToString([]byte(`{"type":"ping"}`))
	stream := eventstream.AppendFrame(nil, &eventstream.Frame{
		Kind:      eventstream.KindEvent,
		EventType: []byte("chunk"),
		Payload:   []byte(`{"bytes":"` + event + `","p":"abcd"}`),
	})
	var c eventstream.Converter
	out, _ := c.Convert(nil, stream[:20], nil)
	out, _ = c.Convert(out, stream[20:], nil)
	fmt.Printf("%s", c.End(out))
	// Output:
	// event: ping
	// data: {"type":"ping"}
	//
	// event: error
	// data: {"type":"error","error":{"type":"api_error","message":"The platform ended the stream before the message was complete."}}
}
