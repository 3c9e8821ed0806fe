package rewrite

import (
	"fmt"

	"github.com/crossdoor/crossdoor/rewrite/scan"
)

// MaxMembers is how many members the request object may have. The Messages API
// knows about thirty; the bound keeps a hostile body from becoming a much larger
// list of members.
const MaxMembers = 1024

// MaxModel is the longest model name, in characters after unescaping.
const MaxModel = 256

// Span is a range of bytes of the body, End exclusive.
type Span = scan.Span

// Member is one member of the request object.
type Member struct {
	Name  string // unescaped; a copy, it does not alias the body
	Key   Span   // the name with its quotes
	Value Span

	comma int // offset of the comma after it; -1 for the last one
}

// Facts is what planning and editing need to know about a request body. Offsets
// are bytes into the inspected body.
type Facts struct {
	Model      string // unescaped, 1 to MaxModel printable ASCII characters
	ModelSpan  Span   // the value with its quotes
	Stream     bool
	StreamSpan Span // empty when the member is absent
	// MaxTokens is 0 when the member is absent or not an integer that fits: the
	// platform judges it.
	MaxTokens int64
	Open      int      // just after the opening brace: added members go here
	Members   []Member // top level, in the body's order, names unique
	// LargestImage is the length, in bytes, of the base64 text of the largest image
	// in the content of messages, tool results and documents included; 0 is none.
	LargestImage int64
	// Images and Documents are how many blocks of these types there are, wherever.
	Images, Documents int
	// Uses are the features that the request has.
	Uses FeatureSet
	// Files are the files that its content names, in order. Of more than MaxFiles
	// it has the first ones, and the last of these has no ID.
	Files []FileRef

	// fixed are the features that are somewhere where no edit takes them out:
	// everything that is content, and what comes after too many sites.
	fixed FeatureSet
	// nulls are features whose member is there and null, which is as good as absent.
	nulls         FeatureSet
	sites         []site // members below the top level that can be taken out; inner ones come first
	outputMembers int    // of output_config
}

// Inspect reads a whole request body, once, and checks it: one JSON object
// (RFC 8259) in UTF-8 without a byte order mark, nothing after it, nesting up to
// 512, no name twice at the top level or in an object that an edit could touch, also
// not by escapes; a model; stream a boolean. The error is a *RequestError. Lone surrogate escapes are let through:
// they are legal JSON, and the platform's to judge.
func Inspect(body []byte) (Facts, error) { return inspect(body, true) }

// inspect is Inspect; modelled says that there must be a model.
func inspect(body []byte, modelled bool) (Facts, error) {
	if len(body) == 0 {
		return Facts{}, invalid("The request body is empty: send one JSON object.")
	}
	if len(body) >= 3 && body[0] == 0xef && body[1] == 0xbb && body[2] == 0xbf {
		return Facts{}, invalid("The request body begins with a byte order mark: send JSON in UTF-8 without one.")
	}
	in := inspection{walker: walker{f: Facts{Members: make([]Member, 0, 16)}}}
	in.s.Reset(body)
	if c := in.s.Peek(); c != '{' && c != 0 {
		return Facts{}, invalid("The request body is not a JSON object.")
	}
	if in.s.Open('{') {
		in.f.Open = in.s.Pos()
		for in.member(body) {
		}
	}
	in.s.End()
	if fault, at := in.s.Fault(); fault != scan.None {
		return Facts{}, invalid(fmt.Sprintf("The request body is not valid JSON: %s at byte %d.", fault, at))
	}
	if modelled && in.f.ModelSpan == (Span{}) && in.refused == nil {
		in.refuse("model: Field required")
	}
	if in.refused != nil {
		return Facts{}, in.refused
	}
	return in.f, nil
}

// inspection is one run of Inspect.
type inspection struct {
	walker

	names names
	// refused is the first rule broken by text that is valid JSON so far. A later
	// fault in the JSON is reported in its place: it is what the client must mend
	// first.
	refused *RequestError
}

// member takes one member of the request object.
func (in *inspection) member(body []byte) bool {
	s := &in.s
	key, more := s.Member()
	if !more {
		return false
	}
	name := intern(s.Text(key))
	if len(in.f.Members) == MaxMembers {
		in.refuse(fmt.Sprintf("The request object has more than %d members.", MaxMembers))
		_, ok := s.Value()
		return ok
	}
	if !in.names.add(name, in.f.Members) {
		in.refuse("The request object has a member twice" + known(name) + ": names must be unique.")
	}
	start := s.Peek()
	from := s.Pos()
	in.below(name, start)
	value := Span{Start: from, End: s.Pos()}
	comma := -1
	if s.Peek() == ',' {
		comma = s.Pos()
	}
	if fault, _ := s.Fault(); fault != scan.None {
		return false
	}
	in.f.Members = append(in.f.Members, Member{Name: name, Key: key, Value: value, comma: comma})
	in.note(name, value, start, body)
	if in.twice {
		in.refuse("An object of the request that may have to be changed has a member twice: names must be unique.")
	}
	return true
}

// below takes the value of a member, which begins with first, and notes what of
// it is a feature.
func (in *inspection) below(name string, first byte) {
	w := &in.walker
	switch feature := topLevel[name]; {
	case feature == noFeature:
	case first == 'n':
		in.f.nulls |= feature.bit()
	case feature.Strippable():
		in.f.Uses |= feature.bit()
	default:
		w.use(feature)
	}
	switch name {
	case "cache_control":
		w.cacheControl()
	case "messages":
		w.messages()
	case "system":
		w.blocks()
	case "tools":
		w.tools()
	case "output_config":
		w.outputConfig()
	case "thinking":
		w.thinking()
	case "context_management":
		w.contextManagement()
	case "tool_choice":
		w.toolChoice()
	default:
		in.s.Value()
	}
}

// note keeps what the members that matter here say.
func (in *inspection) note(name string, value Span, first byte, body []byte) {
	switch name {
	case "model":
		in.f.ModelSpan = value
		if first != '"' {
			in.refuse("model: Input should be a string")
			return
		}
		text := in.s.Text(value)
		if !printable(text) {
			in.refuse("model: Input should be 1 to 256 printable ASCII characters")
			return
		}
		in.f.Model = string(text)
	case "stream":
		in.f.StreamSpan = value
		in.f.Stream = first == 't'
		if first != 't' && first != 'f' && first != 'n' { // null is as good as absent
			in.refuse("stream: Input should be a boolean")
		}
	case "max_tokens":
		in.f.MaxTokens = integer(body[value.Start:value.End])
	}
}

func (in *inspection) refuse(message string) {
	if in.refused == nil {
		in.refused = invalid(message)
	}
}

func printable(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= MaxModel
}

// integer is the value of a plain positive JSON integer, else 0.
func integer(text []byte) int64 {
	if len(text) > 18 { // what surely fits; a larger one is no budget of tokens
		return 0
	}
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
