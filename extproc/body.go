package extproc

import (
	"errors"

	"github.com/crossdoor/crossdoor/extproc/wire"
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
