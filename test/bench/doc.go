// Command bench measures what Crossdoor costs, as ratios in one run on one
// machine: Envoy alone (D), Envoy with a no-op ext_proc service (N), and
// Crossdoor (P), the same Envoy binary and the same settings for all.
//
//	go run ./test/bench -quick            two minutes, the table on stdout
//	go run ./test/bench -update           the full run; writes docs/performance.md and docs/performance.svg
//	go run ./test/bench -only 'SSE'       the cases whose name matches
//
// A case (cases.go) is a number of blocks. A block runs every side for a short
// while and then all of them again in reverse order, so that a drift of the
// machine meets all alike; the ratio is taken inside a block, and what is told
// is the median over blocks with its interval (stats.go). The platform
// (upstream.go) and the clients (load.go) live in this process; each side's
// Envoy and service are processes of their own, whose CPU and memory are read
// from /proc (proc.go).
//
// The rewriting alone (alone.go, subjects.go) is measured in this process, with
// blocks of the same kind, against memcpy and utf8.Valid.
//
// Nothing here is a timed test: no figure fails anything. What is wrong does: a
// body that arrives changed, a stream with other bytes than were sent, an
// answer that is not a 200, a failed attempt that did not happen.
package main
