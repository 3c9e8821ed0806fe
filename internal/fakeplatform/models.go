package fakeplatform

import (
	"slices"
	"strings"
)

// model is one row of the reference's list (model-ids), as the clouds have it.
type model struct {
	bedrock  string // base ID without `anthropic.`
	profiles string // prefixes; "" is on demand by the base ID, "-" is retired
	mantle   string
	vertex   string
}

var cloudModels = []model{
	{"claude-fable-5-2", "us", "claude-fable-5-2", "claude-fable-5-2"},
	{"claude-fable-5-1", "global us eu", "claude-fable-5-1", "claude-fable-5-1"},
	{"claude-fable-5", "global us eu au", "claude-fable-5", "claude-fable-5"},
	{"claude-mythos-preview", "", "claude-mythos-preview", ""},
	{"claude-opus-5-5", "global us eu jp au", "claude-opus-5-5", "claude-opus-5-5"},
	{"claude-opus-5", "global us eu jp au", "claude-opus-5", "claude-opus-5"},
	{"claude-opus-4-8", "global us eu jp au", "claude-opus-4-8", "claude-opus-4-8"},
	{"claude-opus-4-7", "global us eu jp au", "claude-opus-4-7", "claude-opus-4-7"},
	{"claude-opus-4-6-v1", "global us eu jp apac", "", "claude-opus-4-6"},
	{"claude-opus-4-5-20251101-v1:0", "global us eu", "", "claude-opus-4-5@20251101"},
	{"claude-opus-4-1-20250805-v1:0", "us", "", "claude-opus-4-1@20250805"},
	{"claude-opus-4-20250514-v1:0", "-", "", "claude-opus-4@20250514"},
	{"claude-sonnet-5-5", "global us eu jp au apac us-gov", "claude-sonnet-5-5", "claude-sonnet-5-5"},
	{"claude-sonnet-5", "global us eu jp au", "claude-sonnet-5", "claude-sonnet-5"},
	{"claude-sonnet-4-6", "global us eu jp", "", "claude-sonnet-4-6"},
	{"claude-sonnet-4-5-20250929-v1:0", "global us eu jp", "", "claude-sonnet-4-5@20250929"},
	{"claude-sonnet-4-20250514-v1:0", "global us eu apac", "", "claude-sonnet-4@20250514"},
	{"claude-3-7-sonnet-20250219-v1:0", "-", "", ""},
	{"claude-haiku-5-5", "global us eu jp au", "claude-haiku-5-5", "claude-haiku-5-5"},
	{"claude-haiku-4-5-20251001-v1:0", "global us eu", "claude-haiku-4-5", "claude-haiku-4-5@20251001"},
	{"claude-3-5-haiku-20241022-v1:0", "us", "", "claude-3-5-haiku@20241022"},
}

// geographies are the prefixes of inference profiles.
var geographies = []string{"global", "us", "eu", "jp", "au", "apac", "us-gov"}

// reaches reports whether a profile may be called in the region.
func reaches(prefix, region string) bool {
	for geography, regions := range map[string][]string{
		"us": {"us-east-", "us-west-", "ca-"}, "eu": {"eu-"}, "jp": {"ap-northeast-1", "ap-northeast-3"}, "au": {"ap-southeast-2", "ap-southeast-4"},
		"apac": {"ap-"}, "us-gov": {"us-gov-"},
	} {
		if prefix == geography {
			return slices.ContainsFunc(regions, func(r string) bool { return strings.HasPrefix(region, r) })
		}
	}
	return prefix == "global" && !strings.HasPrefix(region, "us-gov-")
}

// bedrockModels are the IDs that can be invoked: profiles, and base IDs that
// need none.
func bedrockModels() (ids, retired []string) {
	for _, m := range cloudModels {
		base := "anthropic." + m.bedrock
		switch m.profiles {
		case "":
			ids = append(ids, base)
		case "-":
			retired = append(retired, base)
		default:
			for g := range strings.FieldsSeq(m.profiles) {
				ids = append(ids, g+"."+base)
			}
		}
	}
	return ids, retired
}

// splitProfile takes the prefix off an inference profile's ID.
func splitProfile(id string) (prefix, base string) {
	if g, rest, ok := strings.Cut(id, "."); ok && slices.Contains(geographies, g) {
		return g, rest
	}
	return "", id
}

