package policy

import (
	"strings"

	"github.com/crossdoor/crossdoor/policy/config"
)

// fromProvider reports whether the provider answered, by x-crossdoor-local.
func fromProvider(local string) bool {
	_, details, _ := strings.Cut(local, ";")
	return local == "" || details == "via_upstream"
}

// timeoutFlags are Envoy's response flags for a time that ran out: per try or
// route, max stream duration, stream idle.
var timeoutFlags = map[string]string{
	"UT":    "per_try_timeout",
	"UMSDR": "max_stream_duration",
	"DT":    "max_stream_duration",
	"SI":    "stream_idle",
}

// connectionFlags are those that say that the target could not be reached or
// broke off before its answer.
var connectionFlags = map[string]string{
	"UF":  "connect_failure",
	"UC":  "reset",
	"UR":  "reset",
	"LR":  "reset",
	"UH":  "no_healthy_upstream",
	"LH":  "no_healthy_upstream",
	"NC":  "no_cluster",
	"UO":  "overflow",
	"UPE": "protocol_error",
	"DPE": "protocol_error",
}

// byLocal judges an answer that Envoy made. A time that ran out beats the other
// flags; a connect timeout has UF and is connection, as the contract says.
func byLocal(a *Answer) judgement {
	flags, details, _ := strings.Cut(a.Local, ";")
	list := strings.Split(flags, ",")
	for _, f := range list {
		if reason, ok := timeoutFlags[strings.TrimSpace(f)]; ok {
			return judgement{kind: config.KindTimeout, reason: reason}
		}
	}
	for _, f := range list {
		switch f = strings.TrimSpace(f); f {
		case "UF":
			return judgement{kind: config.KindConnection, reason: connectReason(details)}
		case "DC":
			// Whoever asked gave the attempt up: no word about the target.
			return judgement{kind: config.KindClientGone, reason: "downstream_disconnect"}
		default:
			if reason, ok := connectionFlags[f]; ok {
				return judgement{kind: config.KindConnection, reason: reason}
			}
		}
	}
	switch a.Status {
	case 408, 504:
		return judgement{kind: config.KindTimeout}
	case 413:
		return judgement{kind: config.KindTooLarge}
	}
	// URX comes here: it says that retries ended, and another flag why.
	return judgement{kind: config.KindConnection, reason: "envoy"}
}

// connectReason is one word for Envoy's transport failure text.
func connectReason(details string) string {
	d := strings.ToLower(details)
	switch {
	case has(d, "tls", "ssl", "certificate"):
		return "tls"
	case has(d, "refused"):
		return "refused"
	case has(d, "timeout", "timed_out", "timed out"):
		return "connect_timeout"
	}
	return connectionFlags["UF"]
}
