package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/internal/trail"
)

const trailHelp = `Show what happened to requests: which targets were tried, what each of them came
to, who served, how long it took. Newest last.

Without --file and --policy the running service is asked for the records it has
in memory (trail.recent of the policy). --file reads a trail file ("-" is the
standard input), --policy the trail.file of a policy. CROSSDOOR_POLICY stands for
--policy when none of the three is given and its policy has a trail.file.

--since takes a duration before now (90s, 1h) or an RFC 3339 time. --target
finds requests with an attempt at it, --id also the request IDs of platforms,
--failed-over those whose answer came from a later target.

Outcomes: served, failed_over, stream_failed, stopped, exhausted, rejected,
client_gone, service_down.`

const trailExamples = `  crossdoor trail --since 10m --failed-over
  crossdoor trail --id 01KB9ZC3N7W5T0F9D1Q2R3S4T5 --format json
  crossdoor trail --file /var/log/crossdoor/trail.jsonl --outcome exhausted
  crossdoor trail --policy crossdoor.yaml --target anthropic --format csv > today.csv
  zcat trail.jsonl.*.gz | crossdoor trail --file - --route interactive`

// trailFlags is the command line of `trail`.
type trailFlags struct {
	admin, tokenFile, caFile string
	file, policy             string
	since, format            string
	filter                   trail.Filter
}

// trailCommand is `crossdoor trail`. Its errors are usageErrors where the
// command line or the policy is wrong.
func trailCommand() *cobra.Command {
	var f trailFlags
	c := &cobra.Command{
		Use:     "trail",
		Short:   "Show what happened to requests",
		Long:    trailHelp,
		Example: trailExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	fs := c.Flags()
	fs.StringVar(&f.admin, "admin", "127.0.0.1:9003", "admin address of the running service, HOST:PORT or unix:PATH")
	fs.StringVar(&f.tokenFile, "admin-token-file", "", "file with the token of an admin address that is not loopback")
	fs.StringVar(&f.caFile, "admin-ca", "", "CA file for its certificate (default the system's)")
	fs.StringVar(&f.file, "file", "", "read this trail file")
	fs.StringVar(&f.policy, "policy", "", "read the trail file of this policy")
	fs.StringVar(&f.since, "since", "", "only records of the last DURATION, or since TIME")
	fs.StringVar(&f.filter.Route, "route", "", "only this route")
	fs.StringVar(&f.filter.Target, "target", "", "only with an attempt at this target")
	fs.StringVar(&f.filter.Outcome, "outcome", "", "only this outcome")
	fs.StringVar(&f.filter.ID, "id", "", "only this request, by its own or a platform's ID")
	fs.BoolVar(&f.filter.FailedOver, "failed-over", false, "only what was answered by a later target")
	fs.StringVar(&f.format, "format", "table", "table, csv or json (one line a record)")
	c.AddCommand(trailSummaryCommand())
	return c
}

func trailSummaryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "summary",
		Short: "Sums over the trail (not supported yet)",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("trail summary: not supported yet; `crossdoor trail --format csv` gives what to sum up")}
		},
	}
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s: unexpected %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
}

func (f *trailFlags) run(c *cobra.Command) error {
	if err := f.check(c); err != nil {
		return usageError{err}
	}
	printer, err := trail.NewPrinter(f.format, c.OutOrStdout(), styleOf(c.OutOrStdout()))
	if err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	path, err := f.source(c)
	if err != nil {
		return err
	}
	shown := 0
	show := func(r *trail.Record) error {
		shown++
		return printer.Add(r)
	}
	var bad int
	if path == "" {
		bad, err = f.ask(c, show)
	} else {
		bad, err = f.read(c, path, show)
	}
	// What came before an error is shown too.
	if err := errors.Join(err, printer.Flush()); err != nil {
		return err
	}
	f.tell(c.ErrOrStderr(), bad, shown)
	return nil
}

func (f *trailFlags) check(c *cobra.Command) error {
	given := 0
	for _, name := range []string{"admin", "file", "policy"} {
		if c.Flags().Changed(name) {
			given++
		}
	}
	if given > 1 {
		return errors.New("--admin, --file, --policy: give one of them")
	}
	if f.file == "" && c.Flags().Changed("file") || f.policy == "" && c.Flags().Changed("policy") {
		return errors.New("--file and --policy need a path")
	}
	if err := trail.CheckOutcome(f.filter.Outcome); err != nil {
		return fmt.Errorf("--%w", err)
	}
	since, err := trail.ParseSince(f.since, time.Now())
	if err != nil {
		return fmt.Errorf("--%w", err)
	}
	f.filter.Since = since
	return nil
}

// source is the file to read; "" is the running service.
func (f *trailFlags) source(c *cobra.Command) (string, error) {
	if f.file != "" || c.Flags().Changed("admin") {
		return f.file, nil
	}
	if f.policy != "" {
		path, err := trailFile(f.policy)
		if err == nil && path == "" {
			err = fmt.Errorf("%s has no trail.file: ask the running service with --admin, or name a file with --file", f.policy)
		}
		return path, err
	}
	if policy := os.Getenv("CROSSDOOR_POLICY"); policy != "" {
		return trailFile(policy)
	}
	return "", nil
}

// trailFile is a policy's trail.file, "" when it has none.
func trailFile(policy string) (string, error) {
	p, err := loadPolicy(policy)
	if err != nil {
		return "", err
	}
	return p.Trail.File, nil
}

func (f *trailFlags) ask(c *cobra.Command, show func(*trail.Record) error) (bad int, err error) {
	client, err := operate.NewClient(f.admin, operate.ClientOptions{TokenFile: f.tokenFile, CAFile: f.caFile})
	if err != nil {
		return 0, usageError{err}
	}
	return client.Trail(c.Context(), f.filter, show)
}

func (f *trailFlags) read(c *cobra.Command, path string, show func(*trail.Record) error) (bad int, err error) {
	if path == "-" {
		return trail.Read(c.InOrStdin(), f.filter, show)
	}
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("trail file %s is not there: has `crossdoor serve` run with this trail.file?", path)
	}
	if err != nil {
		return 0, fmt.Errorf("trail file: %w", err)
	}
	defer func() { _ = in.Close() }()
	bad, err = trail.Read(in, f.filter, show)
	if err != nil {
		return bad, fmt.Errorf("trail file: %w", err)
	}
	return bad, nil
}

// tell says on the side what the records do not.
func (f *trailFlags) tell(w io.Writer, bad, shown int) {
	if bad > 0 {
		fmt.Fprintf(w, "crossdoor: passed over, being no trail records: %d line(s)\n", bad)
	}
	if shown == 0 {
		fmt.Fprintln(w, "crossdoor: no record matches")
	}
}

// styleOf allows colours on terminals that want them (https://no-color.org).
func styleOf(w io.Writer) trail.Style {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return trail.Plain
	}
	return trail.Colour
}
