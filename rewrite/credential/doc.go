// Package credential holds the secrets that attempts are signed with. An
// attempt asks and never waits: values are read when the policy is loaded and
// kept fresh in the background. No value ever leaves the package except through
// Static.Value, and none is logged.
package credential
