package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/rewrite"
)

const explainHelp = `Say what a policy makes of a request: which targets would be tried in which order,
which are left out and why, and what each would be sent: the address, the headers, and the
difference to the client's body, byte by byte.

Nothing is sent, and neither health nor credentials are looked at: headers name the place of
a key, never its value. The request file is the body of POST /v1/messages ("-" is the standard
input); its content is shown only where an edit touches it.`

const explainExamples = `  crossdoor explain --policy crossdoor.yaml --request request.json
  crossdoor explain --policy crossdoor.yaml --request request.json --header 'anthropic-beta: context-1m-2025-08-07'
  crossdoor explain --policy crossdoor.yaml --request - --path /v1/messages/count_tokens --format json < request.json`

type explainFlags struct {
	policy, request, path, format string
	headers                       []string
}

func explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use: "explain", Short: "Say what a policy makes of a request", Long: explainHelp, Example: explainExamples,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fs := c.Flags()
	fs.StringVar(&f.policy, "policy", "", policyFlagHelp)
	fs.StringVar(&f.request, "request", "", "file with the request's body")
	fs.StringArrayVar(&f.headers, "header", nil, "header of the request, `NAME: VALUE`; several times for several")
	fs.StringVar(&f.path, "path", "/v1/messages", "path of the request, with its query")
	fs.StringVar(&f.format, "format", "text", "text or json")
	return c
}

func (f *explainFlags) run(c *cobra.Command) error {
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("--format %q: want text or json", f.format)}
	}
	if f.request == "" {
		return usageError{errors.New("--request: give the file with the request's body, or - for the standard input")}
	}
	headers, err := f.headerFields()
	if err != nil {
		return usageError{err}
	}
	path, err := policyPath(f.policy)
	if err != nil {
		return err
	}
	p, err := loadPolicy(path)
	if err != nil {
		return err
	}
	body, err := f.body(c.InOrStdin())
	if err != nil {
		return usageError{fmt.Errorf("--request: %w", err)}
	}
	e, err := extproc.Explain(p, f.path, headers, body)
	if err != nil {
		return fmt.Errorf("the request would be refused: %w", err)
	}
	if f.format == "json" {
		return explainJSON(c.OutOrStdout(), e)
	}
	f.text(c.OutOrStdout(), e, body)
	return nil
}

func (f *explainFlags) body(in io.Reader) ([]byte, error) {
	if f.request == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(f.request)
}

// headerFields are the --header flags. Without a content-type it is JSON, as every
// client's.
func (f *explainFlags) headerFields() ([]extproc.RequestHeader, error) {
	out := []extproc.RequestHeader{}
	typed := false
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.ToLower(strings.TrimSpace(name)); !ok || name == "" {
			return nil, fmt.Errorf("--header %q: want NAME: VALUE", line)
		}
		typed = typed || name == "content-type"
		out = append(out, extproc.RequestHeader{Name: name, Value: strings.TrimSpace(value)})
	}
	if !typed {
		out = append(out, extproc.RequestHeader{Name: "content-type", Value: "application/json"})
	}
	return out, nil
}

// sends reports whether the request has a header of this name.
func (f *explainFlags) sends(name string) bool {
	return slices.ContainsFunc(f.headers, func(line string) bool {
		own, _, _ := strings.Cut(line, ":")
		return strings.EqualFold(strings.TrimSpace(own), name)
	})
}

func (f *explainFlags) text(w io.Writer, e *extproc.Explanation, body []byte) {
	stream := ""
	if e.Stream {
		stream = ", a stream"
	}
	fmt.Fprintf(w, "route %s: model %s%s, %d bytes\n", e.Route, e.Model, stream, len(body))
	if len(e.Uses) > 0 {
		fmt.Fprintf(w, "uses %s\n", strings.Join(e.Uses, ", "))
	}
	for i := range e.Places {
		f.place(w, i+1, &e.Places[i], body)
	}
}

