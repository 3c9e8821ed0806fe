package policy

import (
	"strconv"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
)

// Classify says what an answer came to, by section 4 of the contract. now is
// what dates and reset times are counted from. It never fails: what no rule
// knows is server_error (3xx, 5xx, unknown error events) or invalid_request
// (4xx), so that an unknown refusal is not carried from target to target.
func Classify(a Answer, now time.Time) Outcome {
	v := verdictOf(&a)
	o := OutcomeOf(v.kind, v.reason)
	o.Status = a.Status
	if v.blameless {
		o.Blame, o.Long = BlameNothing, false
	}
	if o.Reason == "" {
		o.Reason = "status_" + strconv.Itoa(a.Status)
	}
	if v.kind != config.KindOK && fromProvider(a.Local) {
		o.RetryAfter, o.HasRetryAfter = retryTime(&a, now)
	}
	return o
}

// judgement is a kind with its reason; "" is the status. blameless: the request
// itself brought it about, whatever the kind usually blames.
type judgement struct {
	kind      config.Kind
	reason    string
	blameless bool
}

func verdictOf(a *Answer) judgement {
	switch {
	case !fromProvider(a.Local):
		return byLocal(a)
	case a.Stream:
		return byStatus(a, eventStatus(a))
	case a.Status == 0:
		return judgement{kind: config.KindConnection, reason: "no_answer"}
	case a.Status >= 200 && a.Status < 300:
		return byContentType(a.ContentType)
	}
	return byStatus(a, a.Status)
}

// byContentType judges a 2xx: what is none of the three is somebody's page.
func byContentType(contentType string) judgement {
	t, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(t)) {
	case "application/json", "text/event-stream", "application/vnd.amazon.eventstream":
		return judgement{kind: config.KindOK, reason: "ok"}
	}
	return judgement{kind: config.KindServerError, reason: "content_type"}
}

// byStatus judges an error answer. Names that AWS gives its exceptions come
// first: they say more than the status that carries them.
func byStatus(a *Answer, status int) judgement {
	if j, ok := byException(a, status); ok {
		return j
	}
	switch status {
	case 400:
		return badRequest(a)
	case 401:
		return judgement{kind: config.KindCredential}
	case 402:
		return judgement{kind: config.KindBillingQuota}
	case 403:
		return forbidden(a)
	case 404:
		return notFound(a)
	case 408, 504:
		return judgement{kind: config.KindTimeout}
	case 413:
		return judgement{kind: config.KindTooLarge}
	case 424, 499: // 499: the platform's edge gave up on its own backend
		return judgement{kind: config.KindServerError}
	case 429:
		return tooMany(a)
	case 503, 529:
		return judgement{kind: config.KindOverloaded}
	}
	if status >= 400 && status < 500 {
		return judgement{kind: config.KindInvalidRequest}
	}
	return judgement{kind: config.KindServerError}
}

// eventStatuses are the statuses that error events of a stream stand for.
var eventStatuses = map[string]int{
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"conflict_error":        409,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"api_error":             500,
	"timeout_error":         504,
	"overloaded_error":      529,
}

// eventStatus is the status that an error event would have had as an answer.
// Exceptions of AWS are told by name before it counts.
func eventStatus(a *Answer) int {
	if s, ok := eventStatuses[a.ErrorType]; ok {
		return s
	}
	return 500
}

// badRequest judges a 400, the status that platforms use for nearly everything.
func badRequest(a *Answer) judgement {
	text := unquoted(a.Message)
	switch {
	case has(text, "extra inputs are not permitted", "invalid beta flag", "unexpected value(s)"):
		return refusedMember(a)
	case codeIs(a, spendCodes...) || opensWith(text, billingTexts...):
		return judgement{kind: config.KindBillingQuota, reason: "billing_text"}
	case codeIs(a, "claude_code_version_too_old"):
		return judgement{kind: config.KindCredential, reason: "client_version", blameless: true}
	case codeIs(a, accountCodes...) || federationOff(a, text):
		return judgement{kind: config.KindCredential, reason: "account"}
	case a.Envelope == EnvelopeGoogle && codeIs(a, "FAILED_PRECONDITION"):
		return judgement{kind: config.KindModelUnavailable, reason: "precondition"}
	case a.Envelope == EnvelopeAWS && has(text, modelTexts...):
		return judgement{kind: config.KindModelUnavailable, reason: "model_text"}
	case has(text, "prompt is too long", "exceed context limit"):
		return judgement{kind: config.KindTooLarge, reason: "context"}
	case a.Platform == config.PlatformFoundry && has(text, "not supported"):
		return judgement{kind: config.KindUnsupportedFeature, reason: "feature"}
	}
	return judgement{kind: config.KindInvalidRequest}
}

// refusedMember: a first-party target that got the client's own bytes refuses
// what the client wrote; any other may lack what the client is entitled to.
func refusedMember(a *Answer) judgement {
	if a.Platform == config.PlatformAnthropic && a.Original {
		return judgement{kind: config.KindInvalidRequest}
	}
	return judgement{kind: config.KindUnsupportedFeature, reason: "feature"}
}

// forbidden judges a 403. In a shape that the platform does not speak it is a
// CDN's or a firewall's word and says nothing about key or model.
func forbidden(a *Answer) judgement {
	text := unquoted(a.Message)
	switch {
	case !ownEnvelope(a.Platform, a.Envelope):
		return judgement{kind: config.KindServerError, reason: "foreign_403"}
	case codeHasPrefix(a, "user_profile_") || codeIs(a, "sandbox_egress_restricted"):
		return judgement{kind: config.KindPermission, reason: "request_permission", blameless: true}
	case codeIs(a, "authentication_error") || badToken(text) || federationOff(a, text):
		return judgement{kind: config.KindCredential, reason: "credential_403"}
	}
	return judgement{kind: config.KindPermission}
}

// notFound judges a 404: the model's, or something else that the request named.
// Any 404 of Azure's own layer is about the deployment, since the path is ours.
func notFound(a *Answer) judgement {
	text := unquoted(a.Message)
	gone := false
	switch {
	case !ownEnvelope(a.Platform, a.Envelope):
	case a.Envelope == EnvelopeAnthropic:
		gone = strings.HasPrefix(text, "model:") ||
			a.Platform == config.PlatformFoundry && (codeIs(a, "DeploymentNotFound") || has(text, "deployment"))
	case a.Envelope == EnvelopeAzure:
		gone = true
	case a.Envelope == EnvelopeGoogle:
		gone = codeIs(a, "NOT_FOUND")
	case a.Envelope == EnvelopeAWS:
		gone = has(text, modelTexts...)
	}
	if gone {
		return judgement{kind: config.KindModelUnavailable, reason: "model_404"}
	}
	return judgement{kind: config.KindInvalidRequest}
}

// tooMany judges a 429. A spend cap comes before the word not to retry: it may
// carry that word too, and says whose fault it is.
func tooMany(a *Answer) judgement {
	text := unquoted(a.Message)
	switch {
	case codeIs(a, spendCodes...) || has(text, capTexts...):
		return judgement{kind: config.KindBillingQuota, reason: "spend_cap"}
	case has(text, "per day"):
		return judgement{kind: config.KindBillingQuota, reason: "per_day"}
	case has(text, "extra usage is required"):
		return judgement{kind: config.KindEntitlement, reason: "extra_usage"}
	case strings.EqualFold(strings.TrimSpace(a.header("x-should-retry")), "false"):
		return judgement{kind: config.KindEntitlement, reason: "should_not_retry"}
	}
	return judgement{kind: config.KindRateLimit}
}
