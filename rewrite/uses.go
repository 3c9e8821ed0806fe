package rewrite

import "bytes"

// The walk follows the schema (messages, content, blocks, source, tools) and
// nothing else: JSON in a tool's input that looks like an image is not one.
// Whatever does not have the expected shape is skipped; the platform judges it.
// Recursion is bounded by the scanner's depth.

// MaxFiles is how many files Facts lists. The Messages API takes 600 images.
const MaxFiles = 1000

// FileRef is a file that the request names.
type FileRef struct {
	ID     string // unescaped, as the client wrote it
	Kind   string // the block's type: image, document, container_upload
	Source Span   // the object that names it: of type file, or the block
}

type role uint8

const (
	roleOther role = iota
	roleAssistant
	roleSystem
)

// messages takes the value of "messages".
func (w *walker) messages() {
	w.array(func() {
		w.lastRole = roleOther
		w.object(func(name []byte) Feature {
			switch string(name) {
			case "content":
				w.f.LargestImage = max(w.f.LargestImage, w.blocks())
			case "role":
				w.lastRole = w.role()
			default:
				w.s.Value()
			}
			return noFeature
		})
		if w.lastRole == roleSystem {
			w.use(SystemMessages)
		}
	})
	if w.lastRole == roleAssistant {
		w.use(Prefill)
	}
}

func (w *walker) role() role {
	switch string(w.word()) {
	case "assistant":
		return roleAssistant
	case "system":
		return roleSystem
	}
	return roleOther
}

// blocks takes a content value, a string or an array of blocks, and returns the
// size of the largest base64 image in it.
func (w *walker) blocks() (largest int64) {
	w.array(func() { largest = max(largest, w.block()) })
	return largest
}

// block takes one content block. Its type may come last, so what depends on it
// is kept until it is known.
func (w *walker) block() int64 {
	var kind, tool []byte
	var src source
	var inContent int64
	var fileID string
	from := w.s.Pos()
	w.object(func(name []byte) Feature {
		switch string(name) {
		case "type":
			kind = w.word()
		case "cache_control":
			return w.cacheControl()
		case "source":
			if w.s.Peek() != '{' {
				w.s.Value()
				break
			}
			if src = w.source(); src.file != "" {
				return FileID
			}
		case "content":
			inContent = w.blocks()
		case "name":
			tool = w.word()
		case "file_id":
			fileID = string(w.word())
		default:
			w.s.Value()
		}
		return noFeature
	})
	w.use(blockFeature(kind, tool))
	if src.file != "" {
		w.file(src.file, string(kind), src.span)
	}
	switch string(kind) {
	case "image":
		w.f.Images++
		return src.data
	case "document":
		w.f.Documents++
		return src.nested
	case "container_upload":
		w.use(FileID)
		w.file(fileID, string(kind), Span{Start: from, End: w.s.Pos()})
	case "tool_result":
		return inContent
	}
	return 0
}

// file lists a file. The last place of the list has no ID where it stands for
// all that follow: nobody fetches that.
func (w *walker) file(id, kind string, at Span) {
	switch n := len(w.f.Files); {
	case n < MaxFiles:
		w.f.Files = append(w.f.Files, FileRef{ID: id, Kind: kind, Source: at})
	default:
		w.f.Files[n-1].ID = ""
	}
}

// blockFeature is what a block of the history needs, beside what its members
// are: results of server tools, and the calls that led to them.
func blockFeature(kind, tool []byte) Feature {
	switch string(kind) {
	case "server_tool_use":
		return toolFeature(tool)
	case "web_search_tool_result":
		return WebSearch
	case "web_fetch_tool_result":
		return WebFetch
	case "code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result":
		return CodeExecution
	case "tool_search_tool_result":
		return ToolSearch
	case "mcp_tool_use", "mcp_tool_result":
		return MCPServers
	case "tool_addition", "tool_removal":
		return ToolChanges
	case "fallback":
		return Fallbacks
	case "compaction":
		return Compaction
	}
	return noFeature
}

// source is what the source of a block says.
type source struct {
	data, nested int64 // length of base64 data; of the largest image in it
	file         string
	span         Span
}

// source takes the source object of a block.
func (w *walker) source() (out source) {
	var kind []byte
	var fileID string
	out.span.Start = w.s.Pos()
	w.object(func(name []byte) Feature {
		switch string(name) {
		case "type":
			kind = w.word()
		case "data":
			if size, ok := w.data(); ok {
				out.data = size
			}
		case "content":
			out.nested = w.blocks()
		case "file_id":
			fileID = string(w.word())
		default:
			w.s.Value()
		}
		return noFeature
	})
	out.span.End = w.s.Pos()
	switch string(kind) {
	case "url":
		w.use(URLSource)
	case "file":
		out.file = or(fileID, "?")
	}
	if string(kind) != "base64" {
		out.data = 0
	}
	return out
}

// data takes a value and returns what base64 text it is comes to; false when it
// is no string.
func (w *walker) data() (int64, bool) {
	if w.s.Peek() != '"' {
		w.s.Value()
		return 0, false
	}
	text, ok := w.s.String()
	if !ok {
		return 0, false
	}
	return base64Size(w.s.Raw(text)), true
}

// cacheControl takes the value of a cache_control below the request's own.
func (w *walker) cacheControl() Feature {
	if w.s.Peek() != '{' {
		w.s.Value()
		return noFeature // null is none, anything else the platform's to judge
	}
	w.object(func(name []byte) Feature {
		w.s.Value()
		switch string(name) {
		case "ttl":
			return CacheTTL
		case "scope":
			return CacheScope
		}
		return noFeature
	})
	return CacheControl
}

// base64Size is the length of base64 text, which is what platforms hold their
// limits against (platform reference, section 2). text is as in the body: some
// encoders write every slash as an escape of two bytes.
func base64Size(text []byte) int64 { return int64(len(text) - bytes.Count(text, []byte{'\\'})) }

func or(value, instead string) string {
	if value == "" {
		return instead
	}
	return value
}
