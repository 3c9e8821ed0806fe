package main

import (
	"fmt"
	"math"
	"strings"
)

// markdown is everything that a run has found.
func (rep *report) markdown() string {
	var b strings.Builder
	kind := "full run"
	if rep.quick {
		kind = "quick run: a sign that the bench works, not a measurement"
	}
	fmt.Fprintf(&b, "Envoy %s, `--concurrency 1`; %s; %s, %.0f minutes.\n\n", rep.envoy, rep.machine, kind, math.Ceil(rep.took.Minutes()))
	rep.writeGates(&b)
	rep.writeJSON(&b)
	rep.writeCrossing(&b)
	rep.writeFailed(&b)
	rep.writeEvents(&b)
	rep.writeCPU(&b)
	rep.writePeaks(&b)
	rep.writeMemory(&b)
	rep.writeAlone(&b)
	return b.String()
}

// table writes a heading, a header and the rows, unless there are none.
func table(b *strings.Builder, title, header string, rows []string) {
	if len(rows) == 0 {
		return
	}
	line := "|" + strings.Repeat(" --- |", strings.Count(header, "|")+1)
	fmt.Fprintf(b, "### %s\n\n| %s |\n%s\n", title, header, line)
	for _, r := range rows {
		fmt.Fprintf(b, "| %s |\n", r)
	}
	b.WriteString("\n")
}

func verdict(ok bool) string {
	if ok {
		return "met"
	}
	return "**missed**"
}

func (rep *report) writeGates(b *strings.Builder) {
	var rows []string
	add := func(what string, e estimate, gate float64) {
		rows = append(rows, fmt.Sprintf("%s | %s | at most %.2f | %s", what, e, gate, verdict(e.Mid <= gate)))
	}
	for _, r := range rep.results {
		switch {
		case r.size == kib && r.events == 0 && r.clients == 1 && r.rate == 0 && r.also == healthy:
			add("Added median latency at 1 KB, over the no-op's", r.added(), gateAdded)
		case r.size == kib && r.events == 0 && r.clients == 1 && r.also == failing:
			add("Each further attempt at 1 KB, over the no-op's", r.further(), gateAttempt)
		case r.events > 0 && r.clients == 1 && r.also == healthy:
			add(fmt.Sprintf("An event after the commit (%d events), over Envoy alone, p50", r.events), r.event50(), gateEvent)
			add(fmt.Sprintf("An event after the commit (%d events), over Envoy alone, p99", r.events), r.event99(), gateEvent99)
		}
	}
	for _, f := range rep.memory {
		if f.side == sideP {
			rows = append(rows, fmt.Sprintf("The service's memory with %d bodies of 32 MB in flight | %s | at most %s | %s", held, megabytes(f.heldService), megabytes(gateMemory), verdict(f.heldService <= gateMemory)))
		}
	}
	rows = append(rows, rep.aloneGates()...)
	table(b, "Against the gates", "what | measured (interval) | gate | ", rows)
}

func (rep *report) writeJSON(b *strings.Builder) {
	rows := make([]string, 0, len(rep.results))
	for _, r := range rep.pick(func(r *result) bool { return r.events == 0 && r.also == healthy }) {
		mid := func(s int) string { return duration(median(r.healthy[s].p50)) }
		tail := func(s int) string { return duration(median(r.healthy[s].p99)) }
		perSecond := r.throughput().String()
		if r.rate > 0 {
			perSecond = "-"
		}
		rows = append(rows, fmt.Sprintf("%s | %d | %s | %s | %s | %s / %s / %s | %s | %s | %d", r.name(), r.clients,
			mid(sideD), mid(sideN), mid(sideP), tail(sideD), tail(sideN), tail(sideP), r.added(), perSecond, len(r.healthy[sideD].p50)))
	}
	table(b, "JSON, no failure", "body | clients | Envoy alone, p50 | no-op, p50 | Crossdoor, p50 | p99 of the three | added, over the no-op's | requests/s, over the no-op's | blocks", rows)
}

