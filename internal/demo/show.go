package demo

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// The columns of a request's rows.
const (
	numberWidth   = 3
	targetWidth   = 11
	statusWidth   = 3
	outcomeWidth  = 15
	decisionWidth = 8
	timeWidth     = 8
	indent        = "  "
)

// row is one attempt of a request, or a target that was left out.
type row struct {
	number, target, status, outcome, decision, took string
	colour                                          colour
	got                                             cell // what the client got
}

func (r row) line() line {
	return line{
		{noColour, indent + left(r.number, numberWidth) + left(r.target, targetWidth) + " " + right(r.status, statusWidth) + " "},
		{r.colour, left(r.outcome, outcomeWidth)},
		{faint, " " + left(r.decision, decisionWidth)},
		{noColour, right(r.took, timeWidth) + "  "},
		r.got,
	}
}

// heading names the columns.
func heading() line {
	h := row{number: "#", target: "target", status: "", outcome: "outcome", decision: "then", took: "time", got: cell{noColour, "the client got"}}.line()
	for i := range h {
		h[i].colour = faint
	}
	return h
}

// requestLines show a request that is over: from its trail record, or, when there
// is none, from what the platforms saw.
func requestLines(number int, o observed) []line {
	var rows []row
	if o.record != nil {
		for _, p := range o.record.Plan {
			if p.Skipped != "" {
				rows = append(rows, row{target: p.Target, status: "-", outcome: p.Skipped, decision: "left out", colour: faint})
			}
		}
		rows = append(rows, attemptRows(o)...)
	} else {
		for _, a := range o.arrivals {
			rows = append(rows, arrivalRow(a, a.Ended))
		}
	}
	if len(rows) == 0 {
		rows = []row{{target: "-", status: "-", outcome: "no attempt"}}
	}
	rows[0].number = "#" + strconv.Itoa(number)
	rows[len(rows)-1].got = clientGot(o)
	lines := make([]line, len(rows))
	for i, r := range rows {
		lines[i] = r.line()
	}
	return lines
}

// attemptRows are the attempts as the trail has them, with the time that the
// platform saw; what never reached one has the trail's.
func attemptRows(o observed) []row {
	rows := make([]row, 0, len(o.record.Attempts))
	arrivals := o.arrivals
	for _, a := range o.record.Attempts {
		took := time.Duration(a.MS) * time.Millisecond
		if len(arrivals) > 0 && arrivals[0].target == a.Target {
			if end := arrivals[0].Ended; !end.IsZero() {
				took = end.Sub(arrivals[0].Headed)
			}
			arrivals = arrivals[1:]
		}
		rows = append(rows, row{
			target: a.Target, status: number3(a.Status), outcome: a.Outcome, decision: a.Decision,
			took: millis(took), colour: outcomeColour(a.Outcome),
		})
	}
	return rows
}

// runningLines show a request that is under way, as the platforms see it.
func runningLines(number int, f *flight, arrivals []arrival, now time.Time) []line {
	a := f.now()
	rows := make([]row, 0, len(arrivals))
	for _, one := range arrivals {
		rows = append(rows, arrivalRow(one, now))
	}
	if len(rows) == 0 {
		rows = []row{{target: "...", took: millis(now.Sub(f.began))}}
	}
	rows[0].number = "#" + strconv.Itoa(number)
	last := &rows[len(rows)-1]
	last.got = cell{faint, spinner(now)}
	if a.status != 0 {
		last.got.text += " " + strconv.Itoa(a.status)
	}
	if n := a.events(); n > 0 {
		last.got.text += fmt.Sprintf(", %d events so far", n)
	}
	lines := make([]line, len(rows))
	for i, r := range rows {
		lines[i] = r.line()
	}
	return lines
}

// arrivalRow is an attempt from the platform's side.
func arrivalRow(a arrival, now time.Time) row {
	r := row{target: a.target, outcome: a.Answer, decision: "running", colour: yellow}
	end := now
	if !a.Ended.IsZero() {
		r.decision, end = "answered", a.Ended
	}
	r.took = millis(end.Sub(a.Headed))
	return r
}

// clientGot is the answer in a few words; it stands in the row of the attempt
// that served.
func clientGot(o observed) cell {
	if o.status == 0 {
		return cell{red, "→ nothing"}
	}
	s := "→ " + strconv.Itoa(o.status)
	switch after := o.header.Get("retry-after"); {
	case o.kind == asStream && o.status == 200:
		s += fmt.Sprintf(", %d events, %s", o.events(), millis(o.total))
	case after != "":
		s += ", retry-after " + after + " s"
	default:
		s += " in " + millis(o.total)
	}
	if o.status == 200 {
		return cell{green, s}
	}
	return cell{red, s}
}

func outcomeColour(outcome string) colour {
	if outcome == "ok" {
		return green
	}
	return red
}

func number3(status int) string {
	if status == 0 {
		return "-"
	}
	return strconv.Itoa(status)
}

func millis(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
}

var spinnerFrames = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func spinner(now time.Time) string {
	i := int(now.UnixMilli()/redrawEvery.Milliseconds()) % len(spinnerFrames)
	return string(spinnerFrames[i])
}

// titleLine opens a step: its number and title, and its model at the right where
// there is room.
func titleLine(n int, s step, width int) line {
	title := fmt.Sprintf("%2d %s", n, s.title)
	room := width - utf8.RuneCountInString(title)
	if room < len(s.model)+2 {
		return line{{bold, title}}
	}
	return line{{bold, title}, {faint, right(s.model, room)}}
}

// verdictLines close a step.
func verdictLines(problems []string, width int) []line {
	if len(problems) == 0 {
		return []line{{{green, indent + " ok"}}}
	}
	var lines []line
	for _, p := range problems {
		prefix := indent + " wrong: "
		for _, one := range wrap(p, width-len(prefix)) {
			lines = append(lines, line{{red, prefix + one}})
			prefix = left("", len(prefix))
		}
	}
	return lines
}

func noteLine(s string) line { return line{{faint, indent + " · " + s}} }
