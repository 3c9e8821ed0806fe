// Package test runs the built binary and fake platforms behind a real Envoy and
// judges by what goes over the wire. One file is one behaviour of the contract.
//
// An environment (env_test.go) is one Envoy, one service and many lanes: a lane
// has its own model name, route, targets and fake platforms, so that cases share
// processes and nothing else. Most cases are a flow (flow_test.go): what the
// platforms answer, and everything that must follow for the client, the trail,
// the metrics and each platform.
//
// ENVOY names the Envoy binary; without it the tests fail. ENVOY_CONCURRENCY is
// its number of workers (1 when empty).
package test
