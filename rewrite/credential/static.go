package credential

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// rereadEvery is how often key files are looked at again (contract, "Health": a
// changed key file is read again within 10 s).
const rereadEvery = 5 * time.Second

// maxKeyBytes bounds a key file: more is not a key.
const maxKeyBytes = 16 << 10

// Source is the place of one static key. Exactly one of Env and File is set.
type Source struct {
	Env  string
	File string
}

// Place is how policy, trail and logs name the source.
func (s Source) Place() string {
	if s.File != "" {
		return "file:" + s.File
	}
	return "env:" + s.Env
}

// Static is a set of keys from the environment and from files, by place. It is
// safe for concurrent use.
type Static struct {
	// changed is told the place of every key whose value became another one.
	changed func(place string)

	mu      sync.RWMutex
	sources map[string]Source
	values  map[string]string
}

// NewStatic returns an empty set. changed may be nil; it is called without
// locks held.
func NewStatic(changed func(place string)) *Static {
	return &Static{changed: changed, sources: map[string]Source{}, values: map[string]string{}}
}

// Use replaces the sources and reads them all.
func (s *Static) Use(sources []Source) {
	bySource := make(map[string]Source, len(sources))
	for _, src := range sources {
		bySource[src.Place()] = src
	}
	s.mu.Lock()
	s.sources = bySource
	maps.DeleteFunc(s.values, func(place, _ string) bool { _, ok := bySource[place]; return !ok })
	s.mu.Unlock()
	for _, src := range sources {
		s.read(src)
	}
}

// Value is the key at a place; ok is false when it is missing or empty.
func (s *Static) Value(place string) (value string, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok = s.values[place]
	return value, ok
}

// Reread reads one place again, in the caller's time: after a 401.
func (s *Static) Reread(place string) {
	s.mu.RLock()
	src, ok := s.sources[place]
	s.mu.RUnlock()
	if ok && src.File != "" {
		s.read(src)
	}
}

// Missing lists the places without a value, sorted.
func (s *Static) Missing() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for place := range s.sources {
		if _, ok := s.values[place]; !ok {
			out = append(out, place)
		}
	}
	slices.Sort(out)
	return out
}

// Watch reads the files again every few seconds until ctx ends.
func (s *Static) Watch(ctx context.Context) {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.RLock()
		sources := slices.Collect(maps.Values(s.sources))
		s.mu.RUnlock()
		for _, src := range sources {
			if src.File != "" {
				s.read(src)
			}
		}
	}
}

func (s *Static) read(src Source) {
	value := os.Getenv(src.Env)
	if src.File != "" {
		value = readFile(src.File)
	}
	if !sendable(value) {
		value = ""
	}
	place := src.Place()
	s.mu.Lock()
	old, had := s.values[place]
	_, wanted := s.sources[place]
	switch {
	case !wanted:
	case value == "":
		delete(s.values, place)
	default:
		s.values[place] = value
	}
	s.mu.Unlock()
	if wanted && had && old != value && s.changed != nil {
		s.changed(place)
	}
}

// readFile is the file's first line without blanks around it, "" when it cannot
// be read: a key that is being replaced is missing for a moment, not an error.
func readFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	buf := make([]byte, maxKeyBytes+1)
	n, _ := f.Read(buf)
	if n > maxKeyBytes {
		return ""
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(buf[:n]), []byte{'\n'})
	return strings.TrimSpace(string(line))
}

// sendable reports whether a value may stand in a header (RFC 9110, section
// 5.5): visible ASCII, so a stray control character cannot split a request.
func sendable(value string) bool {
	for i := range len(value) {
		if value[i] <= ' ' || value[i] > '~' {
			return false
		}
	}
	return true
}