// writeCrossing is about requests that cross to Amazon Bedrock: another body,
// signed, and a stream that is converted.
func (rep *report) writeCrossing(b *strings.Builder) {
	rows := make([]string, 0, len(rep.results))
	for _, r := range rep.pick(func(r *result) bool { return r.also == crossing }) {
		mid := func(s *series) string { return duration(median(s.p50)) }
		p, crossed := &r.healthy[sideP], &r.other[sideP]
		event := "-"
		if r.events > 0 {
			event = estimateOf(ratios(crossed.event50, r.healthy[sideD].event50)).String()
		}
		used := "-"
		if c, ok := r.cost(sideP, rep.twin(r)); ok {
			used = duration(c.envoy) + " / " + duration(c.service)
		}
		rows = append(rows, fmt.Sprintf("%s | %s / %s / %s | %s | %s | %s | %s | %s | %d", r.name(), mid(&r.healthy[sideD]), mid(&r.healthy[sideN]), mid(p), mid(crossed),
			r.crossed(), estimateOf(ratios(crossed.p50, p.p50)), event, used, len(crossed.p50)))
	}
	table(b, "Crossing to Amazon Bedrock: the body changed and signed, a stream converted, one client",
		"load | p50, nothing changed: Envoy alone / no-op / Crossdoor | p50, Crossdoor crossing | added, over the no-op's | over Crossdoor with nothing changed | an event, over Envoy alone, p50 | processor time crossing: Envoy / service | blocks", rows)
}

func (rep *report) writeFailed(b *strings.Builder) {
	rows := make([]string, 0, len(rep.results))
	for _, r := range rep.pick(func(r *result) bool { return r.also == failing }) {
		extra := func(s int) string {
			healthy := median(r.healthy[s].p50)
			return fmt.Sprintf("%s (%s more)", duration(median(r.other[s].p50)), duration(median(r.other[s].p50)-healthy))
		}
		rows = append(rows, fmt.Sprintf("%s | %d | %s | %s | %s | %s | %d", r.name(), r.clients, extra(sideD), extra(sideN), extra(sideP), r.further(), len(r.other[sideD].p50)))
	}
	table(b, "One failed attempt", "load | clients | Envoy's own retry, p50 | no-op, p50 | Crossdoor, p50 | more, over the no-op's | blocks", rows)
}

func (rep *report) writeEvents(b *strings.Builder) {
	rows := make([]string, 0, len(rep.results))
	for _, r := range rep.pick(func(r *result) bool { return r.events > 0 && r.also == healthy }) {
		of := func(pick func(*series) []float64) string {
			parts := make([]string, 0, sides)
			for s := range sides {
				parts = append(parts, duration(median(pick(&r.healthy[s]))))
			}
			return strings.Join(parts, " / ")
		}
		rows = append(rows, fmt.Sprintf("%s, one each %v | %d | %s | %s | %s | %s | %s | %d", r.name(), r.pace, r.clients,
			of(func(s *series) []float64 { return s.event50 }), of(func(s *series) []float64 { return s.event99 }),
			of(func(s *series) []float64 { return s.first }), r.event50(), r.event99(), len(r.healthy[sideD].p50)))
	}
	table(b, "Streams: one event, after the commit", "load | clients | p50: Envoy alone / no-op / Crossdoor | p99 | first byte | p50, Crossdoor over Envoy alone | p99 | blocks", rows)
}

func (rep *report) writeCPU(b *strings.Builder) {
	var rows []string
	for _, r := range rep.pick(func(r *result) bool { return r.also != crossing }) {
		var c [sides]cost
		ok := true
		for s := range sides {
			if c[s], ok = r.cost(s, rep.twin(r)); !ok {
				break
			}
		}
		if !ok {
			continue
		}
		rows = append(rows, fmt.Sprintf("%s | %s / %s / %s | %s / %s | %s", r.title(), duration(c[sideD].envoy), duration(c[sideN].envoy), duration(c[sideP].envoy),
			duration(c[sideN].service), duration(c[sideP].service), ratio((c[sideP].envoy+c[sideP].service)/(c[sideN].envoy+c[sideN].service))))
	}
	table(b, "Processor time a request", "load | Envoy: alone / no-op / Crossdoor | service: no-op / Crossdoor | both, Crossdoor over the no-op", rows)
}

