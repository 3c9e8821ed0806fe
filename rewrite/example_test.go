package rewrite_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite"
)

// A request goes out to a platform that knows the model by another name.
func Example() {
	body := []byte(`{"model": "claude-haiku-4-5-20251001", "max_tokens": 16, "messages": []}`)
	facts, err := rewrite.Inspect(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	edits := []rewrite.Edit{rewrite.SetModel(facts, "claude-haiku-4-5")}
	out := rewrite.Splice(make([]byte, 0, rewrite.Length(body, edits)), body, edits)
	fmt.Printf("%s\n", out)
	// Output: {"model": "claude-haiku-4-5", "max_tokens": 16, "messages": []}
}
