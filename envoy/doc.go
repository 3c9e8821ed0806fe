// Package envoy renders a policy as the config of a plain Envoy, 1.37 to 1.40:
// one file that starts as it is, and the same as files that Envoy follows.
//
// The topology is one for every policy. Clients reach the listener, whose
// filters guard (nothing of ours or of Envoy's comes in or goes out) and plan
// (the service reads the request) stand before a route that always leads to the
// dispatch cluster. That cluster's own filters ask the service before an
// attempt and let it judge an answer; its only endpoint is a listener in the
// same process, which sends the attempt to the cluster that the service named.
// A retry of the outer router is the next attempt. So the chain lives in the
// service alone, and what differs from policy to policy are sizes, timeouts,
// the targets' clusters and what happens when the service is down.
//
// Config is written as text from the templates beside this package, because
// reviewers read it: reasons stand as comments at the settings. Every file is
// then parsed back into Envoy's own types, strictly, and validated with all that
// is nested in it, before Render returns it.
//
// The files of this package follow the parts of the config: listener.go,
// dispatch.go, target.go, service.go, bootstrap.go; options.go says what can be
// chosen, template.go how text is made, validate.go how it is checked. Names
// that config and service share are in the package names.
package envoy