func (f *explainFlags) place(w io.Writer, n int, p *extproc.ExplainedPlace, body []byte) {
	fmt.Fprintf(w, "\n%d. %s (%s", n, p.Target, p.Platform)
	if p.Model != "" {
		fmt.Fprintf(w, ", %s", p.Model)
	}
	fmt.Fprintf(w, "): %s\n", verdictOn(p))
	if p.URL == "" {
		return
	}
	fmt.Fprintf(w, "   POST %s\n", p.URL)
	for _, h := range p.Headers {
		switch {
		case strings.HasPrefix(h.Name, ":"):
		case h.Value != "":
			fmt.Fprintf(w, "   + %s: %s\n", h.Name, h.Value)
		case f.sends(h.Name):
			fmt.Fprintf(w, "   - %s\n", h.Name)
		}
	}
	if string(p.Body) == string(body) {
		fmt.Fprintln(w, "   body: the client's bytes")
		return
	}
	fmt.Fprintf(w, "   body: %d bytes\n", len(p.Body))
	for _, edit := range p.Edits {
		explainEdit(w, edit, body)
	}
	for _, member := range p.Leftover {
		fmt.Fprintf(w, "   guard: %s is still in the request: please report this\n", member)
	}
}

// explainEdit shows one edit; positions count bytes of the client's body from 0.
func explainEdit(w io.Writer, e rewrite.Edit, body []byte) {
	fmt.Fprintf(w, "   @ byte %d\n", e.Start)
	if e.Len() > 0 {
		fmt.Fprintf(w, "     - %s\n", shortened(body[e.Start:e.End]))
	}
	if len(e.New) > 0 {
		fmt.Fprintf(w, "     + %s\n", shortened(e.New))
	}
}

// shortened is text on one line, its middle left out where it is long.
func shortened(text []byte) string {
	const most = 200
	s := strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(string(text))
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s … %d bytes … %s", s[:most/2], len(s)-most, s[len(s)-most/2:])
}

func verdictOn(p *extproc.ExplainedPlace) string {
	switch {
	case len(p.Refused) > 0:
		return "left out, does not take " + strings.Join(p.Refused, ", ")
	case p.Skip != "":
		return "left out, " + p.Skip
	case len(p.Stripped) > 0:
		return "without " + strings.Join(p.Stripped, ", ") + " (the client is told)"
	case len(p.Lossless) > 0:
		return "without " + strings.Join(p.Lossless, ", ") + ", which loses nothing"
	}
	return "as it is"
}

// explainJSON writes the same for programs; bodies are text.
func explainJSON(w io.Writer, e *extproc.Explanation) error {
	type edit struct {
		Start int    `json:"start"`
		End   int    `json:"end"`
		New   string `json:"new"`
	}
	type place struct {
		Target   string            `json:"target"`
		Platform string            `json:"platform"`
		Model    string            `json:"model,omitempty"`
		Skipped  string            `json:"skipped,omitempty"`
		Refused  []string          `json:"refused,omitempty"`
		Stripped []string          `json:"stripped,omitempty"`
		Lossless []string          `json:"lossless,omitempty"`
		Leftover []string          `json:"leftover,omitempty"`
		URL      string            `json:"url,omitempty"`
		Headers  map[string]string `json:"headers,omitempty"` // "" is removed
		Edits    []edit            `json:"edits,omitempty"`
		Body     string            `json:"body,omitempty"`
	}
	out := struct {
		Route  string   `json:"route"`
		Model  string   `json:"model"`
		Stream bool     `json:"stream"`
		Uses   []string `json:"uses,omitempty"`
		Plan   []place  `json:"plan"`
	}{Route: e.Route, Model: e.Model, Stream: e.Stream, Uses: e.Uses}
	for _, p := range e.Places {
		one := place{
			Target: p.Target, Platform: p.Platform, Model: p.Model, Skipped: p.Skip, Refused: p.Refused, Stripped: p.Stripped,
			Lossless: p.Lossless, Leftover: p.Leftover, URL: p.URL, Headers: map[string]string{}, Body: string(p.Body),
		}
		for _, h := range p.Headers {
			one.Headers[h.Name] = h.Value
		}
		for _, ed := range p.Edits {
			one.Edits = append(one.Edits, edit{Start: ed.Start, End: ed.End, New: string(ed.New)})
		}
		out.Plan = append(out.Plan, one)
	}
	return json.NewEncoder(w).Encode(out)
}
