package sse

// Append appends an event as the wire has it: the name's line, one data line, a
// blank line. name and data must have no line breaks: it does not look for them.
// An empty name is left out.
func Append(dst, name, data []byte) []byte {
	if len(name) > 0 {
		dst = append(dst, "event: "...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}
