package trail

import "context"

// Sink is where exchanges leave their records: the ring and, when there is one,
// the file. It is safe for concurrent use.
type Sink struct {
	ring *Ring
	file *FileWriter // nil: memory only
}

// NewSink keeps the last recent records in memory and, when file is not nil,
// writes all of them to it. The sink owns file from here on: Close closes it.
func NewSink(recent int, file *FileWriter) *Sink {
	return &Sink{ring: NewRing(recent), file: file}
}

// Add takes r over: nobody changes it any more. It never blocks.
func (s *Sink) Add(r *Record) {
	s.ring.Add(r)
	if s.file != nil {
		s.file.Add(r)
	}
}

// Recent is the records in memory that f matches, newest last; see Ring.Select.
func (s *Sink) Recent(f Filter) []*Record { return s.ring.Select(f) }

// Dropped counts the records that did not get into the file.
func (s *Sink) Dropped() int64 {
	if s.file == nil {
		return 0
	}
	return s.file.Dropped()
}

// Close writes what is queued for the file, waiting until ctx is done at most.
// Records added later are dropped, and counted where there is a file.
func (s *Sink) Close(ctx context.Context) error {
	if s.file == nil {
		return nil
	}
	return s.file.Close(ctx)
}
