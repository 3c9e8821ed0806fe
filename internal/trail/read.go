package trail

import (
	"bufio"
	"errors"
	"io"
)

// maxLine bounds the memory for one line. Records are a few KiB; what is longer
// is none.
const maxLine = 1 << 20

// Read streams the records of a trail file, in the file's order (newest last),
// to visit. It holds one line at a time, or f.Limit records. bad counts the
// lines that are no record: they are passed over. err is visit's or the
// reader's.
func Read(in io.Reader, f Filter, visit func(*Record) error) (bad int, err error) {
	l := &lines{in: bufio.NewReaderSize(in, 64<<10)}
	last := newTail(f.Limit, visit)
	for {
		line, ok, err := l.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return bad, last.flush()
			}
			return bad, err
		}
		if ok && len(line) == 0 {
			continue // left by a writer that began after a cut line
		}
		var r *Record
		if ok {
			r, err = Decode(line)
		}
		if !ok || err != nil {
			bad++
			continue
		}
		if !f.Match(r) {
			continue
		}
		if err := last.add(r); err != nil {
			return bad, err
		}
	}
}

// lines splits a stream; a line may be of any length, only maxLine is kept.
type lines struct {
	in  *bufio.Reader
	buf []byte
}

// next is the next line without its end; it is valid until the next call. ok is
// false for a line longer than maxLine. The error is io.EOF after the last line.
func (l *lines) next() (line []byte, ok bool, err error) {
	l.buf = l.buf[:0]
	ok = true
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.buf)+len(part) > maxLine {
			ok, l.buf = false, l.buf[:0]
		}
		if ok {
			l.buf = append(l.buf, part...)
		}
		switch {
		case err == nil:
			return trimEnd(l.buf), ok, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(l.buf) > 0 || !ok):
			return trimEnd(l.buf), ok, nil
		default:
			return nil, false, err
		}
	}
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// tail passes records on at once, or keeps the last ones until flush.
type tail struct {
	visit func(*Record) error
	limit int
	kept  []*Record // a ring once it has limit members
	next  int
}

func newTail(limit int, visit func(*Record) error) *tail {
	return &tail{visit: visit, limit: limit}
}

func (t *tail) add(r *Record) error {
	switch {
	case t.limit <= 0:
		return t.visit(r)
	case len(t.kept) < t.limit:
		t.kept = append(t.kept, r)
	default:
		t.kept[t.next] = r
		t.next = (t.next + 1) % t.limit
	}
	return nil
}

func (t *tail) flush() error {
	for i := range t.kept {
		if err := t.visit(t.kept[(t.next+i)%len(t.kept)]); err != nil {
			return err
		}
	}
	t.kept = nil
	return nil
}
