package platform

import "strings"

// Canonical is the first-party ID of a model by any of its names: an ID, an
// alias, the ID of a platform, of an inference profile, an ARN that ends in one;
// "" when the table does not have it. A deployment of one's own name, and an ARN
// that ends in an account's own, are not known.
func Canonical(model string) string {
	if r, ok := byName[model]; ok {
		return r.id
	}
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, prefix := range profilePrefixes {
		if rest, ok := strings.CutPrefix(name, prefix+".anthropic."); ok {
			name = "anthropic." + rest
			break
		}
	}
	name = withoutVersion(strings.TrimPrefix(name, "anthropic."))
	name, at, _ := strings.Cut(name, "@")
	if r, ok := byName[name+"-"+at]; ok { // claude-haiku-4-5@20251001
		return r.id
	}
	if r, ok := byName[name]; ok {
		return r.id
	}
	return ""
}

// withoutVersion drops Bedrock's version: -v1, -v1:0.
func withoutVersion(name string) string {
	i := strings.LastIndex(name, "-v")
	if i < 0 {
		return name
	}
	major, minor, both := strings.Cut(name[i+2:], ":")
	if !digits(major) || (both && !digits(minor)) {
		return name
	}
	return name[:i]
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
