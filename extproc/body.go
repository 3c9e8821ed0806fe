package extproc

import (
	"errors"

	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/rewrite"
)

var errMemory = errors.New("the service holds as many request bodies as it may")

// decode takes over a request's body, undoes its content-encoding and counts
// it. limit is what it may come to. On an error buf is freed.
func (s *Server) decode(buf *wire.Buffer, encoding string, limit int64) (*lease, error) {
	raw := buf.Bytes()
	plain, err := rewrite.Decode(encoding, raw, limit)
	if err != nil {
		buf.Free()
		return nil, err
	}
	decoded := len(plain) != len(raw) || (len(raw) > 0 && &plain[0] != &raw[0])
	if decoded {
		buf.Free()
		buf = wire.NewBuffer(len(plain))
		copy(buf.Bytes(), plain)
	}
	body, ok := s.table.take(buf)
	if !ok {
		buf.Free()
		return nil, errMemory
	}
	body.decoded = decoded
	return body, nil
}

// unchanged reports whether attempt a sends the very bytes that Envoy holds.
// x.mu is held.
func (x *exchange) unchanged(a *policy.Attempt) bool {
	return !x.encoded && a.Model == x.facts.Model
}

// edits are the changes that attempt a makes to the client's bytes. x.mu is
// held.
func (x *exchange) edits(a *policy.Attempt) []rewrite.Edit {
	if a.Model == x.facts.Model {
		return nil
	}
	return []rewrite.Edit{rewrite.SetModel(x.facts, a.Model)}
}

// length is that of attempt a's body. x.mu is held.
func (x *exchange) length(a *policy.Attempt) int {
	return rewrite.Length(x.body.buf.Bytes(), x.edits(a))
}

// bodyFor is attempt a's body; the caller owns the reference. x.mu is held.
func (x *exchange) bodyFor(a *policy.Attempt) *wire.Buffer {
	original := x.body.buf
	edits := x.edits(a)
	if len(edits) == 0 {
		original.Ref()
		return original
	}
	out := wire.NewBuffer(rewrite.Length(original.Bytes(), edits))
	rewrite.Splice(out.Bytes()[:0], original.Bytes(), edits)
	return out
}
