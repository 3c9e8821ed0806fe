package messages

// backward reads JSON from its end: text is the end of an object, cut at the
// front anywhere. It calls each for every member of that object whose name and
// value are there, the last first; name is without its quotes, escapes and all.
// whole is false when text does not end as an object does.
//
// Going backward is unambiguous: outside of strings a quote can only be the end
// of one, and a string begins at the nearest quote before it that has an even
// number of backslashes in front of it.
func backward(text []byte, each func(name, value []byte)) (whole bool) {
	i := len(text) - 1
	for i >= 0 && blank(text[i]) {
		i--
	}
	if i < 0 || text[i] != '}' {
		return false
	}
	end, depth := i, 1 // end is the exclusive end of the value being looked for
	colon := -1
	for i--; i >= 0; i-- {
		switch c := text[i]; c {
		case '}', ']':
			depth++
		case '{', '[':
			depth--
			if depth == 0 {
				return true
			}
		case ',':
			if depth == 1 {
				end, colon = i, -1
			}
		case ':':
			if depth == 1 {
				colon = i
			}
		case '"':
			first := opening(text, i)
			if first < 0 {
				return true // the cut went through this string
			}
			if depth == 1 && colon >= 0 {
				each(text[first+1:i], trim(text[colon+1:end]))
				colon = -1
			}
			i = first
		}
	}
	return true
}

// opening is the offset of the quote that begins the string ending at last.
func opening(text []byte, last int) int {
	for i := last - 1; i >= 0; i-- {
		if text[i] != '"' {
			continue
		}
		slashes := 0
		for j := i - 1; j >= 0 && text[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i -= slashes
	}
	return -1
}

func trim(value []byte) []byte {
	for len(value) > 0 && blank(value[0]) {
		value = value[1:]
	}
	for len(value) > 0 && blank(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	return value
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
