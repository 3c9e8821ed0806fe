// Package demo is the tour that `crossdoor demo` gives: fake platforms, the
// service as a child process and a real Envoy on free ports of 127.0.0.1, and
// one step for each thing that goes wrong with platforms. Each step sends
// requests as a client would and checks strictly what came back, what the
// platforms got, and what the trail says.
//
// What a fake platform does to a request follows from the request's model
// (faults), so that the same failures can be asked for with curl afterwards.
//
// world.go is what runs, steps.go the script, check.go what a request must come
// to, screen.go and show.go what is seen of it.
package demo
