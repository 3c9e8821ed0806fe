// Package fakeplatform imitates the platforms that the gateway sends requests
// to: HTTP servers on the loopback address that record every request as it came
// over the wire, refuse what the real platform refuses, and answer as scripted.
//
// A server is a judge: it knows its platform's paths, credentials (signatures
// are recomputed), headers, versions, betas, models, limits and members of the
// body, all of its own, so that a fault in the gateway's tables or encoders does
// not hide here. bedrock, mantle and vertex refuse what they do not know; the
// others take what is new, unless Rules say Strict. Where nobody knows how a
// platform answers, it is the stricter guess.
//
// Good, StreamFor and Failures have each answer in its platform's own framing.
//
// HTTP/1.1 is served by hand, on the raw connection: the header list keeps its
// order, an answer can be cut at any byte, reset, stalled or never ended. HTTP/2
// (TLS only, by ALPN) is served by net/http; there the header list is sorted by
// name, since the order is lost.
//
// The package knows nothing of testing: the demo uses it too.
package fakeplatform
