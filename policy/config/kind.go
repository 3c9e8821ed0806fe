package config

// Kind is what an attempt came to: OK or a failure kind (section "Failure
// kinds" of the policy reference). Its text is what policy files, the trail and
// metrics say.
type Kind string

// The failure kinds. KindOK is no failure.
const (
	KindOK                 Kind = "ok"
	KindConnection         Kind = "connection"
	KindTimeout            Kind = "timeout"
	KindOverloaded         Kind = "overloaded"
	KindServerError        Kind = "server_error"
	KindRateLimit          Kind = "rate_limit"
	KindBillingQuota       Kind = "billing_quota"
	KindCredential         Kind = "credential"
	KindPermission         Kind = "permission"
	KindModelUnavailable   Kind = "model_unavailable"
	KindEntitlement        Kind = "entitlement"
	KindUnsupportedFeature Kind = "unsupported_feature"
	KindTooLarge           Kind = "too_large"
	KindInvalidRequest     Kind = "invalid_request"
	KindModeration         Kind = "moderation"
	KindInvalidOutput      Kind = "invalid_output"
	// After the commit nothing is decided any more: these only count.

	KindStreamError Kind = "stream_error"
	KindTruncated   Kind = "truncated"
	KindIdle        Kind = "idle"
	KindClientGone  Kind = "client_gone"
)

// Action is what follows a failure of a kind before the commit.
type Action string

// The actions: the same target again (with backoff), the next target at once,
// or this answer goes to the client.
const (
	ActionRetry    Action = "retry"
	ActionFailover Action = "failover"
	ActionStop     Action = "stop"
)

// actionable lists the kinds that a route's `actions` may name, with the
// contract's default for each.
var actionable = map[Kind]Action{
	KindConnection:         ActionFailover,
	KindTimeout:            ActionFailover,
	KindOverloaded:         ActionFailover,
	KindServerError:        ActionFailover,
	KindRateLimit:          ActionFailover,
	KindBillingQuota:       ActionFailover,
	KindCredential:         ActionFailover,
	KindPermission:         ActionFailover,
	KindModelUnavailable:   ActionFailover,
	KindEntitlement:        ActionFailover,
	KindUnsupportedFeature: ActionFailover,
	KindTooLarge:           ActionStop,
	KindInvalidRequest:     ActionStop,
	KindModeration:         ActionStop,
	KindInvalidOutput:      ActionStop,
}

// DefaultAction is the contract's action for a kind; with passthrough the four
// kinds that the client's own credential may have caused stop.
func DefaultAction(k Kind, passthrough bool) Action {
	if passthrough {
		switch k {
		case KindCredential, KindPermission, KindBillingQuota, KindEntitlement:
			return ActionStop
		}
	}
	if a, ok := actionable[k]; ok {
		return a
	}
	return ActionStop
}
