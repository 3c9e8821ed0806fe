package rewrite

import "bytes"

// tools takes the value of "tools".
func (w *walker) tools() {
	w.array(func() {
		var kind []byte
		w.object(func(name []byte) Feature {
			switch string(name) {
			case "type":
				kind = w.word()
			case "cache_control":
				return w.cacheControl()
			default:
				first := w.s.Peek()
				w.s.Value()
				return toolMember(name, first)
			}
			return noFeature
		})
		w.use(toolFeature(kind))
	})
}

// toolMember is the feature that a tool's member is, by its name and the first
// byte of its value: null and false are as good as absent.
func toolMember(name []byte, first byte) Feature {
	if first == 'n' || first == 'f' {
		return noFeature
	}
	switch string(name) {
	case "strict":
		return StrictTools
	case "defer_loading":
		return ToolSearch
	case "allowed_callers":
		return AllowedCallers
	case "input_examples":
		return InputExamples
	case "eager_input_streaming":
		return EagerInput
	}
	return noFeature
}

// serverTools are the tools that a platform runs itself, by how their type or
// their name begins; the longer beginnings first.
var serverTools = []struct {
	prefix  string
	feature Feature
}{
	{"web_search_20250305", WebSearch},
	{"web_search_", WebSearchLater},
	{"web_search", WebSearch}, // the name
	{"web_fetch", WebFetch},
	{"code_execution", CodeExecution},
	{"bash_code_execution", CodeExecution},
	{"text_editor_code_execution", CodeExecution},
	{"tool_search_tool_", ToolSearch},
	{"advisor", Advisor},
	{"computer_toolset_", ComputerToolset},
	{"browser_toolset_", ComputerToolset},
	{"mcp_toolset", MCPServers},
}

// toolFeature is the feature that a tool's type is, or the name in its calls.
func toolFeature(kind []byte) Feature {
	for _, t := range serverTools {
		if bytes.HasPrefix(kind, []byte(t.prefix)) {
			return t.feature
		}
	}
	return noFeature
}

// outputConfig takes the value of "output_config".
func (w *walker) outputConfig() {
	if w.s.Peek() != '{' {
		w.s.Value()
		return
	}
	w.f.outputMembers = w.object(func(name []byte) Feature {
		first := w.s.Peek()
		w.s.Value()
		if first == 'n' {
			return noFeature
		}
		switch string(name) {
		case "effort":
			return OutputEffort
		case "format":
			return OutputFormat
		case "task_budget":
			return OutputTaskBudget
		}
		return noFeature
	})
}

// thinking takes the value of "thinking".
func (w *walker) thinking() {
	if w.s.Peek() != '{' {
		w.s.Value()
		return
	}
	w.object(func(name []byte) Feature {
		if string(name) == "block_binding" {
			w.s.Value()
			return ThinkingBinding
		}
		if string(name) != "type" {
			w.s.Value()
			return noFeature
		}
		switch string(w.word()) {
		case "adaptive", "between_tools":
			return ThinkingAdaptive
		case "enabled":
			return ThinkingManual
		case "disabled":
			return ThinkingDisabled
		}
		return noFeature
	})
}

// contextManagement takes the value of "context_management".
func (w *walker) contextManagement() {
	if w.s.Peek() != '{' {
		w.s.Value()
		return
	}
	w.object(func(name []byte) Feature {
		if string(name) != "edits" {
			w.s.Value()
			return noFeature
		}
		w.array(func() {
			w.object(func(name []byte) Feature {
				if string(name) == "type" {
					if bytes.HasPrefix(w.word(), []byte("compact_")) {
						w.f.Uses |= ContextCompact.bit() // it goes with the whole member
					}
				} else {
					w.s.Value()
				}
				return noFeature
			})
		})
		return noFeature
	})
}

// toolChoice takes the value of "tool_choice".
func (w *walker) toolChoice() {
	if w.s.Peek() != '{' {
		w.s.Value()
		return
	}
	w.object(func(name []byte) Feature {
		if string(name) != "type" {
			w.s.Value()
			return noFeature
		}
		if kind := string(w.word()); kind == "any" || kind == "tool" {
			return ForcedTool
		}
		return noFeature
	})
}
