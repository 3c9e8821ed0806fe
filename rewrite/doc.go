// Package rewrite turns bytes into bytes: it looks at a request once (Inspect),
// and makes each attempt's body from the original by replacing spans (Splice).
// Nothing is decoded and encoded again, so what is outside an edit stays as the
// client wrote it, byte for byte.
//
// Everything here is pure: no I/O, no clock, no state between calls, safe for
// concurrent use. Nothing keeps the bytes it is given; Facts hold offsets into
// the body, not slices of it, so the body may live elsewhere (and be let go)
// while its Facts go on.
//
// What is refused, and how it is told: see Inspect and RequestError. Below this
// package: scan (JSON by position), sse (stream events), messages (the client's
// schema: events, errors, endings), platform (what each platform wants).
package rewrite
