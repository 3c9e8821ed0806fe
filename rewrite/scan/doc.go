// Package scan reads JSON by position, without decoding it: strict RFC 8259 in
// UTF-8, one pass, no allocation, no recursion in skipped values. Inspection of
// requests and the reading of errors and stream events stand on it.
//
// A Scanner is a value on the caller's stack. Its methods never panic on any
// input: the first fault sticks, and from then on every method reports "no
// more", so that a caller may walk first and ask Fault once at the end.
package scan
