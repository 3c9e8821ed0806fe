package scan_test

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/scan"
)

// One member is read, the others are passed over.
func Example() {
	var s scan.Scanner
	s.Reset([]byte(`{"messages": [{"role": "user"}], "model": "m"}`))
	s.Open('{')
	for name, more := s.Member(); more; name, more = s.Member() {
		value, _ := s.Value()
		if s.Is(name, "model") {
			fmt.Printf("%s at %d\n", s.Bytes(value), value.Start)
		}
	}
	s.End()
	fault, _ := s.Fault()
	fmt.Println(fault)
	// Output:
	// "m" at 42
	// no fault
}
