package test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	reportTest = regexp.MustCompile(`(?m)^func (TestReport(\d\d)_\w+)\(`)
	reportRow  = regexp.MustCompile(`(?m)^\| (\d\d) \| .*\]\(https://.*\| (.*) \|$`)
	namedTest  = regexp.MustCompile("`(TestReport\\d\\d_\\w+)`")
)

// TestKnownFaults: docs/known-faults.md has a row for each of the 45 reports,
// with its tests or the word that it waits; and every test is named there.
func TestKnownFaults(t *testing.T) {
	exist := map[string]string{} // name to number
	for _, file := range sources(t, ".go") {
		for _, m := range reportTest.FindAllStringSubmatch(read(t, file), -1) {
			exist[m[1]] = m[2]
		}
	}
	page := read(t, "docs/known-faults.md")
	rows := reportRow.FindAllStringSubmatch(page, -1)
	if len(rows) != 45 {
		t.Errorf("%d rows, want 45", len(rows))
	}
	var numbers []string
	for _, row := range rows {
		numbers = append(numbers, row[1])
		tests := namedTest.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 && !strings.Contains(row[2], "not built yet") {
			t.Errorf("row %s has no test", row[1])
		}
		for _, name := range tests {
			if exist[name[1]] != row[1] {
				t.Errorf("row %s names %s, which is not a test of it", row[1], name[1])
			}
			delete(exist, name[1])
		}
	}
	if !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != len(rows) {
		t.Errorf("numbers are not in order: %v", numbers)
	}
	for name := range exist {
		t.Errorf("docs/known-faults.md does not name %s", name)
	}
}