// checkModel answers for a model that the platform does not serve there.
func checkModel(platform string, rules Rules, r *Request) (string, Answer) {
	name := r.Model
	switch platform {
	case Bedrock:
		return checkBedrockModel(rules, r)
	case Mantle:
		known := rules.Models
		if len(known) == 0 {
			for _, m := range cloudModels {
				if m.mantle != "" {
					known = append(known, "anthropic."+m.mantle)
				}
			}
		}
		if !slices.Contains(known, name) {
			return inner(platform, 404, "model: "+name)
		}
	case Vertex:
		if !servedByVertex(rules, name, r.call.location) {
			return front(platform, 404, "", "Publisher Model `projects/"+r.call.project+"/locations/"+r.call.location+"/publishers/anthropic/models/"+name+"` was not found or your project does not have access to it.")
		}
	default:
		if len(rules.Models) > 0 && !slices.Contains(rules.Models, name) {
			if platform == Foundry {
				return front(platform, 404, "DeploymentNotFound", "The API deployment for this resource does not exist.")
			}
			return inner(platform, 404, "model: "+name)
		}
	}
	return "", Answer{}
}

func checkBedrockModel(rules Rules, r *Request) (string, Answer) {
	known, retired := bedrockModels()
	if len(rules.Models) > 0 {
		known, retired = rules.Models, nil
	}
	id := r.Model
	if i := strings.LastIndexByte(id, '/'); strings.HasPrefix(id, "arn:") && i >= 0 && !slices.Contains(known, id) {
		id = id[i+1:]
	}
	prefix, base := splitProfile(id)
	needsProfile := slices.ContainsFunc(known, func(k string) bool { p, b := splitProfile(k); return p != "" && b == id })
	switch {
	case slices.Contains(retired, base):
		return front(Bedrock, 404, "ResourceNotFoundException", "This model version has reached the end of its life. Please refer to the AWS documentation for more details.")
	case r.call.op == opCount && len(rules.CountModels) > 0 && slices.Contains(rules.CountModels, id):
		return "", Answer{}
	case r.call.op == opCount && (prefix != "" || needsProfile || len(rules.CountModels) > 0):
		return front(Bedrock, 400, "ValidationException", "The provided model doesn't support counting tokens.")
	case needsProfile && !slices.Contains(known, id):
		return front(Bedrock, 400, "ValidationException", "Invocation of model ID "+id+" with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model.")
	case !slices.Contains(known, id), prefix != "" && rules.Region != "" && !reaches(prefix, rules.Region):
		return front(Bedrock, 400, "ValidationException", "The provided model identifier is invalid.")
	}
	return "", Answer{}
}

// servedByVertex knows that models from 4.7 on are served from global and the
// multi-regions only.
func servedByVertex(rules Rules, name, location string) bool {
	if len(rules.Models) > 0 {
		return slices.Contains(rules.Models, name)
	}
	i := slices.IndexFunc(cloudModels, func(m model) bool { return m.vertex != "" && (m.vertex == name || m.vertex+"@default" == name) })
	if i < 0 {
		return false
	}
	multi := location == "global" || location == "us" || location == "eu"
	return multi || strings.ContainsRune(cloudModels[i].vertex, '@') || strings.HasSuffix(cloudModels[i].vertex, "-4-6")
}

// vertexHost reports whether a host serves a location. Names that are not
// Google's (a test's) serve all.
func vertexHost(host, location string) bool {
	if !strings.HasSuffix(host, "googleapis.com") {
		return true
	}
	switch location {
	case "global":
		return host == "aiplatform.googleapis.com"
	case "us", "eu":
		return host == "aiplatform."+location+".rep.googleapis.com"
	}
	return host == location+"-aiplatform.googleapis.com"
}

// shortName is the name that an answer has for a model's ID.
func shortName(platform, id string) string {
	switch platform {
	case Bedrock, Mantle:
		if i := strings.LastIndexByte(id, '/'); i >= 0 {
			id = id[i+1:]
		}
		_, id = splitProfile(id)
		id = strings.TrimPrefix(id, "anthropic.")
		if i := strings.LastIndex(id, "-v"); i > 0 && strings.Trim(id[i+2:], "0123456789:") == "" {
			id = id[:i]
		}
	case Vertex:
		id = strings.TrimSuffix(id, "@default")
		id = strings.ReplaceAll(id, "@", "-")
	}
	return id
}
