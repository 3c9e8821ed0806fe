package trail

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Printer writes records for people or for tools. Add writes one (or keeps it
// for the moment), Flush writes what is kept; it is called once, at the end.
type Printer interface {
	Add(r *Record) error
	Flush() error
}

// Style says whether a table may have colours.
type Style uint8

// The styles: Plain for pipes, files and NO_COLOR, Colour for terminals.
const (
	Plain Style = iota
	Colour
)

// Formats lists what NewPrinter knows.
func Formats() []string { return []string{"table", "csv", "json"} }

// NewPrinter writes to w as format says: table (aligned), csv (with a heading),
// json (one line a record, as in the file). style counts for tables only.
func NewPrinter(format string, w io.Writer, style Style) (Printer, error) {
	switch format {
	case "table":
		return newTable(w, style), nil
	case "csv":
		return &csvPrinter{w: csv.NewWriter(w)}, nil
	case "json":
		return &jsonPrinter{w: w}, nil
	}
	return nil, fmt.Errorf("format %q: write one of %s", format, strings.Join(Formats(), ", "))
}

type jsonPrinter struct{ w io.Writer }

func (p *jsonPrinter) Add(r *Record) error {
	line, err := Encode(r)
	if err != nil {
		return err
	}
	_, err = p.w.Write(append(line, '\n'))
	return err
}

func (p *jsonPrinter) Flush() error { return nil }

var csvHeading = []string{
	"time", "id", "request_id", "route", "model", "stream", "client", "policy",
	"outcome", "status", "served_by", "tier", "attempts", "trail", "degraded",
	"committed_ms", "ms", "added_ms", "input_tokens", "output_tokens",
	"cache_read_input_tokens", "cache_creation_input_tokens", "stop_reason",
}

type csvPrinter struct {
	w       *csv.Writer
	started bool
}

func (p *csvPrinter) Add(r *Record) error {
	if err := p.start(); err != nil {
		return err
	}
	committed := ""
	if r.CommittedMS != nil {
		committed = number(*r.CommittedMS)
	}
	usage := make([]string, 4)
	if u := r.Usage; u != nil {
		usage = []string{
			number(u.InputTokens), number(u.OutputTokens),
			number(u.CacheReadInputTokens), number(u.CacheCreationInputTokens),
		}
	}
	row := []string{
		stamp(r.Time), cell(r.ID), cell(r.RequestID), cell(r.Route), cell(r.Model),
		strconv.FormatBool(r.Stream), cell(r.Client), cell(r.Policy),
		cell(r.Outcome), number(int64(r.Status)), cell(r.ServedBy), cell(r.Tier),
		number(int64(len(r.Attempts))), cell(Way(r)), cell(strings.Join(r.Degraded, " ")),
		committed, number(r.MS), number(r.AddedMS),
	}
	return p.w.Write(append(append(row, usage...), cell(r.StopReason)))
}

func (p *csvPrinter) Flush() error {
	if err := p.start(); err != nil {
		return err
	}
	p.w.Flush()
	return p.w.Error()
}

func (p *csvPrinter) start() error {
	if p.started {
		return nil
	}
	p.started = true
	return p.w.Write(csvHeading)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// cell keeps a value that a client chose from becoming a formula in a
// spreadsheet (OWASP, CSV injection).
func cell(s string) string {
	s = printable(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// Way is what happened, in the form of the x-crossdoor-trail header:
// `anthropic overloaded 12ms, foundry ok 843ms`, skipped targets after the
// attempts as `foundry skipped:ejected`.
func Way(r *Record) string {
	parts := make([]string, 0, len(r.Attempts)+len(r.Plan))
	for _, a := range r.Attempts {
		parts = append(parts, fmt.Sprintf("%s %s %dms", a.Target, a.Outcome, a.MS))
	}
	for _, p := range r.Plan {
		if p.Skipped != "" {
			parts = append(parts, p.Target+" skipped:"+p.Skipped)
		}
	}
	return strings.Join(parts, ", ")
}
