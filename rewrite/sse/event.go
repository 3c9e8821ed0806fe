package sse

// first takes a data line whose bytes live as long as the chunk: the first of an
// event stays where it is.
func (p *Parser) first(value []byte) {
	if p.hasData {
		p.join(value)
		return
	}
	p.hasData, p.ref = true, value
}

// join takes a data line by copying it.
func (p *Parser) join(value []byte) {
	p.settle()
	if p.hasData {
		p.data = append(p.data, '\n')
	}
	p.hasData = true
	p.data = append(p.data, value...)
}

// settle copies the data line that lies in a chunk about to go.
func (p *Parser) settle() {
	if p.ref != nil {
		p.data = append(p.data, p.ref...)
		p.ref = nil
	}
}

// dispatch ends an event at its blank line: yields it if it has data, and makes
// room for the next.
func (p *Parser) dispatch(yield func(Event) bool) bool {
	if p.hasData {
		event := Event{Name: p.name, Data: p.data}
		if p.ref != nil {
			event.Data = p.ref
		}
		p.stopped = !yield(event)
	}
	p.name, p.data, p.ref, p.hasData, p.size = p.name[:0], p.data[:0], nil, false, 0
	return !p.stopped
}

// check refuses an event that the line of n bytes makes too long.
func (p *Parser) check(n int) bool {
	limit := p.MaxEvent
	if limit == 0 {
		limit = DefaultMaxEvent
	}
	if p.size+n > limit {
		p.failed = ErrEventTooLong
		return false
	}
	return true
}
