package trail

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tableBatch is how many rows are measured before they are written. Wider values
// that come later widen their column from there on.
const tableBatch = 256

// maxPadded is the width up to which columns are padded: one long value would push the
// rest off the screen.
const maxPadded = 40

var tableHeading = []string{"TIME", "ID", "ROUTE", "MODEL", "OUTCOME", "STATUS", "SERVED BY", "MS", "ADDED", "WHAT HAPPENED"}

// Columns of numbers are aligned to the right.
var rightAligned = map[int]bool{5: true, 7: true, 8: true}

const outcomeColumn = 4

type table struct {
	w      io.Writer
	style  Style
	widths []int
	rows   [][]string
}

func newTable(w io.Writer, style Style) *table {
	return &table{w: w, style: style, widths: make([]int, len(tableHeading))}
}

// Add keeps the row; every tableBatch rows are written together.
func (t *table) Add(r *Record) error {
	if len(t.rows) == 0 && t.widths[0] == 0 {
		t.add(tableHeading)
	}
	t.add([]string{
		stamp(r.Time), r.ID, r.Route, r.Model, r.Outcome, strconv.Itoa(r.Status),
		r.ServedBy, number(r.MS), number(r.AddedMS), Way(r),
	})
	if len(t.rows) < tableBatch {
		return nil
	}
	return t.Flush()
}

func (t *table) add(cells []string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		c = printable(c)
		if c == "" {
			c = "-"
		}
		row[i] = c
		t.widths[i] = min(max(t.widths[i], utf8.RuneCountInString(c)), maxPadded)
	}
	t.rows = append(t.rows, row)
}

// Flush writes the rows that are kept. Nothing at all is written for no records.
func (t *table) Flush() error {
	var b strings.Builder
	for _, row := range t.rows {
		t.line(&b, row)
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t *table) line(b *strings.Builder, row []string) {
	for i, c := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(c)))
		switch {
		case i == len(row)-1:
			b.WriteString(c)
		case rightAligned[i]:
			b.WriteString(pad + c)
		case i == outcomeColumn && t.style == Colour:
			b.WriteString(coloured(c) + pad)
		default:
			b.WriteString(c + pad)
		}
	}
	b.WriteByte('\n')
}

// coloured marks an outcome: green as planned, yellow moved, red when the client
// did not get an answer of a platform that worked.
func coloured(outcome string) string {
	switch outcome {
	case OutcomeServed:
		return "\x1b[32m" + outcome + "\x1b[0m"
	case OutcomeFailedOver:
		return "\x1b[33m" + outcome + "\x1b[0m"
	case OutcomeStreamFailed, OutcomeExhausted, OutcomeServiceDown:
		return "\x1b[31m" + outcome + "\x1b[0m"
	}
	return outcome
}
