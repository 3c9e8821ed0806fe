// Package messages knows the client's schema, the Claude Messages API: what a
// stream event means for the hold (Read), what an error body says (ParseError),
// how an answer ended (ReadTail), and how an error is told to a client
// (EncodeError).
//
// It judges nothing: kinds of failure are the policy's. Text of messages passes
// through it and stays out of everything that may be logged; Redact is the one
// way to a text that may.
//
// All functions are pure and safe for concurrent use. What they return never
// aliases what they were given.
package messages
