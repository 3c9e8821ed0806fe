package rewrite

import (
	"bytes"

	"github.com/crossdoor/crossdoor/rewrite/scan"
)

// walker goes through what a request has below its members. It has no pointers
// to its own parts, so that it stays on the stack.
type walker struct {
	s scan.Scanner
	f Facts
	// keys are the names in the objects that are open, the outermost object's
	// first.
	keys []Span
	// twice: an object that an edit could touch has a member twice.
	twice bool
	// lastRole is that of the last message.
	lastRole role
}

// site is a member that can be taken out of an object below the request's own.
// An object's commas say which members stand beside each other: -1 is none.
type site struct {
	feature       Feature
	start, end    int // the name with its quotes, to the end of the value
	before, after int // offsets of the commas
}

// maxSites is how many sites Facts keep: a list of them must not become much
// larger than the body. Of what comes after them nothing can be stripped.
const maxSites = 1 << 18

// use notes a feature that no edit takes out where it was found.
func (w *walker) use(f Feature) {
	if f != noFeature {
		w.f.Uses |= f.bit()
		w.f.fixed |= f.bit()
	}
}

// site notes a member that is a feature and can be taken out.
func (w *walker) site(one site) {
	if len(w.f.sites) == maxSites {
		w.use(one.feature)
		return
	}
	w.f.Uses |= one.feature.bit()
	w.f.sites = append(w.f.sites, one)
}

// edited are the features whose member an edit takes out, or changes.
var edited = strippable | FileID.bit()

// object goes through the object that comes next. each takes the value of a
// member, whose unescaped name it is told and must not keep, and says which feature the member is; one that can be taken out is kept as a
// site. It returns how many members there are.
//
// Where one of its own members can be edited, its names must be unique: what is
// left after the edit would mean what the duplicate says. Names are kept for that
// while the object is open, so it costs no second reading, however deep the
// object is; of one with more than MaxMembers it is not known, and it counts as
// one that has a member twice.
func (w *walker) object(each func(name []byte) Feature) (members int) {
	s, first := &w.s, len(w.keys)
	touched := false
	before := -1
	if w.keys == nil {
		w.keys = make([]Span, 0, 16)
	}
	s.Open('{')
	for key, more := s.Member(); more; key, more = s.Member() {
		if members++; members <= MaxMembers {
			w.keys = append(w.keys, key)
		}
		f := each(s.Text(key))
		one := site{feature: f, start: key.Start, end: s.Pos(), before: before, after: -1}
		if s.Peek() == ',' {
			one.after = s.Pos()
		}
		before = one.after
		switch {
		case f == noFeature:
		case strippable.Has(f):
			touched = true
			w.site(one)
		default:
			touched = touched || edited.Has(f)
			w.use(f)
		}
	}
	if touched && (members > MaxMembers || !unique(s, w.keys[first:])) {
		w.twice = true
	}
	w.keys = w.keys[:first]
	return members
}

// unique reports whether no two of an object's names are the same, unescaped.
func unique(s *scan.Scanner, keys []Span) bool {
	if len(keys) > few {
		seen := make(map[string]struct{}, len(keys))
		for _, key := range keys {
			seen[string(s.Text(key))] = struct{}{}
		}
		return len(seen) == len(keys)
	}
	var names [few][]byte
	for i, key := range keys {
		names[i] = s.Text(key)
		for _, other := range names[:i] {
			if bytes.Equal(names[i], other) {
				return false
			}
		}
	}
	return true
}

// array goes through the array that comes next, if it is one; each is told of
// its objects.
func (w *walker) array(each func()) {
	s := &w.s
	if s.Peek() != '[' {
		s.Value()
		return
	}
	s.Open('[')
	for s.Element() {
		if s.Peek() == '{' {
			each()
		} else {
			s.Value()
		}
	}
}

// word takes a value and returns it when it is a short string, else nil. It
// aliases the body where it has no escapes.
func (w *walker) word() []byte {
	const longest = 128
	if w.s.Peek() != '"' {
		w.s.Value()
		return nil
	}
	text, ok := w.s.String()
	if !ok || text.Len() > longest {
		return nil
	}
	return w.s.Text(text)
}
