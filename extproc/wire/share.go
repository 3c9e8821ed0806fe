package wire

import (
	"runtime"

	"google.golang.org/grpc/mem"
)

// wireRef is one reference to a Buffer in gRPC's hands. It is the pool of a
// mem.Buffer: the last Free there comes here as Put.
//
// gRPC forgets what waits to be written when the connection dies
// (internal/transport: loopyWriter.run returns without freeing the established
// streams). The cleanup drops the reference then, with the next collections.
type wireRef struct {
	buf     *Buffer
	cleanup runtime.Cleanup
}

// Get is never called: memory only comes back here.
func (*wireRef) Get(length int) *[]byte {
	b := make([]byte, length)
	return &b
}

// Put drops the reference.
func (w *wireRef) Put(*[]byte) {
	w.cleanup.Stop()
	w.buf.Free()
	runtime.KeepAlive(w)
}

// share takes a reference to b for gRPC, which drops it when the bytes are on
// the wire or the stream is over. Buffers below gRPC's pooling threshold are
// never freed by it, so those are copied.
func share(b *Buffer) mem.Buffer {
	if mem.IsBelowBufferPoolingThreshold(cap(b.data)) {
		return mem.SliceBuffer(append([]byte(nil), b.data...))
	}
	b.Ref()
	w := &wireRef{buf: b}
	w.cleanup = runtime.AddCleanup(w, (*Buffer).Free, b)
	return mem.NewBuffer(&b.data, w)
}
