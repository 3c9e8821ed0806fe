// Package sse reads server-sent events from bytes as they arrive (WHATWG HTML,
// "Interpreting an event stream"). A Parser is fed; it never reads. Each byte is
// looked at a fixed number of times, however the stream is cut, and an event
// that lies whole in one chunk is handed on without a copy. Append writes them.
//
// Not kept, since nobody here needs them: the last event ID and the reconnection
// time. An event without data is none, as the standard says, and neither is one
// that the end of the stream cuts off.
package sse
