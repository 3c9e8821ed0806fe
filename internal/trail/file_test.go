package trail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pass lets d go by on the bubble's own clock: nothing really waits.
func pass(d time.Duration) { <-time.After(d) }

func stored(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []*Record
	bad, err := Read(f, Filter{}, func(r *Record) error {
		got = append(got, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if bad > 0 {
		return fmt.Sprintf("%s (%d bad)", ids(got), bad)
	}
	return ids(got)
}

func opened(t *testing.T, path string) *FileWriter {
	t.Helper()
	w, err := OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func closed(t *testing.T, w *FileWriter) {
	t.Helper()
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestFileWriterFlushesInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail.jsonl")
	synctest.Test(t, func(t *testing.T) {
		w := opened(t, path)
		w.Add(served("a", began))
		pass(50 * time.Millisecond)
		w.Add(served("b", began))
		synctest.Wait()
		if got := stored(t, path); got != "" {
			t.Errorf("before 100 ms: got %q", got)
		}
		pass(51 * time.Millisecond)
		synctest.Wait()
		if got := stored(t, path); got != "a b" {
			t.Errorf("100 ms after the first: got %q", got)
		}
		w.Add(served("c", began))
		closed(t, w)
		if got := stored(t, path); got != "a b c" {
			t.Errorf("after Close: got %q", got)
		}
	})
}

func TestFileWriterWritesLargeBatchesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail.jsonl")
	synctest.Test(t, func(t *testing.T) {
		w := opened(t, path)
		defer closed(t, w)
		large := served("large", began)
		large.Client = strings.Repeat("x", flushBytes)
		w.Add(large)
		synctest.Wait()
		if got := stored(t, path); got != "large" {
			t.Errorf("got %q without the clock moving", got)
		}
	})
}

func TestFileWriterFollowsRotation(t *testing.T) {
	for _, tt := range []struct {
		name         string
		rotate       func(path string) error
		old, current string
	}{
		{"moved away", func(p string) error { return os.Rename(p, p+".1") }, "a", "b"},
		{"moved away and made anew", func(p string) error {
			return errors.Join(os.Rename(p, p+".1"), os.WriteFile(p, nil, 0o600))
		}, "a", "b"},
		{"copied and truncated", func(p string) error {
			b, err := os.ReadFile(p)
			return errors.Join(err, os.WriteFile(p+".1", b, 0o600), os.Truncate(p, 0))
		}, "a", "b"},
		{"left alone", func(p string) error { return os.WriteFile(p+".1", nil, 0o600) }, "", "a b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trail.jsonl")
			synctest.Test(t, func(t *testing.T) {
				w := opened(t, path)
				w.Add(served("a", began))
				pass(flushAfter)
				synctest.Wait()
				if err := tt.rotate(path); err != nil {
					t.Fatal(err)
				}
				w.Add(served("b", began))
				closed(t, w)
				if got := stored(t, path+".1"); got != tt.old {
					t.Errorf("old file: got %q, want %q", got, tt.old)
				}
				if got := stored(t, path); got != tt.current {
					t.Errorf("file: got %q, want %q", got, tt.current)
				}
				if w.Dropped() != 0 {
					t.Errorf("dropped %d", w.Dropped())
				}
			})
		})
	}
}

func TestFileWriterBeginsAfterACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail.jsonl")
	if err := os.WriteFile(path, []byte(`{"time":"2026-11-30T08:0`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := opened(t, path)
	w.Add(served("a", began))
	w.Add(served("b", began))
	closed(t, w)
	if got := stored(t, path); got != "a b (1 bad)" {
		t.Errorf("got %q", got)
	}
}

func TestFileWriterDropsAndNeverBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail.jsonl")
	w := newFileWriter(path, nil, 2)
	// Nothing takes from the queue yet: the disk hangs.
	for i, want := range []bool{true, true, false, false} {
		if got := w.Add(served(strconv.Itoa(i), began)); got != want {
			t.Errorf("Add %d: got %v, want %v", i, got, want)
		}
	}
	if w.Dropped() != 2 {
		t.Errorf("dropped %d, want 2", w.Dropped())
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Close(done); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "2 records") {
		t.Errorf("Close while the disk hangs: got %v", err)
	}
	go w.run()
	closed(t, w)
	if got := stored(t, path); got != "0 1" {
		t.Errorf("after the disk came back: got %q", got)
	}
	if w.Add(served("late", began)) || w.Dropped() != 3 {
		t.Errorf("after Close: %d dropped, want 3", w.Dropped())
	}
}

func TestFileWriterCountsWhatItCannotWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "trail.jsonl")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w, err := OpenFile(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		step := func(id string) {
			w.Add(served(id, began))
			pass(flushAfter)
			synctest.Wait()
		}
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		step("lost")
		step("lost too")
		if w.Dropped() != 2 {
			t.Errorf("dropped %d, want 2", w.Dropped())
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		step("kept")
		closed(t, w)
		if got := stored(t, path); got != "kept" {
			t.Errorf("got %q", got)
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("%d error lines, want 1:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "written to again") {
			t.Errorf("recovery not told:\n%s", log.String())
		}
	})
}

func TestOpenFileRefuses(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a directory":                dir,
		"a directory that is not":    filepath.Join(dir, "none", "trail.jsonl"),
		"a pipe that nobody reads":   pipe,
		"a name through a plain one": filepath.Join(pipe, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			w, err := OpenFile(path, nil)
			if err == nil {
				closed(t, w)
				t.Fatal("no error")
			}
			if n := strings.Count(err.Error(), path); n != 1 {
				t.Errorf("the path is named %d times: %v", n, err)
			}
		})
	}
}

func TestSinkTakesFromManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trail.jsonl")
	s := NewSink(10, opened(t, path))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				s.Add(served(fmt.Sprintf("%d-%d", i, j), began))
				s.Recent(Filter{Limit: 1})
			}
		})
	}
	wg.Wait()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(stored(t, path))); n != 400 || s.Dropped() != 0 {
		t.Errorf("%d in the file, %d dropped", n, s.Dropped())
	}
	if n := len(s.Recent(Filter{})); n != 10 {
		t.Errorf("%d in memory, want 10", n)
	}
	s.Add(served("late", began))
	if s.Dropped() != 1 {
		t.Errorf("after Close: %d dropped, want 1", s.Dropped())
	}
}

func TestSinkWithoutAFile(t *testing.T) {
	s := NewSink(1, nil)
	s.Add(served("a", began))
	if got := ids(s.Recent(Filter{})); got != "a" || s.Dropped() != 0 {
		t.Errorf("got %q, %d dropped", got, s.Dropped())
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
