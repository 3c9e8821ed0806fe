package fakeplatform_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

func Example() {
	s, err := fakeplatform.New(fakeplatform.Anthropic)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	s.Script(fakeplatform.Error(529, "Overloaded"))
	for range 2 {
		req, err := http.NewRequest(http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(`{"model":"claude-opus-5-5"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header = http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, s.Requests()[len(s.Requests())-1].Answer)
	}
	// Output:
	// 529 error 529
	// 200 message
}
