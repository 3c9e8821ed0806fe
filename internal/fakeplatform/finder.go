package fakeplatform

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// finding is a feature that a body uses, with the text of a platform without it.
// feature is a top-level member (`service_tier`), a member of a known object
// (`output_config.format`, `cache_control.ttl`), `tool:` and the type of a tool
// without its date, `tools.` and a tool's member, `source.url`, `block:` and the
// type of a block that not every platform has. feature "" is wrong everywhere.
type finding struct{ feature, why string }

// finder goes through a body and notes what it finds, in the body's order.
type finder struct {
	found    []finding
	images   int
	maxImage int
}

func (f *finder) add(feature, why string) { f.found = append(f.found, finding{feature, why}) }

func (f *finder) extra(feature, path string) {
	f.add(feature, path+": Extra inputs are not permitted")
}

func (f *finder) tag(feature, path, tag string, expected ...string) {
	f.add(feature, fmt.Sprintf("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", path, tag, strings.Join(expected, "', '")))
}

func (f *finder) body(root *value) {
	for i, name := range root.names {
		v := &root.kids[i]
		f.extra(name, name)
		switch name {
		case "system":
			f.blocks("system", v)
		case "tools":
			for n := range v.kids {
				f.tool("tools."+strconv.Itoa(n), &v.kids[n])
			}
		case "messages":
			f.messages(v)
		case "output_config", "thinking":
			for _, member := range v.names {
				f.extra(name+"."+member, name+"."+member)
			}
		case "cache_control":
			f.cacheControl(name, v)
		}
	}
}

func (f *finder) messages(v *value) {
	if n := len(v.kids); n > 100_000 {
		f.add("", "messages: List should have at most 100000 items after validation, not "+strconv.Itoa(n))
	}
	for i := range v.kids {
		m := &v.kids[i]
		path := "messages." + strconv.Itoa(i)
		if m.get("role").text() == "system" {
			f.add("role.system", path+".role: Input should be 'user' or 'assistant'")
		}
		f.blocks(path+".content", m.get("content"))
	}
	if f.images > 600 {
		f.add("", "messages: too many images: "+strconv.Itoa(f.images))
	}
}

func (f *finder) blocks(path string, v *value) {
	if v == nil || v.kind != '[' {
		return
	}
	for i := range v.kids {
		f.block(path+"."+strconv.Itoa(i), &v.kids[i])
	}
}

// plainBlocks are the blocks that every platform has; others depend on a
// feature.
var plainBlocks = []string{"text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result"}

func (f *finder) block(path string, v *value) {
	kind := v.get("type").text()
	tagged := path
	if strings.HasPrefix(path, "messages") {
		tagged += "." + kind
	}
	if c := v.get("cache_control"); c != nil {
		f.cacheControl(tagged+".cache_control", c)
	}
	switch kind {
	case "text":
		if v.get("text").text() == "" {
			f.add("", strings.SplitN(path, ".", 2)[0]+": text content blocks must be non-empty")
		}
	case "image", "document":
		f.source(tagged+".source", kind, v.get("source"))
	case "thinking":
		if v.get("signature").text() == "" {
			f.add("", tagged+".signature: Field required")
		}
	case "tool_result":
		f.blocks(tagged+".content", v.get("content"))
	default:
		if !slices.Contains(plainBlocks, kind) {
			f.tag(blockFeature(kind, v), path, kind, plainBlocks...)
		}
	}
}

// blockFeature is what a block in the history needs of its platform.
func blockFeature(kind string, v *value) string {
	switch kind {
	case "server_tool_use":
		return "tool:" + family(v.get("name").text())
	case "container_upload":
		return "source.file"
	case "mcp_tool_use", "mcp_tool_result":
		return "block:" + kind
	}
	if tool, ok := strings.CutSuffix(kind, "_tool_result"); ok {
		return "tool:" + family(tool)
	}
	return "block:" + kind
}

func (f *finder) source(path, kind string, v *value) {
	expected := []string{"base64"}
	if kind == "document" {
		expected = []string{"base64", "content", "text"}
	}
	switch t := v.get("type").text(); {
	case t == "url" || t == "file":
		f.tag("source."+t, path, t, expected...)
	case !slices.Contains(expected, t):
		f.tag("", path, t, expected...)
	case kind == "image":
		f.images++
		if data := v.get("data"); data != nil && len(data.raw)-2 > f.maxImage {
			f.add("", fmt.Sprintf("%s.base64: image exceeds %d MB maximum: %d bytes > %d bytes", path, f.maxImage>>20, len(data.raw)-2, f.maxImage))
		}
	case t == "content":
		f.blocks(path+".content", v.get("content"))
	}
}

// cacheControl: type alone is what every platform with caching has.
func (f *finder) cacheControl(path string, v *value) {
	for _, name := range v.names {
		if name != "type" {
			f.extra("cache_control."+name, path+".ephemeral."+name)
		}
	}
}

var (
	date         = regexp.MustCompile(`_\d{8}$`)
	plainMembers = []string{"type", "name", "description", "input_schema", "cache_control"}
	// toolMembers of a tool that is not the client's own are its type's.
	toolMembers = []string{"strict", "allowed_callers", "defer_loading", "eager_input_streaming", "input_examples"}
)

// family is a tool's type without its date and variant.
func family(kind string) string {
	kind = date.ReplaceAllString(kind, "")
	switch {
	case strings.HasPrefix(kind, "tool_search"):
		return "tool_search_tool"
	case strings.HasSuffix(kind, "code_execution"):
		return "code_execution"
	}
	return kind
}

func (f *finder) tool(path string, v *value) {
	kind := v.get("type").text()
	custom := kind == "" || kind == "custom"
	tagged := path + "." + kind
	if custom {
		tagged = path + ".custom"
	} else {
		f.tag("tool:"+family(kind), path, kind, "bash_20250124", "custom", "memory_20250818", "text_editor_20250728")
	}
	for i, name := range v.names {
		switch {
		case name == "cache_control":
			f.cacheControl(tagged+".cache_control", &v.kids[i])
		case slices.Contains(toolMembers, name) && (name != "strict" || v.kids[i].isTrue()):
			f.extra("tools."+name, tagged+"."+name)
		case custom && !slices.Contains(plainMembers, name) && !slices.Contains(toolMembers, name):
			f.extra("tools.?"+name, tagged+"."+name)
		}
	}
}
