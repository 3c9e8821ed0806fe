package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program writes a shell script and returns its path.
func program(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// version is what an Envoy says of itself.
const version = `[ "$1" = --version ] && echo "envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL" && exit`

// fakeServe makes the test binary a service that is ready and does nothing.
const fakeServe = "DEMO_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeServe) == "" {
		os.Exit(m.Run())
	}
	for i, arg := range os.Args {
		if arg == "--admin" {
			ready := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ready":true}`) })
			fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[i+1], ready))
		}
	}
	os.Exit(1)
}

// TestRunFails: an error says what happened, and nothing is left.
func TestRunFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	serves := "echo $$ > \"$PIDS/$$\"; " + fakeServe + "=1 exec " + self + ` "$@"`
	sleeps := "echo $$ > \"$PIDS/$$\"; exec sleep 60"
	for _, c := range []struct {
		name, envoy, binary string
		after               After
		limit               time.Duration // until Ctrl-C; 0 is none
		want                string
	}{
		{name: "no Envoy", envoy: "echo bash", binary: sleeps, want: "does not say that it is Envoy"},
		{name: "an old Envoy", envoy: `echo "version: 9e55/1.30.1/Clean"`, binary: sleeps, want: "too old"},
		{name: "Envoy ends", envoy: version + "\necho bad config; exit 3", binary: serves, want: "envoy ended by itself (exit status 3); it said last:\n    bad config"},
		{name: "the service ends", envoy: version + "\n" + sleeps, binary: "echo bad policy; exit 2", want: "crossdoor serve ended by itself (exit status 2); it said last:\n    bad policy"},
		{name: "Ctrl-C", envoy: version + "\n" + sleeps, binary: sleeps, limit: time.Second, want: "interrupted"},
		{name: "Ctrl-C, folder kept", envoy: version + "\n" + sleeps, binary: serves, limit: time.Second, after: KeepRunning, want: "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmp, pids := t.TempDir(), t.TempDir()
			t.Setenv("TMPDIR", tmp)
			t.Setenv("PIDS", pids)
			ctx := t.Context()
			if c.limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.limit)
				defer cancel()
			}
			var out bytes.Buffer
			err := Run(ctx, Options{Binary: program(t, c.binary), Envoy: program(t, c.envoy), Out: &out, After: c.after})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
			noneLeft := len(entries(t, tmp)) == 0
			if kept := c.after == KeepRunning; noneLeft == kept || kept != strings.Contains(out.String(), "are in "+tmp) {
				t.Errorf("in the folder: %v; said:\n%s", entries(t, tmp), &out)
			}
			for _, pid := range entries(t, pids) {
				if _, err := os.Stat("/proc/" + pid); err == nil {
					t.Errorf("process %s is left", pid)
				}
			}
		})
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestWalk: what misbehaves is counted and shown, what cannot go on ends the tour.
func TestWalk(t *testing.T) {
	fine := step{"Fine", "fine", "m", func(context.Context, *tour) error { return nil }}
	wrong := step{"Wrong", "wrong", "m", func(_ context.Context, x *tour) error { x.problemf("#1: status"); return nil }}
	broken := step{"Broken", "broken", "m", func(context.Context, *tour) error { return errNoPort }}
	for _, c := range []struct {
		name  string
		steps []step
		bad   int
		fails bool
	}{
		{"all fine", []step{fine, fine}, 0, false},
		{"one wrong", []step{fine, wrong, fine}, 1, false},
		{"broken: the rest counts as well", []step{fine, broken, fine}, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			x := &tour{s: newScreen(&out, Plain, 0)}
			results, err := x.walk(t.Context(), c.steps)
			if got := misbehaved(results, len(c.steps)); got != c.bad || errors.Is(err, errNoPort) != c.fails {
				t.Errorf("%d wrong, %v\n%s", got, err, &out)
			}
		})
	}
}
