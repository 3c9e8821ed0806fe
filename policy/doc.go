// Package policy is the thinking: what an answer means, what follows from it
// and who is healthy. It does no I/O and knows no Envoy or gRPC type; the rules
// are those of the contract (sections 3 to 5 and 7 of the product design).
//
// # One answer
//
// [Classify] turns an [Answer] into an [Outcome]: a kind, whom it blames, a
// retry time. [OutcomeOf] is the same for what no answer tells, such as a first
// token that never came. Where the platform reference and the contract differ,
// the contract holds: a 503 is overloaded whoever sent it, a 429 is rate_limit
// with or without a retry time.
//
// Message text is consulted only where the contract names a phrase, only the
// error object's own message, and never inside quotation marks or behind a JSON
// path: providers repeat parts of the request there, and a prompt must not be
// able to eject a key.
//
// # Health
//
// [Health] keeps one breaker for each target, target and model, key, key and
// model. [Health.Look] asks, [Health.Admit] takes (a concurrency slot, and the
// probe of every half-open scope it passes), [Admission.Report] gives back, once.
// An Admission that is never reported keeps its slot and its probe for good: the
// caller reports in the one function that ends an attempt.
//
// Breakers are gobreaker's two-step form, whose open time is fixed for the life
// of an instance. Ours differs each time (it doubles, or is what a 429 asked
// for), so each open period is a fresh instance that is born open; gobreaker
// then does what it does well: the half-open state, its single slot, exclusion
// and the count of consecutive failures. Being another instance also tells a
// late report apart. What late reports do: a success or a counted failure of an
// older instance does nothing; a 429 or a long failure moves the deadline of a
// scope that is still open, later only.
//
// A probe closes the scopes it went through only by a success. A failure that
// blames another scope (a 529 answered by a target that was ejected for refused
// connections) says nothing for this one: the slot is free again at once.
package policy
