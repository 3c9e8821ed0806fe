package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

func headers(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1]
			}
		}
		return ""
	}
}

// said is an answer in Anthropic's envelope.
func said(status int, errorType, message string) Answer {
	return Answer{
		Status: status, Local: "-;via_upstream", ContentType: "application/json",
		Platform: config.PlatformAnthropic, Envelope: EnvelopeAnthropic, ErrorType: errorType, Message: message,
	}
}

func with(a Answer, edit func(*Answer)) Answer {
	edit(&a)
	return a
}

func coded(a Answer, code string) Answer {
	return with(a, func(a *Answer) { a.ErrorCode = code })
}

func aws(status int, exception, message string) Answer {
	return Answer{
		Status: status, Local: "-;via_upstream", Platform: config.PlatformClaudeOnAWS,
		Envelope: EnvelopeAWS, ErrorCode: exception, Message: message,
	}
}

func azure(status int, code, message string) Answer {
	return Answer{
		Status: status, Local: "-;via_upstream", Platform: config.PlatformFoundry,
		Envelope: EnvelopeAzure, ErrorCode: code, Message: message,
	}
}

func google(status int, code string) Answer {
	return Answer{
		Status: status, Local: "-;via_upstream", Platform: "vertex",
		Envelope: EnvelopeGoogle, ErrorType: code, Message: "no",
	}
}

func event(errorType, message string) Answer {
	return with(said(200, errorType, message), func(a *Answer) { a.Stream, a.ContentType = true, "text/event-stream" })
}

func local(status int, local string) Answer {
	return Answer{Status: status, Local: local, ContentType: "text/plain", Platform: config.PlatformAnthropic}
}

func typed(status int, contentType string) Answer {
	return Answer{Status: status, Local: "-;via_upstream", ContentType: contentType, Platform: config.PlatformAnthropic}
}

type classifyCase struct {
	name   string
	answer Answer
	kind   config.Kind
	blame  Blame
	long   bool
	reason string // "" is not looked at
}

func runClassify(t *testing.T, cases []classifyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := Classify(c.answer, noon)
			if o.Kind != c.kind || o.Blame != c.blame || o.Long != c.long {
				t.Errorf("got %s blames %s long=%v (%s), want %s blames %s long=%v",
					o.Kind, o.Blame, o.Long, o.Reason, c.kind, c.blame, c.long)
			}
			if c.reason != "" && o.Reason != c.reason {
				t.Errorf("reason %q, want %q", o.Reason, c.reason)
			}
			if o.Reason == "" || o.Status != c.answer.Status {
				t.Errorf("reason %q status %d, want a reason and %d", o.Reason, o.Status, c.answer.Status)
			}
		})
	}
}

