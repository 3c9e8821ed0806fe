package fakeplatform

import (
	"slices"
	"strings"
)

// checkKey: exactly one credential, of a kind that the platform takes.
func checkKey(platform string, rules Rules, r *Request) (string, Answer) {
	t := traitsOf[platform]
	key, auth := r.Get("x-api-key"), r.Get("authorization")
	switch {
	case r.Count("x-api-key")+r.Count("authorization")+r.Count("api-key")+r.Count("x-goog-api-key") > 1:
		return unauthorized(platform, excUnrecognized, "more than one credential")
	case r.Count("api-key")+r.Count("x-goog-api-key") == 1:
		return unauthorized(platform, excUnrecognized, "api-key is not what a gateway sends")
	case strings.HasPrefix(auth, algorithm) && t.service != "":
		if exception, why := verify(rules, t.service, r); why != "" {
			return unauthorized(platform, exception, why)
		}
		return "", Answer{}
	case r.Count("x-amz-date")+r.Count("x-amz-security-token")+r.Count("x-amz-content-sha256") != 0:
		return unauthorized(platform, excSignature, "headers of a signature without one")
	case auth != "":
		return checkBearer(platform, rules, r)
	case key != "" && !t.has(wayKey):
		return unauthorized(platform, excNoToken, "x-api-key is no credential here")
	case key == "" && t.has(wayKey):
		return unauthorized(platform, excNoToken, "x-api-key header is required")
	case key == "":
		return unauthorized(platform, excNoToken, "Missing Authentication Token")
	case len(rules.Keys) > 0 && !slices.Contains(rules.Keys, key):
		return unauthorized(platform, excUnrecognized, "invalid x-api-key")
	}
	return "", Answer{}
}

func checkBearer(platform string, rules Rules, r *Request) (string, Answer) {
	t := traitsOf[platform]
	token, ok := strings.CutPrefix(r.Get("authorization"), "Bearer ")
	accepted := slices.Concat(rules.Keys, rules.Tokens)
	switch {
	case platform == Foundry: // a key as a bearer token is no token of Entra
		if len(rules.Tokens) == 0 {
			return unauthorized(platform, "", "a key must come as x-api-key")
		}
		accepted = rules.Tokens
	case !t.has(wayBearerKey) && !t.has(wayToken) && !rules.BearerToo:
		return unauthorized(platform, "", "a key must come as x-api-key")
	}
	switch {
	case !ok || token == "" || strings.ContainsAny(token, " \t"):
		return unauthorized(platform, excIncomplete, "authorization is not a bearer token")
	case len(accepted) > 0 && !slices.Contains(accepted, token):
		if t.has(wayToken) && platform != Foundry {
			return unauthorized(platform, "", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.")
		}
		return unauthorized(platform, excUnrecognized, "The security token included in the request is invalid.")
	}
	return "", Answer{}
}

// unauthorized is 401, and 403 where AWS's own layer answers. Claude Platform on
// AWS tells nothing of a signature but that it is wrong.
func unauthorized(platform, exception, why string) (string, Answer) {
	switch platform {
	case Bedrock, Mantle:
		return front(platform, 403, exception, why)
	case ClaudeOnAWS:
		if exception == excSignature {
			return why, Error(401, "The request signature is not valid")
		}
		return inner(platform, 401, why)
	}
	return front(platform, 401, "", why)
}
