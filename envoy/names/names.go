// Package names holds, once, every name that the rendered Envoy config and the
// service share: headers, roles, metadata namespaces, clusters, filters. It
// imports nothing, so that the service does not pull in Envoy's config types.
package names

// Headers between Envoy and the service. The guard removes them from what a
// client sends, strip from what a platform is sent and from what it answers.
const (
	Prefix = "x-crossdoor-"

	ID        = "x-crossdoor-id"         // the exchange; its presence means that something was planned
	Target    = "x-crossdoor-target"     // the cluster of this attempt, or ClusterNone
	Prepared  = "x-crossdoor-prepared"   // PreparedYes: attempt 1 needs no attempt filter
	Length    = "x-crossdoor-length"     // content-length of this attempt's body, or of the judged answer
	TimeoutMS = "x-crossdoor-timeout-ms" // per-try timeout until the response headers
	Idle      = "x-crossdoor-idle"       // chooses the inner route with this idle timeout, e.g. "300s"
	Look      = "x-crossdoor-look"       // LookYes or LookConvert: the judge wants this answer whatever it is
	Node      = "x-crossdoor-node"       // advertised address of the replica that planned
	Retry     = "x-crossdoor-retry"      // on an answer: go on with the next attempt
	Local     = "x-crossdoor-local"      // on an answer: response flags and details
	Role      = "x-crossdoor-role"       // initial metadata of the gRPC streams
	Render    = "x-crossdoor-render"     // initial metadata: hash of the config that Envoy runs

	EnvoyMaxRetries   = "x-envoy-max-retries"
	EnvoyAttemptCount = "x-envoy-attempt-count"
	EnvoyPrefix       = "x-envoy-"

	PreparedYes  = "yes"
	LookYes      = "yes"
	LookConvert  = "convert"
	LocalService = "service" // Local, when Envoy could not ask the service before an attempt
)

// Client headers: what a client is told.
const (
	ClientRequestID = "x-crossdoor-request-id"
	ClientServedBy  = "x-crossdoor-served-by"
	ClientAttempts  = "x-crossdoor-attempts"
	ClientModel     = "x-crossdoor-model"
	ClientTrail     = "x-crossdoor-trail"
	ClientDegraded  = "x-crossdoor-degraded"
)

// Values of the Role metadata and the log names of the access loggers.
const (
	RolePlan    = "plan"
	RoleAttempt = "attempt"
	RoleJudge   = "judge"

	LogExchange = "exchange"
	LogAttempt  = "attempt"
)

// Dynamic metadata. Namespace is written by the service (ID, node, state) and
// by the note filter on the inner listener (id, target, node, attempt).
// TailNamespace is written by the tail filter.
const (
	Namespace   = "crossdoor"
	MetaID      = "id"
	MetaNode    = "node"
	MetaState   = "state"
	MetaAttempt = "attempt"
	MetaTarget  = "target"

	TailNamespace = "crossdoor.tail"
	TailText      = "text"
	TailBytes     = "bytes"
)

// Clusters, listeners and filters.
const (
	ClusterService  = "crossdoor"         // the service, for new requests: drains first
	ClusterRunning  = "crossdoor-running" // the service, for what runs: attempts, judges, logs
	ClusterDispatch = "crossdoor-dispatch"
	ClusterNone     = "crossdoor-none" // exists nowhere: passes a turn (503 NC)
	TargetPrefix    = "crossdoor-target-"

	ListenerMain     = "llm"
	ListenerDispatch = "crossdoor-dispatch"

	FilterGuard   = "crossdoor.guard"
	FilterPlan    = "crossdoor.plan"
	FilterAttempt = "crossdoor.attempt"
	FilterJudge   = "crossdoor.judge"
	FilterNote    = "crossdoor.note"
	FilterStrip   = "crossdoor.strip"
	FilterTail    = "crossdoor.tail"
)

// TargetCluster is the cluster of the named target.
func TargetCluster(target string) string { return TargetPrefix + target }

// HealthRunning is the gRPC health service of ClusterRunning. It serves until a
// drain is over, while the server's own status turns at its beginning.
const HealthRunning = "crossdoor.running"
