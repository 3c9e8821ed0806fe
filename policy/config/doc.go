// Package config is the policy file: its shape as Go types (file.go), reading
// it with positions and all errors at once (load.go, decode.go), and the
// checked, immutable Policy that everything else works with (policy.go).
//
// A file goes through three steps. parse bounds the text (size, nesting, no
// anchors) and gives a YAML tree. The decoder lays the tree over the File types
// by their tags: unknown and duplicate members, wrong types, ranges, words of an
// enumeration, defaults. The compiler resolves references and checks the rules
// that concern more than one member. A step that finds errors does not stop the
// next one, except that a text which is no YAML has nothing to decode; a member
// that is already wrong is left out of later rules, so that one slip gives one
// error.
//
// Members of the contract that this build does not implement are of type Later:
// they are part of the shape, are accepted with their off value, and are refused
// as "not supported yet" with any other.
//
// The same types give the JSON Schema (crossdoor.schema.json) and the policy
// reference (docs/policy.md). After changing file.go run go generate; a test
// fails when either is stale.
//
// No value of a key is ever part of a policy, and no error repeats a text that
// may be one: values are shown only where they are names.
package config

//go:generate go test . -run TestGenerated -update
