package rewrite

// vocabulary holds the names of the Messages API: they need no copy of their
// own, and they alone may be named in an error, since any other name is text of
// the client's.
var vocabulary = func() map[string]string {
	m := map[string]string{}
	for _, n := range []string{
		"anthropic_beta", "anthropic_version", "billing_policy", "cache_control", "compaction", "container",
		"context_management", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens",
		"mcp_servers", "messages", "metadata", "model", "output_config", "output_format", "service_tier", "speed",
		"stop_sequences", "stream", "system", "temperature", "thinking", "thread", "tool_choice", "tools", "top_k",
		"top_p", "user_profile_id",
	} {
		m[n] = n
	}
	return m
}()

// intern returns name as a string without allocating where it is a known one.
func intern(name []byte) string {
	if n, ok := vocabulary[string(name)]; ok {
		return n
	}
	return string(name)
}

// known is ` ("name")` for a name that may be told, else nothing.
func known(name string) string {
	if n, ok := vocabulary[name]; ok {
		return ` ("` + n + `")`
	}
	return ""
}

// names finds a name that comes twice: by looking through the few that there
// usually are, by a set when they become many, so that the work stays linear.
type names struct{ set map[string]struct{} }

const few = 32

// add reports whether name is new; before are the members already taken.
func (n *names) add(name string, before []Member) bool {
	if len(before) < few {
		for i := range before {
			if before[i].Name == name {
				return false
			}
		}
		return true
	}
	if n.set == nil {
		n.set = make(map[string]struct{}, 4*few)
		for i := range before {
			n.set[before[i].Name] = struct{}{}
		}
	}
	_, twice := n.set[name]
	n.set[name] = struct{}{}
	return !twice
}
