package fakeplatform

import "time"

// writer is the wire below an answer: HTTP/1.1 by hand, or HTTP/2.
type writer interface {
	head(a Answer) error
	piece(b []byte) error
	finish() error
}

// player plays one answer for one request.
type player struct {
	s    *Server
	r    *Request
	w    writer
	gone <-chan struct{} // closed when the caller is seen to leave
}

// play sends the answer and returns what must happen to the connection. A
// caller that leaves ends it early with EndClose.
func (p *player) play(a Answer) End {
	end := p.send(a)
	p.s.update(p.r, func(r *Request) { r.Ended = time.Now() })
	return end
}

func (p *player) send(a Answer) End {
	if !p.pass(a.Gate) || !p.wait(a.Wait) {
		return EndClose
	}
	if a.Status != 0 {
		if p.w.head(a) != nil {
			return p.left()
		}
		p.s.update(p.r, func(r *Request) { r.Answered = time.Now() })
		for i, part := range a.Parts {
			if a.Mid != nil && i == a.MidPart && !p.pass(a.Mid) {
				return EndClose
			}
			if !p.part(part) {
				return EndClose
			}
		}
	}
	switch a.End {
	case EndStall:
		select {
		case <-p.gone:
			return p.left()
		case <-p.s.done:
			return EndClose
		}
	case EndClean:
		if p.w.finish() != nil {
			return p.left()
		}
	}
	return a.End
}

func (p *player) part(part Part) bool {
	for n := 0; part.Repeat < 0 || n <= part.Repeat; n++ {
		if !p.wait(part.Wait) {
			return false
		}
		if p.w.piece(part.Data) != nil {
			p.left()
			return false
		}
		p.s.update(p.r, func(r *Request) { r.Sent += int64(len(part.Data)) })
	}
	return true
}

// wait is false when the caller left or the server closes meanwhile.
func (p *player) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.gone:
		p.left()
	case <-p.s.done:
	}
	return false
}

// pass is wait for a gate; a nil gate is open.
func (p *player) pass(gate <-chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-p.gone:
		p.left()
	case <-p.s.done:
	}
	return false
}

func (p *player) left() End {
	p.s.update(p.r, func(r *Request) { r.Gone = time.Now() })
	return EndClose
}
