package policy

import (
	"slices"
	"strings"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Codes and phrases of the platform reference, section 11. Phrases are lower
// case.
var (
	spendCodes   = []string{"enforced_spend_limit_reached", "contract_spend_limit_reached"}
	accountCodes = []string{
		"organization_on_hold", "claude_code_key_creator_not_member",
		"cmek_key_disabled", "cmek_key_network_blocked",
	}
	billingTexts = []string{"credit balance is too low", "api usage limits"}
	capTexts     = []string{"credit balance is too low", "api usage limits", "spend limit", "spending limit", "spend cap"}
	modelTexts   = []string{"on-demand throughput", "end of life", "model identifier is invalid", "support counting tokens"}
)

// envelopes lists in whose words each platform writes its errors; the model's
// layer writes Anthropic's on all of them. Platforms that are not built yet are
// here because the reference says the same of them.
var envelopes = map[string][]Envelope{
	config.PlatformAnthropic:   {EnvelopeAnthropic},
	config.PlatformClaudeOnAWS: {EnvelopeAnthropic, EnvelopeAWS},
	config.PlatformFoundry:     {EnvelopeAnthropic, EnvelopeAzure},
	"bedrock":                  {EnvelopeAnthropic, EnvelopeAWS},
	"mantle":                   {EnvelopeAnthropic, EnvelopeAWS},
	"vertex":                   {EnvelopeAnthropic, EnvelopeGoogle},
	"claude-on-google":         {EnvelopeAnthropic, EnvelopeGoogle},
}

func ownEnvelope(platform string, e Envelope) bool {
	return slices.Contains(envelopes[platform], e)
}

// exceptions are AWS's names, without "Exception" and in lower case, since
// streams spell them lowerCamel. They come with varying statuses, so the name
// decides; ThrottlingException is left to the 429's rules.
var exceptions = map[string]judgement{
	"servicequotaexceeded":       {kind: config.KindBillingQuota, reason: "service_quota"},
	"modelnotready":              {kind: config.KindOverloaded, reason: "model_not_ready"},
	"serviceunavailable":         {kind: config.KindOverloaded, reason: "service_unavailable"},
	"modeltimeout":               {kind: config.KindTimeout, reason: "model_timeout"},
	"modelerror":                 {kind: config.KindServerError, reason: "model_error"},
	"modelstreamerror":           {kind: config.KindServerError, reason: "model_stream_error"},
	"internalserver":             {kind: config.KindServerError, reason: "internal_server"},
	"expiredtoken":               {kind: config.KindCredential, reason: "expired_token"},
	"unrecognizedclient":         {kind: config.KindCredential, reason: "unrecognized_client"},
	"invalidsignature":           {kind: config.KindCredential, reason: "invalid_signature"},
	"invalidclienttokenid":       {kind: config.KindCredential, reason: "invalid_client_token"},
	"signaturedoesnotmatch":      {kind: config.KindCredential, reason: "signature_mismatch"},
	"incompletesignature":        {kind: config.KindCredential, reason: "incomplete_signature"},
	"missingauthenticationtoken": {kind: config.KindCredential, reason: "missing_token"},
	"resourcenotfound":           {kind: config.KindModelUnavailable, reason: "resource_not_found"},
}

// byException judges by AWS's exception name where one decides. Only platforms
// that AWS fronts are asked, so that no other body can borrow its names.
func byException(a *Answer, status int) (judgement, bool) {
	if a.Envelope != EnvelopeAWS || !ownEnvelope(a.Platform, EnvelopeAWS) {
		return judgement{}, false
	}
	for _, raw := range []string{a.header("x-amzn-errortype"), a.ErrorCode, a.ErrorType} {
		name := exceptionName(raw)
		if name == "" {
			continue
		}
		if j, ok := exceptions[name]; ok {
			return j, true
		}
		switch {
		case name == "throttling" && status != 429:
			return tooMany(a), true
		case name == "validation" && a.Stream:
			return badRequest(a), true
		}
		return judgement{}, false // the first name that is there is the answer's
	}
	return judgement{}, false
}

// exceptionName cuts "prefix#NameException:http://…" to "name".
func exceptionName(s string) string {
	s, _, _ = strings.Cut(s, ":")
	if i := strings.LastIndexByte(s, '#'); i >= 0 {
		s = s[i+1:]
	}
	return strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "exception")
}

func codeIs(a *Answer, names ...string) bool {
	for _, n := range names {
		if a.ErrorCode == n || a.ErrorType == n {
			return true
		}
	}
	return false
}

func codeHasPrefix(a *Answer, prefix string) bool {
	return strings.HasPrefix(a.ErrorCode, prefix) || strings.HasPrefix(a.ErrorType, prefix)
}

func has(text string, phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// opensWith reports whether a phrase stands in the text with nothing but plain
// words before it. Validation errors begin with the path of the member at
// fault, whose names are the client's to choose.
func opensWith(text string, phrases ...string) bool {
	for _, p := range phrases {
		if i := strings.Index(text, p); i >= 0 && !strings.ContainsAny(text[:i], ".:[]_0123456789") {
			return true
		}
	}
	return false
}

// badToken: a 403 that is about the signature or the token, not about a right.
func badToken(text string) bool {
	return has(text, "token", "signature") && has(text, "expired", "invalid", "does not match", "not valid")
}

// federationOff is how Claude Platform on AWS refuses every call of an account
// that lacks a prerequisite (platform reference, section 3).
func federationOff(a *Answer, text string) bool {
	return a.Platform == config.PlatformClaudeOnAWS && has(text, "outbound web identity federation is disabled")
}

// unquoted is the message in lower case without its quoted runs: there the
// platform repeats the request. An apostrophe inside a word opens nothing; a run
// that is never closed goes to the end.
func unquoted(message string) string {
	var b strings.Builder
	var open byte
	for i := range len(message) {
		c := message[i]
		switch {
		case open != 0:
			if c == open && (c != '\'' || !letterAt(message, i+1)) {
				open = 0
			}
		case c == '"' || c == '`' || c == '\'' && !letterAt(message, i-1):
			open = c
		default:
			b.WriteByte(c)
		}
	}
	return strings.ToLower(b.String())
}

func letterAt(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i] | 0x20
	return c >= 'a' && c <= 'z'
}
