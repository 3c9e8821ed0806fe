package sse_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/sse"
)

// A stream arrives in pieces that know nothing of its events.
func Example() {
	var p sse.Parser
	for _, chunk := range []string{"event: ping\nda", "ta: {}\r", "\n\r\n: a comment\n\ndata: bye\n\n"} {
		err := p.Feed([]byte(chunk), func(e sse.Event) bool {
			fmt.Printf("%q %q\n", e.Name, e.Data)
			return true
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// "ping" "{}"
	// "" "bye"
}
