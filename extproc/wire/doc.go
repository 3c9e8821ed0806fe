// Package wire is the ext_proc and the access-log protocol without reflection:
// Envoy's ProcessingRequest and StreamAccessLogsMessage are read, and its
// ProcessingResponse written, by hand over pooled buffers. It knows bytes, not
// policy.
//
// # The way of a message
//
// gRPC hands over a message as many 16 KiB frames. [Codec] copies them once
// into one pooled [Buffer] and [Request] points into it: headers, state and
// body alias the same bytes, nothing is copied again. A body goes back the same
// way: [Response] carries a Buffer, gRPC sends its bytes in place and drops its
// reference when they are on the wire.
//
// # Who owns what
//
// A Buffer has a reference count. Whoever holds a reference may read the bytes;
// who drops the last one gives the memory back. [Stream.Recv] gives up what the
// Request held before it waits, so a stream that only waits holds no body;
// [Request.TakeBody] moves the body's reference to the caller. [Stream.Send]
// takes over the reference in Response.Body, whether it succeeds or not.
// [LogStream.Recv] gives up what the [LogMessage] held in the same way; one of
// its entries is handed on as the bytes that came, copied by [EncodeLog].
// [Live] counts the buffers in use: it is 0 when all is idle, which tests check.
//
// # Same as the generated types
//
// Accepted and refused is exactly what google.golang.org/protobuf accepts and
// refuses for envoy.service.ext_proc.v3 and envoy.service.accesslog.v3: fields
// in any order, unknown fields, known fields of another wire type (skipped),
// repeated submessages (merged), the last member of a oneof wins, strings must
// be UTF-8. Fields that the service has no use for are checked and let go. Fuzz
// tests hold both sides against the generated types.
//
// # Memory
//
// Arrays are kept for reuse, not zeroed, in bounded lists: see arrays.go for
// the bodies and frames.go for gRPC's frames. While a body is in transit its
// frames and the copy exist together; after the copy the frames are free.
package wire
