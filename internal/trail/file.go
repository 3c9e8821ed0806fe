package trail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The writer's bounds. A record is about 1 KiB, so that a full queue is a few
// MiB: seconds of a busy service.
const (
	queueLength = 8192
	flushAfter  = 100 * time.Millisecond // from the first unwritten record
	flushBytes  = 64 << 10
)

// FileWriter appends records to a file, one line each, from one goroutine of its
// own. Add never waits for the disk: when the queue is full the record is
// dropped and counted. A record is in the file about 100 ms after Add.
//
// Before each write the path is compared with the open file; when something else
// is there, or nothing (logrotate, a swap), the path is opened again. A file
// that was truncated in place goes on at its new end.
type FileWriter struct {
	path  string
	log   *slog.Logger
	queue chan *Record
	done  chan struct{} // closed when the goroutine has ended

	mu     sync.RWMutex // queue is closed under the write lock only
	closed bool

	dropped atomic.Int64

	// Of the goroutine alone.
	file    *os.File
	batch   []byte // whole lines
	lines   int64  // in batch
	torn    bool   // the file may end inside a line
	failing bool   // told once, until a write works again
}

// OpenFile opens path for appending, creating it (mode 0640) where it is missing,
// and starts the writer. The error says what to do. log gets a line when writing
// begins to fail and when it works again; it may be nil. The caller closes.
func OpenFile(path string, log *slog.Logger) (*FileWriter, error) {
	w := newFileWriter(path, log, queueLength)
	if err := w.open(); err != nil {
		return nil, fmt.Errorf("trail file %s: %w: give a path that the service may write to, or leave trail.file out", path, err)
	}
	go w.run()
	return w, nil
}

func newFileWriter(path string, log *slog.Logger, queue int) *FileWriter {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &FileWriter{
		path:  path,
		log:   log,
		queue: make(chan *Record, queue),
		done:  make(chan struct{}),
	}
}

// Add queues r, which nobody changes any more. It never blocks; false means that
// the record was dropped (and counted).
func (w *FileWriter) Add(r *Record) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.closed {
		select {
		case w.queue <- r:
			return true
		default:
		}
	}
	w.dropped.Add(1)
	return false
}

// Dropped counts the records that did not get into the file: queue full, write
// failed, added after Close.
func (w *FileWriter) Dropped() int64 { return w.dropped.Load() }

// Close writes what is queued and closes the file. It waits until ctx is done at
// most; the goroutine then goes on alone (a disk that hangs cannot be
// interrupted). Closing twice is the same as once.
func (w *FileWriter) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("trail file %s: %d records not written yet: %w", w.path, len(w.queue), ctx.Err())
	}
}

func (w *FileWriter) run() {
	defer close(w.done)
	timer := time.NewTimer(flushAfter)
	timer.Stop()
	for {
		select {
		case r, ok := <-w.queue:
			if !ok {
				w.end()
				return
			}
			if len(w.batch) == 0 {
				timer.Reset(flushAfter)
			}
			w.append(r)
			if len(w.batch) >= flushBytes {
				timer.Stop()
				w.flush()
			}
		case <-timer.C:
			w.flush()
		}
	}
}

func (w *FileWriter) end() {
	w.flush()
	if w.file == nil {
		return
	}
	if err := w.file.Close(); err != nil {
		w.log.Error("closing the trail file", "path", w.path, "error", err)
	}
}

func (w *FileWriter) append(r *Record) {
	line, err := Encode(r)
	if err != nil {
		w.dropped.Add(1)
		w.log.Error("trail record not written", "id", r.ID, "error", err)
		return
	}
	w.batch = append(append(w.batch, line...), '\n')
	w.lines++
}

// flush writes the batch with one write, so that lines of two processes that
// share a file do not mix. What cannot be written is dropped: keeping it would
// only move the loss to newer records.
func (w *FileWriter) flush() {
	if len(w.batch) == 0 {
		return
	}
	lost, err := w.write()
	w.batch, w.lines = w.batch[:0], 0
	switch {
	case err != nil:
		w.dropped.Add(lost)
		if !w.failing {
			w.log.Error("trail records are lost: the file cannot be written to", "path", w.path, "error", err)
		}
		w.failing = true
	case w.failing:
		w.failing = false
		w.log.Info("the trail file is written to again", "path", w.path, "dropped", w.Dropped())
	}
}

func (w *FileWriter) write() (lost int64, err error) {
	if err := w.follow(); err != nil {
		return w.lines, err
	}
	batch := w.batch
	if w.torn {
		batch = append([]byte{'\n'}, batch...)
	}
	n, err := w.file.Write(batch)
	if n == 0 {
		return w.lines, err
	}
	w.torn = batch[n-1] != '\n'
	return int64(bytes.Count(batch[n:], []byte{'\n'})), err
}

// follow opens the path again when the open file is not what is there.
func (w *FileWriter) follow() error {
	if w.file != nil {
		there, err := os.Stat(w.path)
		if err == nil {
			mine, err := w.file.Stat()
			if err == nil && os.SameFile(mine, there) {
				return nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			// The directory may be unreadable for a while; the file is still good.
			return nil
		}
	}
	return w.open()
}

// open replaces the open file. When that fails, the old one is kept open for the
// next try only: records in a file that was moved away are records lost.
func (w *FileWriter) open() error {
	// Non-blocking: a named pipe that nobody reads is an error, not a hang.
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o640) //nolint:gosec // the group reads it: those who ship logs
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // the caller names the path
		}
		return err
	}
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			w.log.Warn("closing the rotated trail file", "path", w.path, "error", err)
		}
	}
	w.file, w.torn = f, endsInsideLine(w.path)
	return nil
}

// endsInsideLine looks for the cut line of a process that died while writing: the
// next record must not become a part of it.
func endsInsideLine(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return false
	}
	return last[0] != '\n'
}
