package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// options of a run.
type options struct {
	bin    programs
	quick  bool
	update bool
	only   string
	docs   string
	log    io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 2 && args[0] == "noop" {
		return serveNoop(ctx, args[1])
	}
	o := options{log: log}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(log)
	fs.StringVar(&o.bin.envoy, "envoy", os.Getenv("ENVOY"), "Envoy binary; default $ENVOY")
	fs.StringVar(&o.bin.crossdoor, "crossdoor", "", "crossdoor binary; default: built for the run")
	fs.BoolVar(&o.quick, "quick", os.Getenv("BENCH_QUICK") != "", "some two minutes; also BENCH_QUICK=1")
	fs.BoolVar(&o.update, "update", false, "write the table and the plot to -docs")
	fs.StringVar(&o.only, "only", "", "only the cases whose name has this text; also `rewriting alone` and `memory`")
	fs.StringVar(&o.docs, "docs", "docs", "folder of performance.md and performance.svg")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.bin.envoy == "" {
		return errors.New("which Envoy? `make bench` fetches one; else set ENVOY or -envoy")
	}
	rep, err := o.measure(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, rep.markdown()); err != nil {
		return err
	}
	if o.update {
		return rep.update(o.docs)
	}
	return nil
}

// measure starts the sides, runs every case and the memory measurement.
func (o *options) measure(ctx context.Context) (*report, error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "crossdoor-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	if err := o.prepare(ctx, dir); err != nil {
		return nil, err
	}
	u, err := startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer u.close()
	rep := &report{machine: machine(), quick: o.quick}
	if rep.envoy, err = envoyVersion(o.bin.envoy); err != nil {
		return nil, err
	}
	if err := o.measureLoads(ctx, rep, dir, u); err != nil {
		return nil, err
	}
	if strings.Contains(aloneCase, o.only) {
		o.sayf("%s\n", aloneCase)
		if rep.alone, err = measureAlone(ctx, o.quick); err != nil {
			return nil, err
		}
	}
	if strings.Contains(memoryCase, o.only) {
		if err := o.measureMemory(ctx, rep, dir, u); err != nil {
			return nil, err
		}
	}
	rep.took = time.Since(began)
	return rep, nil
}

func (o *options) measureMemory(ctx context.Context, rep *report, dir string, u *upstream) error {
	for _, which := range []int{sideN, sideP} {
		o.sayf("%s: memory with %d bodies of 32 MB\n", sideNames[which], held)
		f, err := measureMemory(ctx, which, o.bin, dir, u)
		if err != nil {
			return err
		}
		rep.memory = append(rep.memory, f)
	}
	return nil
}

// sayf tells how far the run is.
func (o *options) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(o.log, format, args...) // nobody may be listening
}

// prepare makes sure that there are binaries.
func (o *options) prepare(ctx context.Context, dir string) error {
	var err error
	if o.bin.self, err = os.Executable(); err != nil {
		return err
	}
	if o.bin.crossdoor != "" {
		return nil
	}
	o.bin.crossdoor = filepath.Join(dir, "crossdoor")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", o.bin.crossdoor, "github.com/crossdoor/crossdoor/cmd/crossdoor") //nolint:gosec // the folder of this run
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/crossdoor: %w\n%s", err, out)
	}
	return nil
}

func (o *options) measureLoads(ctx context.Context, rep *report, dir string, u *upstream) error {
	b := &bench{upstream: u}
	for i := range b.sides {
		s, err := startSide(ctx, i, o.bin, dir, u)
		if err != nil {
			return err
		}
		defer s.stop()
		b.sides[i] = s
	}
	for _, l := range chosen(o.quick, o.only) {
		begin := time.Now()
		r, err := b.measure(ctx, l)
		if err != nil {
			return err
		}
		o.sayf("%-50s %3d blocks, %.1f s\n", l.title(), len(r.healthy[sideD].p50), time.Since(begin).Seconds())
		rep.results = append(rep.results, r)
	}
	return nil
}
