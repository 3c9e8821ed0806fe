package config

import "cmp"

// front is what this package knows of a platform: where it is, what a target of
// it must say and may say. How it is spoken to is not the policy's matter.
type front struct {
	url    func(FileTarget) string
	prefix func(FileTarget) string // before the client's path; nil is none
	needs  []string                // members that a target must have
	takes  []string                // further members that not every platform has
	auths  []Auth                  // the first is that of a target without keys

	anyID       bool // a model that is in no table is taken as it is
	firstParty  bool // every first-party path is there, below the prefix
	passthrough bool // a client's own key means something there
	files       bool // has the Files API

	body, image int64 // limits in bytes
}

const mib = 1 << 20

// Hosts, paths and limits: the platforms' own documents. Where they write MB,
// MiB is meant, as in the contract's limits of the first-party API; a limit that
// no document gives is the first-party one.
var fronts = map[string]front{
	PlatformAnthropic: {
		url:   func(FileTarget) string { return "https://api.anthropic.com" },
		auths: []Auth{AuthKey},
		anyID: true, firstParty: true, passthrough: true, files: true,
		body: 32 * mib, image: 10 * mib,
	},
	PlatformClaudeOnAWS: {
		url:   func(t FileTarget) string { return "https://aws-external-anthropic." + t.Region + ".api.aws" },
		needs: []string{"region", "workspace"},
		auths: []Auth{AuthSigV4, AuthKey},
		anyID: true, firstParty: true, passthrough: true, files: true,
		body: 32 * mib, image: 10 * mib,
	},
	PlatformClaudeOnGoogle: {
		url: func(FileTarget) string { return "https://claude.googleapis.com" },
		prefix: func(t FileTarget) string {
			return "/v1/projects/" + t.Project + "/locations/" + locationOf(t) + "/workspaces/" + t.Workspace + "/invoke"
		},
		needs: []string{"project", "workspace"}, takes: []string{"location"},
		auths: []Auth{AuthADC},
		anyID: true, firstParty: true, files: true,
		body: 32 * mib, image: 10 * mib,
	},
	PlatformBedrock: {
		url:   func(t FileTarget) string { return "https://bedrock-runtime." + t.Region + ".amazonaws.com" },
		needs: []string{"region"}, takes: []string{"profile"},
		auths: []Auth{AuthSigV4, AuthKey},
		body:  20 * mib, image: 5 * mib,
	},
	PlatformMantle: {
		url:    func(t FileTarget) string { return "https://bedrock-mantle." + t.Region + ".api.aws" },
		prefix: func(FileTarget) string { return "/anthropic" },
		needs:  []string{"region"},
		auths:  []Auth{AuthSigV4, AuthKey},
		body:   20 * mib, image: 5 * mib,
	},
	PlatformVertex: {
		url:   func(t FileTarget) string { return "https://" + vertexHost(t.Region) },
		needs: []string{"project", "region"},
		auths: []Auth{AuthADC},
		body:  30 * mib, image: 5 * mib,
	},
	PlatformFoundry: {
		url:        func(t FileTarget) string { return "https://" + t.Resource + ".services.ai.azure.com" },
		prefix:     func(FileTarget) string { return "/anthropic" },
		takes:      []string{"resource", "hosting"},
		auths:      []Auth{AuthKey, AuthEntra},
		firstParty: true, passthrough: true, files: true,
		body: 32 * mib, image: 10 * mib,
	},
}

// vertexHost is the host of a location: worldwide, of one of the two
// multi-regions, of a region.
func vertexHost(region string) string {
	switch region {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + region + ".rep.googleapis.com"
	}
	return region + "-aiplatform.googleapis.com"
}

func locationOf(t FileTarget) string { return cmp.Or(t.Location, "global") }
