package demo

import (
	"fmt"
	"strconv"
	"time"
)

// result is what a step came to.
type result struct {
	step     step
	requests int
	attempts int
	added    time.Duration // the most that failing over added to a request
	took     time.Duration
	problems []string
}

// misbehaved counts the steps that did not go as they must, those that were not
// run included.
func misbehaved(results []result, planned int) int {
	n := planned - len(results)
	for _, r := range results {
		if len(r.problems) > 0 {
			n++
		}
	}
	return n
}

// summaryLines are the table at the end.
func summaryLines(results []result, planned int, took time.Duration) []line {
	lines := []line{text(""), {{faint, summaryRow("", "step", "requests", "attempts", "added", "took") + "result"}}}
	for i, r := range results {
		verdict := cell{green, "ok"}
		if len(r.problems) > 0 {
			verdict = cell{red, "wrong"}
		}
		added := "-"
		if r.added > 0 {
			added = millis(r.added)
		}
		lines = append(lines, line{
			{noColour, summaryRow(strconv.Itoa(i+1), r.step.short, strconv.Itoa(r.requests), strconv.Itoa(r.attempts), added, seconds(r.took))},
			verdict,
		})
	}
	bad := misbehaved(results, planned)
	end := cell{green, fmt.Sprintf("all %d steps behaved", planned)}
	if bad > 0 {
		end = cell{red, fmt.Sprintf("%d of %d steps did not behave", bad, planned)}
	}
	return append(lines, text(""), line{end, {noColour, ", " + seconds(took) + " in all"}})
}

func summaryRow(n, title, requests, attempts, added, took string) string {
	return right(n, 2) + " " + left(title, 32) + right(requests, 9) + right(attempts, 9) + right(added, 9) + right(took, 8) + "  "
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
