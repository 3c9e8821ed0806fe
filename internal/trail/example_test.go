package trail_test

import (
	"fmt"
	"os"
	"time"

	"github.com/crossdoor/crossdoor/internal/trail"
)

func Example() {
	sink := trail.NewSink(100, nil)
	sink.Add(&trail.Record{
		Time: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), ID: "01A", Route: "chat",
		Model: "claude-haiku-4-5", Status: 200, Outcome: trail.OutcomeFailedOver, ServedBy: "foundry", MS: 55, AddedMS: 12,
		Attempts: []trail.Attempt{
			{N: 1, Target: "anthropic", Outcome: "overloaded", MS: 12, Decision: trail.DecisionFailover},
			{N: 2, Target: "foundry", Outcome: "ok", MS: 43, Decision: trail.DecisionServe},
		},
	})

	out, err := trail.NewPrinter("table", os.Stdout, trail.Plain)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range sink.Recent(trail.Filter{FailedOver: true}) {
		if err := out.Add(r); err != nil {
			fmt.Println(err)
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// TIME                      ID   ROUTE  MODEL             OUTCOME      STATUS  SERVED BY  MS  ADDED  WHAT HAPPENED
	// 2026-11-30T08:00:00.000Z  01A  chat   claude-haiku-4-5  failed_over     200  foundry    55     12  anthropic overloaded 12ms, foundry ok 43ms
}
