package platform

import (
	"encoding/json"
	"slices"

	"github.com/crossdoor/crossdoor/rewrite"
)

// Change is what a request's body needs at the platform whatever is in it: the
// platform's ID of its model, and the members that travel elsewhere. What the
// platform refuses of the request (Strip, Replace) is the caller's to add. Where
// no byte changes it is the zero Change, which has no Edits: so at every platform
// that has first-party paths, for a model that it knows by the client's name.
// The change of a request that Wraps is that of the inner body. What is sent on
// other paths is never changed.
//
// A header that moves into the body replaces the member there; a version that the
// client wrote into the body itself stays, since it means that one.
//
// f are the facts of the client's body. The same facts and call give the same
// change.
func (s *Spec) Change(f *rewrite.Facts, c Call) rewrite.Change {
	if c.Operation == Other {
		return rewrite.Change{}
	}
	counts := c.Operation == CountTokens
	change := rewrite.Change{
		DropModel:  s.body.noModel && (!counts || !s.body.countModel),
		DropStream: s.body.noStream && has(f, "stream"),
	}
	if !change.DropModel && c.Model != f.Model {
		change.Model = c.Model
	}
	if s.body.version != "" && !has(f, "anthropic_version") {
		change.Add = append(change.Add, addition("anthropic_version", s.body.version))
	}
	if list := rewrite.Tokens(c.Betas); s.body.betas && len(list) > 0 {
		change.Add = append(change.Add, addition("anthropic_beta", list))
	}
	if s.body.profile && c.UserProfile != "" {
		change.Add = append(change.Add, addition("user_profile_id", c.UserProfile))
	}
	if s.Wraps(c.Operation) && !has(f, "max_tokens") {
		change.Add = append(change.Add, addition("max_tokens", countLimit(f)))
	}
	return change
}

func addition(name string, value any) rewrite.Addition {
	text, err := json.Marshal(value)
	if err != nil { // cannot be: strings and numbers have a JSON form
		text = []byte("null")
	}
	return rewrite.Addition{Name: name, Value: text}
}

func has(f *rewrite.Facts, name string) bool {
	return slices.ContainsFunc(f.Members, func(m rewrite.Member) bool { return m.Name == name })
}

// CountTokens of Amazon Bedrock checks its body as one of InvokeModel, which must
// have max_tokens; a count of the Messages API has none. The value is not
// counted. It is what every model takes, or what every model that thinks takes,
// since a thinking budget must be below it. (Not in Amazon's documentation:
// langchain-ai/langchain-aws#661 and BerriAI/litellm#30102 met it.)
func countLimit(f *rewrite.Facts) int {
	if has(f, "thinking") {
		return 32_000
	}
	return 4096
}
