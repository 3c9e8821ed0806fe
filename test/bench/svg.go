package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// row is one line of the plot: a ratio with its interval and what it should
// stay below, 0 for nothing.
type row struct {
	group, label string
	est          estimate
	gate         float64
}

// rows are the ratios of a run in the order of the plot.
func (rep *report) rows() []row {
	var added, crossed, more, events []row
	for _, r := range rep.results {
		named := r.load
		named.also = healthy // the group says so
		label := named.title()
		switch {
		case r.also == crossing:
			crossed = append(crossed, row{"Crossdoor adds, the request crossing to Amazon Bedrock, over what the no-op adds", label, r.crossed(), 0})
		case r.also == failing:
			more = append(more, row{"A failed attempt adds, over the no-op's", label, r.further(), gateAttempt})
		case r.events > 0:
			events = append(events, row{"One event after the commit, over Envoy alone, p50", label, r.event50(), gateEvent})
		default:
			gate := 0.0
			if r.size == kib && r.clients == 1 && r.rate == 0 {
				gate = gateAdded
			}
			added = append(added, row{"Crossdoor adds, over what the no-op adds", label, r.added(), gate})
		}
	}
	return slices.Concat(added, crossed, more, events)
}

// Geometry of the plot, in pixels.
const (
	plotWidth = 860
	plotLeft  = 330
	plotRight = 820
	rowHeight = 22
	plotMost  = 2.0 // the right end of the axis; longer intervals end in it
)

// style makes the plot readable on a light and on a dark page.
const style = `<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.group{font-weight:600}.small{font-size:11px}
.grid{stroke:#d0d7de}.one{stroke:#57606a;stroke-dasharray:4 3}.bar{stroke:#0969da;stroke-width:3}.dot{fill:#0969da}.gate{stroke:#cf222e;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}.one{stroke:#8b949e}.bar{stroke:#58a6ff}.dot{fill:#58a6ff}.gate{stroke:#ff7b72}}
</style>
`

func across(ratio float64) float64 {
	return plotLeft + (plotRight-plotLeft)*min(max(ratio, 0), plotMost)/plotMost
}

// plot draws the rows: a dot for the median, a bar for the interval, a red tick
// for the gate.
func plot(rows []row) string {
	var body strings.Builder
	y, group := 30.0, ""
	for _, r := range rows {
		if math.IsNaN(r.est.Mid) {
			continue
		}
		if r.group != group {
			group = r.group
			y += 14
			fmt.Fprintf(&body, `<text class="group" x="10" y="%.0f">%s</text>`+"\n", y+4, html.EscapeString(group))
			y += rowHeight
		}
		drawRow(&body, r, y)
		y += rowHeight
	}
	height := y + 30
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" aria-label="Ratios of Crossdoor to a no-op service and to Envoy alone">`+"\n", plotWidth, height, plotWidth, height)
	b.WriteString(style)
	for i := range 5 {
		at := float64(i) * plotMost / 4
		class := "grid"
		if at == 1 {
			class = "one"
		}
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" y1="24" x2="%.1f" y2="%.0f"/><text class="small" text-anchor="middle" x="%.1f" y="16">%.1f</text>`+"\n", class, across(at), across(at), y, across(at), at)
	}
	b.WriteString(body.String())
	fmt.Fprintf(&b, `<text class="small" x="10" y="%.0f">Dot: median over blocks. Bar: its 95 %% interval. Red: not to be passed.</text>`+"\n</svg>\n", y+20)
	return b.String()
}

func drawRow(b *strings.Builder, r row, y float64) {
	fmt.Fprintf(b, `<text x="20" y="%.0f">%s</text>`, y+4, html.EscapeString(r.label))
	fmt.Fprintf(b, `<line class="bar" x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f"/>`, across(r.est.Low), y, across(r.est.High), y)
	if r.gate > 0 {
		fmt.Fprintf(b, `<line class="gate" x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f"/>`, across(r.gate), y-8, across(r.gate), y+8)
	}
	fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.0f" r="5"/>`, across(r.est.Mid), y)
	fmt.Fprintf(b, `<text class="small" x="%d" y="%.0f">%s</text>`+"\n", plotRight+8, y+4, ratio(r.est.Mid))
}
