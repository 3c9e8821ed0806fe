package operate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/internal/trail"
)

func Example() {
	fmt.Println(operate.CheckAddress(operate.Admin, "127.0.0.1:9003", operate.Security{}))

	sink := trail.NewSink(100, nil)
	handler := operate.AdminHandler(operate.Options{
		Ready:   func() operate.Ready { return operate.Ready{Reasons: []string{"no policy is loaded"}} },
		Metrics: http.NotFoundHandler(),
		Recent:  sink.Recent,
	})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9003/readyz", http.NoBody))
	fmt.Println(answer.Code)
	// Output:
	// <nil>
	// 503
}