func (rep *report) writePeaks(b *strings.Builder) {
	rows := make([]string, 0, len(rep.results))
	for _, r := range rep.results {
		p := r.peaks
		rows = append(rows, fmt.Sprintf("%s | %s / %s / %s | %s / %s", r.title(), megabytes(p[sideD].envoy), megabytes(p[sideN].envoy), megabytes(p[sideP].envoy),
			megabytes(p[sideN].service), megabytes(p[sideP].service)))
	}
	table(b, "Peak memory (VmHWM), the processes having run all loads above", "load | Envoy: alone / no-op / Crossdoor | service: no-op / Crossdoor", rows)
}

func (rep *report) writeMemory(b *strings.Builder) {
	rows := make([]string, 0, len(rep.memory))
	for _, f := range rep.memory {
		rows = append(rows, fmt.Sprintf("%s | %s | %s | %s | %s | %s | %s", sideNames[f.side], megabytes(f.idleService), megabytes(f.heldService), megabytes(f.retryServed),
			megabytes(f.idleEnvoy), megabytes(f.heldEnvoy), megabytes(f.retryEnvoy)))
	}
	table(b, fmt.Sprintf("Peak memory of fresh processes, %d bodies of 32 MB in flight before the commit", held),
		"side | service: small requests | 8 bodies | 8 bodies, one failed attempt each | Envoy: small requests | 8 bodies | 8 bodies, one failed attempt each", rows)
}

// aloneGates are the rows of the rewriting alone.
func (rep *report) aloneGates() (rows []string) {
	add := func(what string, e estimate, gate float64) {
		rows = append(rows, fmt.Sprintf("%s | %s | at least %.2f | %s", what, small(e), gate, verdict(e.Mid >= gate)))
	}
	most := 0.0
	for _, a := range rep.alone {
		if a.shape != shapeMarks && a.shape != shapeStream {
			most = max(most, a.allocated)
		}
		switch a.step {
		case stepInspect:
			if gate := a.inspectGate(); gate > 0 {
				add("Inspecting a body, share of the speed of utf8.Valid: "+a.subject, estimateOf(a.overUTF8), gate)
			}
		case stepFoundry:
			if a.shape == shapeText {
				add("Changing the model, from the client's bytes to the platform's, GB/s: "+a.subject, estimateOf(a.speed), gateSpeed)
			}
		}
	}
	if len(rep.alone) > 0 {
		rows = append(rows, fmt.Sprintf("Allocated for each byte of a body, 1 MB and 32 MB, changed or not | %.4f | at most %.2f | %s", most, gateBytes, verdict(most <= gateBytes)))
	}
	return rows
}

func (rep *report) writeAlone(b *strings.Builder) {
	rows := make([]string, 0, len(rep.alone))
	for _, a := range rep.alone {
		speed, copied, valid := estimateOf(a.speed).String(), small(estimateOf(a.overCopy)), small(estimateOf(a.overUTF8))
		if a.step == stepNothing {
			speed, copied, valid = fmt.Sprintf("no copy; %.1f us", float64(a.size)/median(a.speed)/1000), "-", "-"
		}
		rows = append(rows, fmt.Sprintf("%s | %s | %s | %s | %s | %.4f | %d", a.subject, a.step, speed, copied, valid, a.allocated, len(a.speed)))
	}
	table(b, "The rewriting alone, in one goroutine", "what | step | GB/s | of memcpy | of utf8.Valid | allocated for each byte | blocks", rows)
}

// small writes a ratio that may be far below one.
func small(e estimate) string {
	if e.Blocks == 0 {
		return "-"
	}
	return fmt.Sprintf("**%.3f** (%.3f to %.3f)", e.Mid, e.Low, e.High)
}
