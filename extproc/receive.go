package extproc

import "github.com/crossdoor/crossdoor/extproc/wire"

// chunk is one message of a stream that is read beside a timer.
type chunk struct {
	body []byte
	last bool
}

// receiver reads a stream's body messages in a goroutine of its own, one at a
// time: a chunk's bytes are valid until done is called.
type receiver struct {
	c    chan chunk
	next chan struct{}
	quit chan struct{}
}

// receive starts reading. stop must be called; the goroutine ends then, or when
// the stream does.
func receive(stream counted) *receiver {
	r := &receiver{c: make(chan chunk), next: make(chan struct{}), quit: make(chan struct{})}
	go r.run(stream)
	return r
}

func (r *receiver) run(stream counted) {
	defer close(r.c)
	var req wire.Request
	defer req.Release()
	for {
		if stream.Recv(&req) != nil {
			return
		}
		c := chunk{last: req.EndOfStream || req.Kind == wire.KindResponseTrailers}
		if req.Body != nil {
			c.body = req.Body.Bytes()
		}
		select {
		case r.c <- c:
		case <-r.quit:
			return
		}
		select {
		case <-r.next:
		case <-r.quit:
			return
		}
	}
}

// done gives the last chunk's bytes back.
func (r *receiver) done() {
	select {
	case r.next <- struct{}{}:
	case <-r.quit:
	}
}

func (r *receiver) stop() { close(r.quit) }