func TestClassifyAnthropicEnvelope(t *testing.T) {
	const invalid = "invalid_request_error"
	extra := said(400, invalid, "messages.0.content.0.cache_control.ttl: Extra inputs are not permitted")
	original := func(a *Answer) { a.Original = true }
	foundry := func(a *Answer) { a.Platform = config.PlatformFoundry }
	runClassify(t, []classifyCase{
		{"plain 400", said(400, invalid, "max_tokens: Field required"), config.KindInvalidRequest, BlameNothing, false, "status_400"},
		{"credit balance", said(400, invalid, "Your credit balance is too low to access the Anthropic API."), config.KindBillingQuota, BlameKey, true, "billing_text"},
		{"usage limits", said(400, invalid, "You have reached your specified API usage limits. You will regain access on 2026-12-01."), config.KindBillingQuota, BlameKey, true, ""},
		{"workspace usage limits", said(400, invalid, "You have reached your specified workspace API usage limits."), config.KindBillingQuota, BlameKey, true, ""},
		{"quoted billing text", said(400, invalid, `system: "Your credit balance is too low" is not a valid list`), config.KindInvalidRequest, BlameNothing, false, ""},
		{"billing text as a member", said(400, invalid, "tools.0.input_schema.credit balance is too low: Field required"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"billing text as an extra member", said(400, invalid, "credit balance is too low: Extra inputs are not permitted"), config.KindUnsupportedFeature, BlameNothing, false, ""},
		{"spend cap code on 400", coded(said(400, invalid, "no"), "enforced_spend_limit_reached"), config.KindBillingQuota, BlameKey, true, ""},
		{"organisation on hold", coded(said(400, invalid, "no"), "organization_on_hold"), config.KindCredential, BlameKey, true, "account"},
		{"key's creator", coded(said(400, invalid, "no"), "claude_code_key_creator_not_member"), config.KindCredential, BlameKey, true, ""},
		{"cmek disabled", coded(said(400, invalid, "no"), "cmek_key_disabled"), config.KindCredential, BlameKey, true, ""},
		{"cmek blocked", coded(said(400, invalid, "no"), "cmek_key_network_blocked"), config.KindCredential, BlameKey, true, ""},
		{"old client", coded(said(400, invalid, "no"), "claude_code_version_too_old"), config.KindCredential, BlameNothing, false, ""},
		{"image dimensions", coded(said(400, invalid, "no"), "image_dimensions_too_large"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"thinking signature", said(400, invalid, "messages.1.content.0: Invalid `signature` in `thinking` block"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"prompt too long", said(400, invalid, "prompt is too long: 214113 tokens > 200000 maximum"), config.KindTooLarge, BlameNothing, false, "context"},
		{"context limit", said(400, invalid, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), config.KindTooLarge, BlameNothing, false, ""},
		{"extra inputs, edited", extra, config.KindUnsupportedFeature, BlameNothing, false, "feature"},
		{"extra inputs, original", with(extra, original), config.KindInvalidRequest, BlameNothing, false, ""},
		{"extra inputs, original at foundry", with(with(extra, original), foundry), config.KindUnsupportedFeature, BlameNothing, false, ""},
		{"unexpected beta", said(400, invalid, "Unexpected value(s) `x-1` for the `anthropic-beta` header"), config.KindUnsupportedFeature, BlameNothing, false, ""},
		{"unexpected beta, original", with(said(400, invalid, "Unexpected value(s) `x-1` for the `anthropic-beta` header"), original), config.KindInvalidRequest, BlameNothing, false, ""},
		{"feature of hosted-on-azure", with(said(400, invalid, "Structured outputs are not supported for this deployment."), foundry), config.KindUnsupportedFeature, BlameNothing, false, ""},
		{"not supported at anthropic", said(400, invalid, "This model does is not supported with assistant prefill"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"401", said(401, "authentication_error", "invalid x-api-key"), config.KindCredential, BlameKey, true, "status_401"},
		{"402", said(402, "billing_error", "no"), config.KindBillingQuota, BlameKey, true, ""},
		{"402 linked organisation", coded(said(402, "billing_error", "no"), "linked_organization_suspended"), config.KindBillingQuota, BlameKey, true, ""},
		{"403", said(403, "permission_error", "Your API key does not have permission"), config.KindPermission, BlameTargetModel, true, "status_403"},
		{"403 user profile", coded(said(403, "permission_error", "no"), "user_profile_not_allowed"), config.KindPermission, BlameNothing, false, ""},
		{"403 sandbox egress", coded(said(403, "permission_error", "no"), "sandbox_egress_restricted"), config.KindPermission, BlameNothing, false, ""},
		{"403 expired token", said(403, "permission_error", "The access token has expired"), config.KindCredential, BlameKey, true, ""},
		{"404 model", said(404, "not_found_error", "model: claude-wren-1"), config.KindModelUnavailable, BlameTargetModel, true, "model_404"},
		{"404 thread", coded(said(404, "not_found_error", "no such thread"), "thread_not_found"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"404 file", said(404, "not_found_error", "File not found: file_01"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"404 deployment at foundry", with(said(404, "not_found_error", "The deployment does not exist"), foundry), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"405", said(405, invalid, "no"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"408", said(408, "", "no"), config.KindTimeout, BlameTargetModel, false, ""},
		{"409", said(409, "conflict_error", "no"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"413", said(413, "request_too_large", "no"), config.KindTooLarge, BlameNothing, false, ""},
		{"422", said(422, "", "no"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"424", said(424, "", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"429", said(429, "rate_limit_error", "This would exceed your organization's rate limit of 50 requests per minute"), config.KindRateLimit, BlameKeyModel, false, "status_429"},
		{"429 ramp", coded(said(429, "rate_limit_error", "no"), "ramp_limit_exceeded"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"429 enforced cap", coded(said(429, "rate_limit_error", "no"), "enforced_spend_limit_reached"), config.KindBillingQuota, BlameKey, true, "spend_cap"},
		{"429 contract cap", coded(said(429, "rate_limit_error", "no"), "contract_spend_limit_reached"), config.KindBillingQuota, BlameKey, true, ""},
		{"429 cap by text", said(429, "rate_limit_error", "You have reached your monthly spend limit"), config.KindBillingQuota, BlameKey, true, ""},
		{"429 per day", said(429, "rate_limit_error", "limit of 1000 requests per day"), config.KindBillingQuota, BlameKey, true, "per_day"},
		{"429 extra usage", said(429, "rate_limit_error", "Extra usage is required for long context requests."), config.KindEntitlement, BlameNothing, false, "extra_usage"},
		{"429 do not retry", with(said(429, "rate_limit_error", "no"), func(a *Answer) { a.Header = headers("x-should-retry", "false") }), config.KindEntitlement, BlameNothing, false, "should_not_retry"},
		{"429 do retry", with(said(429, "rate_limit_error", "no"), func(a *Answer) { a.Header = headers("x-should-retry", "true") }), config.KindRateLimit, BlameKeyModel, false, ""},
		{"429 cap, do not retry", with(coded(said(429, "rate_limit_error", "no"), "contract_spend_limit_reached"), func(a *Answer) { a.Header = headers("x-should-retry", "false") }), config.KindBillingQuota, BlameKey, true, ""},
		{"451", said(451, "", "no"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"499", said(499, "", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"500", said(500, "api_error", "no"), config.KindServerError, BlameTargetModel, false, "status_500"},
		{"502", said(502, "", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"503", said(503, "", "no"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"503 cmek", coded(said(503, "api_error", "no"), "cmek_key_unreachable"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"504", said(504, "timeout_error", "no"), config.KindTimeout, BlameTargetModel, false, ""},
		{"520", said(520, "", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"529", said(529, "overloaded_error", "Overloaded"), config.KindOverloaded, BlameTargetModel, false, "status_529"},
		{"529 compaction", coded(said(529, "overloaded_error", "no"), "compaction_unavailable"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"nothing came", Answer{Platform: config.PlatformAnthropic}, config.KindConnection, BlameTarget, false, "no_answer"},
	})
}

func TestClassifyOtherEnvelopes(t *testing.T) {
	runClassify(t, []classifyCase{
		{"validation", aws(400, "ValidationException", "bad"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"invalid beta flag", aws(400, "ValidationException", "invalid beta flag"), config.KindUnsupportedFeature, BlameNothing, false, ""},
		{"identifier", aws(400, "ValidationException", "The provided model identifier is invalid."), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"on-demand", aws(400, "ValidationException", "Invocation of model ID x with on-demand throughput isn't supported"), config.KindModelUnavailable, BlameTargetModel, true, "model_text"},
		{"service quota", aws(400, "ServiceQuotaExceededException", "no"), config.KindBillingQuota, BlameKey, true, "service_quota"},
		{"access denied", aws(403, "AccessDeniedException", "no"), config.KindPermission, BlameTargetModel, true, ""},
		{"expired token", aws(403, "ExpiredTokenException", "no"), config.KindCredential, BlameKey, true, "expired_token"},
		{"unrecognized client", aws(403, "UnrecognizedClientException", "no"), config.KindCredential, BlameKey, true, ""},
		{"signature", aws(403, "InvalidSignatureException", "no"), config.KindCredential, BlameKey, true, ""},
		{"signature mismatch", aws(403, "SignatureDoesNotMatch", "no"), config.KindCredential, BlameKey, true, ""},
		{"client token", aws(403, "InvalidClientTokenId", "no"), config.KindCredential, BlameKey, true, ""},
		{"missing token", aws(403, "MissingAuthenticationToken", "no"), config.KindCredential, BlameKey, true, ""},
		{"signature by text", aws(403, "", "The security token included in the request is invalid."), config.KindCredential, BlameKey, true, ""},
		{"federation off", aws(400, "", "Outbound web identity federation is disabled for your account"), config.KindCredential, BlameKey, true, ""},
		{"federation off 403", aws(403, "", "Outbound web identity federation is disabled for your account"), config.KindCredential, BlameKey, true, ""},
		{"resource", aws(404, "ResourceNotFoundException", "no"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"end of life", aws(404, "", "This model version has reached the end of life"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"operation", aws(404, "UnknownOperationException", "no"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"model timeout", aws(408, "ModelTimeoutException", "no"), config.KindTimeout, BlameTargetModel, false, ""},
		{"model error", aws(424, "ModelErrorException", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"model not ready", aws(429, "ModelNotReadyException", "no"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"throttling", aws(429, "ThrottlingException", "Too many tokens, please wait before trying again"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"throttling on 400", aws(400, "ThrottlingException", "Rate exceeded"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"throttling per day", aws(429, "ThrottlingException", "Too many tokens per day"), config.KindBillingQuota, BlameKey, true, ""},
		{"unavailable", aws(503, "ServiceUnavailableException", "no"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"internal", aws(500, "InternalServerException", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"header before code", with(aws(400, "ValidationException", "no"), func(a *Answer) {
			a.Header = headers("x-amzn-errortype", "com.amazon#ServiceQuotaExceededException:http://internal.example/")
		}), config.KindBillingQuota, BlameKey, true, ""},
		{"aws words at foundry", with(aws(400, "ServiceQuotaExceededException", "no"), func(a *Answer) { a.Platform = config.PlatformFoundry }), config.KindInvalidRequest, BlameNothing, false, ""},
		{"azure 401", azure(401, "401", "no"), config.KindCredential, BlameKey, true, ""},
		{"azure 403", azure(403, "PermissionDenied", "no"), config.KindPermission, BlameTargetModel, true, ""},
		{"azure 403 token", azure(403, "403", "Token is expired"), config.KindCredential, BlameKey, true, ""},
		{"azure 404", azure(404, "DeploymentNotFound", "no"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"azure 404 api", azure(404, "api_not_supported", "no"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"azure 429", azure(429, "429", "no"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"google 400", google(400, "INVALID_ARGUMENT"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"google precondition", google(400, "FAILED_PRECONDITION"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"google 401", google(401, "UNAUTHENTICATED"), config.KindCredential, BlameKey, true, ""},
		{"google 403", google(403, "PERMISSION_DENIED"), config.KindPermission, BlameTargetModel, true, ""},
		{"google 404", google(404, "NOT_FOUND"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"google 429", google(429, "RESOURCE_EXHAUSTED"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"google 503", google(503, "UNAVAILABLE"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"google 504", google(504, "DEADLINE_EXCEEDED"), config.KindTimeout, BlameTargetModel, false, ""},
		{"page 403", typed(403, "text/html"), config.KindServerError, BlameTargetModel, false, "foreign_403"},
		{"page 404", typed(404, "text/html"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"page 413", typed(413, "text/html"), config.KindTooLarge, BlameNothing, false, ""},
		{"page 429", typed(429, "text/html"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"page 503", typed(503, "text/html"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"redirect", typed(302, "text/html"), config.KindServerError, BlameTargetModel, false, ""},
	})
}

func TestClassifyForeignEnvelopeIs403ServerError(t *testing.T) {
	own := map[string][]Envelope{
		config.PlatformAnthropic:   {EnvelopeAnthropic},
		config.PlatformClaudeOnAWS: {EnvelopeAnthropic, EnvelopeAWS},
		config.PlatformFoundry:     {EnvelopeAnthropic, EnvelopeAzure},
	}
	for platform, mine := range own {
		for e := EnvelopeNone; e <= EnvelopeAzure; e++ {
			want := config.KindServerError
			for _, m := range mine {
				if m == e {
					want = config.KindPermission
				}
			}
			got := Classify(Answer{Status: 403, Platform: platform, Envelope: e, Message: "no"}, noon)
			if got.Kind != want {
				t.Errorf("%s, envelope %d: %s, want %s", platform, e, got.Kind, want)
			}
		}
	}
}

func TestClassifyContentTypes(t *testing.T) {
	runClassify(t, []classifyCase{
		{"json", typed(200, "application/json"), config.KindOK, BlameNothing, false, "ok"},
		{"json with charset", typed(200, "Application/JSON; charset=utf-8"), config.KindOK, BlameNothing, false, ""},
		{"sse", typed(200, "text/event-stream; charset=utf-8"), config.KindOK, BlameNothing, false, ""},
		{"event stream", typed(200, "application/vnd.amazon.eventstream"), config.KindOK, BlameNothing, false, ""},
		{"page", typed(200, "text/html"), config.KindServerError, BlameTargetModel, false, "content_type"},
		{"none", typed(200, ""), config.KindServerError, BlameTargetModel, false, ""},
		{"204", typed(204, ""), config.KindServerError, BlameTargetModel, false, ""},
		{"lookalike", typed(200, "application/jsonp"), config.KindServerError, BlameTargetModel, false, ""},
	})
}

func TestClassifyStreamErrors(t *testing.T) {
	exception := func(name string) Answer {
		return with(aws(200, name, "no"), func(a *Answer) { a.Stream, a.ErrorType, a.ErrorCode = true, name, "" })
	}
	runClassify(t, []classifyCase{
		{"overloaded", event("overloaded_error", "Overloaded"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"api", event("api_error", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"timeout", event("timeout_error", "no"), config.KindTimeout, BlameTargetModel, false, ""},
		{"rate limit", event("rate_limit_error", "no"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"invalid", event("invalid_request_error", "no"), config.KindInvalidRequest, BlameNothing, false, ""},
		{"billing text", event("invalid_request_error", "Your credit balance is too low"), config.KindBillingQuota, BlameKey, true, ""},
		{"billing", event("billing_error", "no"), config.KindBillingQuota, BlameKey, true, ""},
		{"authentication", event("authentication_error", "no"), config.KindCredential, BlameKey, true, ""},
		{"permission", event("permission_error", "no"), config.KindPermission, BlameTargetModel, true, ""},
		{"model", event("not_found_error", "model: x"), config.KindModelUnavailable, BlameTargetModel, true, ""},
		{"too large", event("request_too_large", "no"), config.KindTooLarge, BlameNothing, false, ""},
		{"unknown", event("tea_error", "no"), config.KindServerError, BlameTargetModel, false, ""},
		{"throttlingException", exception("throttlingException"), config.KindRateLimit, BlameKeyModel, false, ""},
		{"modelStreamErrorException", exception("modelStreamErrorException"), config.KindServerError, BlameTargetModel, false, ""},
		{"internalServerException", exception("internalServerException"), config.KindServerError, BlameTargetModel, false, ""},
		{"serviceUnavailableException", exception("serviceUnavailableException"), config.KindOverloaded, BlameTargetModel, false, ""},
		{"modelTimeoutException", exception("modelTimeoutException"), config.KindTimeout, BlameTargetModel, false, ""},
		{"validationException", exception("validationException"), config.KindInvalidRequest, BlameNothing, false, ""},
	})
}

func TestClassifyEnvoysOwnAnswers(t *testing.T) {
	const before = "upstream_reset_before_response_started"
	runClassify(t, []classifyCase{
		{"refused", local(503, "UF;"+before+"{remote_connection_failure|delayed_connect_error:_Connection_refused}"), config.KindConnection, BlameTarget, false, "refused"},
		{"tls", local(503, "UF;"+before+"{remote_connection_failure|TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED}"), config.KindConnection, BlameTarget, false, "tls"},
		{"connect timeout", local(503, "UF;"+before+"{connection_timeout}"), config.KindConnection, BlameTarget, false, "connect_timeout"},
		{"other failure", local(503, "UF;"+before+"{local_connection_failure}"), config.KindConnection, BlameTarget, false, "connect_failure"},
		{"failure and retry limit", local(503, "URX,UF;"+before+"{remote_connection_failure}"), config.KindConnection, BlameTarget, false, "connect_failure"},
		{"reset", local(503, "UC;"+before+"{connection_termination}"), config.KindConnection, BlameTarget, false, "reset"},
		{"remote reset", local(503, "UR;"+before+"{remote_reset}"), config.KindConnection, BlameTarget, false, "reset"},
		{"no name", local(503, "UH;no_healthy_upstream"), config.KindConnection, BlameTarget, false, "no_healthy_upstream"},
		{"local health", local(503, "LH;no_healthy_upstream"), config.KindConnection, BlameTarget, false, ""},
		{"no cluster", local(503, "NC;cluster_not_found"), config.KindConnection, BlameTarget, false, "no_cluster"},
		{"overflow", local(503, "UO;upstream_reset_before_response_started{overflow}"), config.KindConnection, BlameTarget, false, "overflow"},
		{"upstream protocol", local(502, "UPE;"+before+"{protocol_error}"), config.KindConnection, BlameTarget, false, "protocol_error"},
		{"downstream protocol", local(502, "DPE;x"), config.KindConnection, BlameTarget, false, ""},
		{"per try", local(504, "UT;upstream_per_try_timeout"), config.KindTimeout, BlameTargetModel, false, "per_try_timeout"},
		{"per try and more", local(504, "URX,UT;upstream_per_try_timeout"), config.KindTimeout, BlameTargetModel, false, "per_try_timeout"},
		{"idle", local(504, "SI;stream_idle_timeout"), config.KindTimeout, BlameTargetModel, false, "stream_idle"},
		{"504 without flag", local(504, "-;response_timeout"), config.KindTimeout, BlameTargetModel, false, "status_504"},
		{"408", local(408, "-;request_overall_timeout"), config.KindTimeout, BlameTargetModel, false, ""},
		{"413", local(413, "-;request_payload_too_large"), config.KindTooLarge, BlameNothing, false, ""},
		{"given up", local(503, "DC;downstream_remote_disconnect"), config.KindClientGone, BlameNothing, false, ""},
		{"unknown", local(500, "-;internal_redirect"), config.KindConnection, BlameTarget, false, "envoy"},
		{"retries ended", local(503, "URX;upstream_reset"), config.KindConnection, BlameTarget, false, "envoy"},
		{"unreadable", local(503, "???"), config.KindConnection, BlameTarget, false, "envoy"},
		{"200 that is Envoy's", with(typed(200, "application/json"), func(a *Answer) { a.Local = "-;direct_response" }), config.KindConnection, BlameTarget, false, ""},
		{"flags, but the provider's", with(typed(529, "application/json"), func(a *Answer) { a.Local = "URX;via_upstream" }), config.KindOverloaded, BlameTargetModel, false, ""},
		{"no header at all", with(typed(529, "application/json"), func(a *Answer) { a.Local = "" }), config.KindOverloaded, BlameTargetModel, false, ""},
	})
}

// Every combination must be judged, by a kind that the contract knows, with a
// blame no wider than its column, and never by a phrase inside quotation marks.
func TestClassifyCrossProduct(t *testing.T) {
	phrases := []string{"", "credit balance is too low", "extra inputs are not permitted", "per day", "spend limit", "model: x",
		"extra usage is required", "prompt is too long", "security token is expired", "on-demand throughput", "end of life"}
	platforms := []string{config.PlatformAnthropic, config.PlatformClaudeOnAWS, config.PlatformFoundry, "vertex", "bedrock", "unheard-of"}
	for status := range 620 {
		if status > 0 && status < 200 {
			continue
		}
		for _, platform := range platforms {
			for e := EnvelopeNone; e <= EnvelopeAzure; e++ {
				a := Answer{Status: status, Platform: platform, Envelope: e, ContentType: "application/json"}
				base := Classify(a, noon)
				for _, phrase := range phrases {
					a.Message = phrase
					o := Classify(a, noon)
					blame, long := BlameOf(o.Kind)
					if o.Blame != BlameNothing && (o.Blame != blame || o.Long != long) {
						t.Fatalf("%d %s envelope %d %q: %s blames %s long=%v", status, platform, e, phrase, o.Kind, o.Blame, o.Long)
					}
					if (o.Kind == config.KindOK) != (status >= 200 && status < 300) {
						t.Fatalf("%d %s envelope %d %q: %s", status, platform, e, phrase, o.Kind)
					}
					for _, quote := range []string{"`", `"`, "'"} {
						a.Message = "value " + quote + phrase + quote + " refused"
						if q := Classify(a, noon); q.Kind != base.Kind {
							t.Fatalf("%d %s envelope %d, quoted %q: %s, want %s", status, platform, e, phrase, q.Kind, base.Kind)
						}
					}
				}
			}
		}
	}
}

func TestClassifyTakesRetryAfterFromProvidersOnly(t *testing.T) {
	a := said(429, "rate_limit_error", "no")
	a.Header = headers("retry-after", "7")
	if o := Classify(a, noon); !o.HasRetryAfter || o.RetryAfter != 7*time.Second {
		t.Errorf("provider: %v %v, want 7s", o.RetryAfter, o.HasRetryAfter)
	}
	a.Local = "UF;upstream_reset_before_response_started{x}"
	if o := Classify(a, noon); o.HasRetryAfter {
		t.Errorf("Envoy: %v, want none", o.RetryAfter)
	}
}

func TestUnquoted(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                           "plain",
		"Your organization's limit":       "your organization's limit",
		"value 'it's here' ends":          "value  ends",
		"a `b\" c` d":                     "a  d",
		"never \"closed spend limit":      "never ",
		"":                                "",
		"'":                               "",
		strings.Repeat("`a`", 3) + " end": " end",
	} {
		if got := unquoted(in); got != want {
			t.Errorf("unquoted(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBlameOf(t *testing.T) {
	for _, c := range []struct {
		kinds []config.Kind
		blame Blame
		long  bool
	}{
		{[]config.Kind{config.KindConnection}, BlameTarget, false},
		{[]config.Kind{config.KindTimeout, config.KindOverloaded, config.KindServerError, config.KindStreamError, config.KindTruncated, config.KindIdle}, BlameTargetModel, false},
		{[]config.Kind{config.KindRateLimit}, BlameKeyModel, false},
		{[]config.Kind{config.KindBillingQuota, config.KindCredential}, BlameKey, true},
		{[]config.Kind{config.KindPermission, config.KindModelUnavailable}, BlameTargetModel, true},
		{[]config.Kind{config.KindOK, config.KindEntitlement, config.KindUnsupportedFeature, config.KindTooLarge, config.KindInvalidRequest,
			config.KindModeration, config.KindInvalidOutput, config.KindClientGone, "unheard-of"}, BlameNothing, false},
	} {
		for _, k := range c.kinds {
			if blame, long := BlameOf(k); blame != c.blame || long != c.long {
				t.Errorf("%s blames %s long=%v, want %s %v", k, blame, long, c.blame, c.long)
			}
		}
	}
}
