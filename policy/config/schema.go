package config

import _ "embed"

//go:embed crossdoor.schema.json
var schemaText []byte

// Schema is the JSON Schema (2020-12) of the policy file, for editors and CI. It
// knows members, types and words; references and rules between members only
// Load knows. The caller owns the bytes.
func Schema() []byte { return append([]byte(nil), schemaText...) }
