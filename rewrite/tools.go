package rewrite

import "bytes"

// tools takes the value of "tools".
func (w *walker) tools() {
	w.array(func() {
		var kind []byte
		w.object(func(key Span) Feature {
			s := &w.s
			switch {
			case s.Is(key, "type"):
				kind = w.word()
			case s.Is(key, "cache_control"):
				return w.cacheControl()
			default:
				first := s.Peek()
				s.Value()
				return toolMember(string(s.Raw(key)), first)
			}
			return noFeature
		})
		w.use(toolFeature(kind))
	})
}

// toolMember is the feature that a tool's member is, by its name as written and
// the first byte of its value: null and false are as good as absent. Nobody
// writes these names with escapes, and what is missed the platform refuses.
func toolMember(name string, first byte) Feature {
	if first == 'n' || first == 'f' {
		return noFeature
	}
	switch name {
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
	w.f.outputMembers = w.object(func(key Span) Feature {
		first := w.s.Peek()
		w.s.Value()
		if first == 'n' {
			return noFeature
		}
		switch {
		case w.s.Is(key, "effort"):
			return OutputEffort
		case w.s.Is(key, "format"):
			return OutputFormat
		case w.s.Is(key, "task_budget"):
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
	w.object(func(key Span) Feature {
		if w.s.Is(key, "block_binding") {
			w.s.Value()
			return ThinkingBinding
		}
		if !w.s.Is(key, "type") {
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
	w.object(func(key Span) Feature {
		if !w.s.Is(key, "edits") {
			w.s.Value()
			return noFeature
		}
		w.array(func() {
			w.object(func(key Span) Feature {
				if w.s.Is(key, "type") {
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
	w.object(func(key Span) Feature {
		if !w.s.Is(key, "type") {
			w.s.Value()
			return noFeature
		}
		if kind := string(w.word()); kind == "any" || kind == "tool" {
			return ForcedTool
		}
		return noFeature
	})
}
