// Package messages knows the client's schema, the Claude Messages API: what a
// stream event means for the hold (Read), what an error body says (ParseError),
// how an answer ended (ReadTail, Ending), and how an error is told to a client
// (EncodeError), also one of another schema (Translate).
//
// It judges nothing: kinds of failure are the policy's. Text of messages passes
// through it and stays out of everything that may be logged; Redact is the one
// way to a text that may, ForClient to one that a client reads.
//
// All functions are pure and safe for concurrent use. What they return never
// aliases what they were given, but for an answer that Translate leaves as it is.
package messages
