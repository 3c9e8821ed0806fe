// Package extproc is the gRPC side of Crossdoor: what Envoy's filters ask, and
// what they are told.
//
// Four roles reach it (see Server): plan sees the request and the final answer,
// attempt is asked before each attempt leaves, judge sees an attempt's answer
// while its headers are held, and the access log tells how attempts and
// exchanges ended. They meet in the table, which maps an exchange's id to its
// state; whoever comes with an id that this replica has never seen carries
// enough state to go on (join.go).
//
// An exchange begins with its request's body and ends exactly once, whatever
// happens first: its plan stream closes, its access-log entry comes, or its
// connection breaks. Ending gives back the body, the breaker's slots and the
// table entry, writes one trail record and counts once.
package extproc
