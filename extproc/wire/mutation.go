package wire

// overwrite is OVERWRITE_IF_EXISTS_OR_ADD of HeaderValueOption.append_action.
const overwrite = 2

// mutationSize is the size of HeaderMutation.
func mutationSize(set []HeaderField, remove []string) int {
	n := 0
	for i := range set {
		n += fieldSize(optionSize(&set[i]))
	}
	for _, name := range remove {
		n += fieldSize(len(name))
	}
	return n
}

// optionSize is the size of HeaderValueOption: header, append_action and, for
// an empty value, keep_empty_value.
func optionSize(f *HeaderField) int {
	n := fieldSize(valueSize(f)) + 2
	if f.Value == "" {
		n += 2
	}
	return n
}

// valueSize is the size of HeaderValue: key and raw_value.
func valueSize(f *HeaderField) int {
	return fieldSize(len(f.Name)) + fieldSizeUnless0(len(f.Value))
}

func appendMutation(b []byte, set []HeaderField, remove []string) []byte {
	for i := range set {
		f := &set[i]
		b = appendLength(b, 1, optionSize(f))
		b = appendLength(b, 1, valueSize(f))
		b = appendString(b, 1, f.Name)
		if f.Value != "" {
			b = appendString(b, 3, f.Value)
		}
		b = appendNumber(b, 3, overwrite)
		if f.Value == "" {
			b = appendNumber(b, 4, 1) // else the header may be dropped instead of set
		}
	}
	for _, name := range remove {
		b = appendString(b, 2, name)
	}
	return b
}

// immediateSize is the size of ImmediateResponse. The status is 200 to 599: two
// bytes of varint in field 1 of HttpStatus.
func immediateSize(m *Immediate, mutation int) int {
	return fieldSize(3) + fieldSizeUnless0(mutation) + fieldSizeUnless0(len(m.Body)) + fieldSizeUnless0(len(m.Details))
}

func appendImmediate(b []byte, m *Immediate, mutation int) []byte {
	b = appendLength(b, 1, 3)
	b = appendNumber(b, 1, uint64(m.Status))
	if mutation > 0 {
		b = appendLength(b, 2, mutation)
		b = appendMutation(b, m.Headers, nil)
	}
	if len(m.Body) > 0 {
		b = appendLength(b, 3, len(m.Body))
		b = append(b, m.Body...)
	}
	if m.Details != "" {
		b = appendString(b, 5, m.Details)
	}
	return b
}
