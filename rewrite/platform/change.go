package platform

import (
	"encoding/json"
	"slices"

	"github.com/crossdoor/crossdoor/rewrite"
)

// Change is what the platform has changed about every request, whatever is in
// it; what does not fit there is the caller's to add. Members that the client
// wrote itself stay. The same call gives the same change every time.
func (s *Spec) Change(f *rewrite.Facts, c Call) (out rewrite.Change) {
	counts := c.Operation == CountTokens
	if s.body.noModel && (!counts || !s.body.countModel) {
		out.DropModel = true
	} else {
		out.Model = c.Model
	}
	out.DropStream = s.body.noStream
	add := func(name string, value any) {
		if slices.ContainsFunc(f.Members, func(m rewrite.Member) bool { return m.Name == name }) {
			return
		}
		if text, err := json.Marshal(value); err == nil { // always, of strings
			out.Add = append(out.Add, rewrite.Addition{Name: name, Value: text})
		}
	}
	if s.body.version != "" {
		add("anthropic_version", s.body.version)
	}
	if s.body.betas && len(c.Betas) > 0 {
		add("anthropic_beta", c.Betas)
	}
	if s.body.profile && c.UserProfile != "" {
		add("user_profile_id", c.UserProfile)
	}
	if s.Wraps(c.Operation) {
		tokens := countMaxTokens
		if f.Uses&rewrite.Thinking != 0 {
			tokens = countMaxTokensThinking
		}
		add("max_tokens", json.RawMessage(tokens))
	}
	return out
}
