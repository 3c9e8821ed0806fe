package messages_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/messages"
)

// A held stream: nothing commits it before the delta.
func Example() {
	for _, data := range []string{
		`{"type":"message_start","message":{}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}`,
	} {
		step, _ := messages.Read(nil, []byte(data))
		fmt.Println(step)
	}
	// Output:
	// start
	// none
	// content
}
