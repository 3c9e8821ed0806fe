package config

import "time"

// The shape of the policy file. Tags say what the decoder, the schema and the
// reference need:
//
//	yaml:"name"      the member's name; ",key": the name under which the element
//	                 stands in a mapping; ",short": a plain value in place of the
//	                 mapping sets this one
//	default:"x"      the value of an absent member
//	enum, later      the words allowed; those of a later issue
//	min, max         bounds, in the member's own notation
//	required:"true"  absent is an error
//	off:"x"          a Later member's accepted values

// Duration is written as 500ms, 5s, 2m, 9m30s.
type Duration time.Duration

// AutoDuration is a Duration or the word auto, which is 0.
type AutoDuration time.Duration

// Size is a number of bytes, written as 32MiB (KiB, MiB, GiB) or as a plain
// number.
type Size int64

// Later is a member of the contract that is not built yet.
type Later struct{}

// File is the whole policy file, usually `crossdoor.yaml`.
type File struct {
	// Version of the policy format: 1.
	Version int `yaml:"version" required:"true" min:"1" max:"1"`
	// What the service takes at most.
	Limits FileLimits `yaml:"limits"`
	// The ways to reach models, by name. Names are `[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?`.
	Targets []FileTarget `yaml:"targets" required:"true"`
	// Which requests use which chain. The first route that matches wins.
	Routes []FileRoute `yaml:"routes" required:"true"`
	// How failures eject a target, a key or a model.
	Breaker FileBreaker `yaml:"breaker"`
	// Who the client is, in the trail. Off when absent.
	Client FileClient `yaml:"client"`
	// Labels that every used target must have, for every route.
	Require Later `yaml:"require" off:"{}"`
	// Share of retries per target and client.
	Budget Later `yaml:"budget" off:"{}"`
	// How fast moved traffic grows at a fallback.
	Ramp Later `yaml:"ramp" off:"{}"`
	// `plan`: what remains of a request after its edits is held against the target's table while planning. `scan`: the final bytes of every rewritten request are checked too.
	Guard string `yaml:"guard" default:"plan" enum:"plan scan"`
	// What Envoy does while the service is down: `reject`, or `{direct: TARGET}`.
	OnServiceDown FileDown `yaml:"on_service_down"`
	// What happens to paths that Crossdoor does not handle: `reject` (404), or `{target: TARGET, allow: ["POST /v1/messages/batches", …]}`.
	OtherPaths FileOther `yaml:"other_paths"`
	// Where the records of exchanges go.
	Trail FileTrail `yaml:"trail"`
	// Where replicas share ejections, overrides and drills.
	State Later `yaml:"state" off:"{}"`
}

// FileLimits bound what the service takes.
type FileLimits struct {
	// Size of a request body; a larger one gets 413.
	Body Size `yaml:"body" default:"32MiB" min:"1" max:"512MiB"`
	// Bodies and held streams in the service; beyond it new requests get 529 with `retry-after`.
	Memory Size `yaml:"memory" default:"1GiB" min:"1"`
	// From the request's headers to its whole body, else 408.
	BodyTime Duration `yaml:"body_time" default:"60s" max:"1h"`
	// Bytes of one held stream; beyond it the stream is released as it is.
	Hold Size `yaml:"hold" default:"8MiB" min:"1"`
}

// FileTarget is one configured way to reach models: a platform, an account (its
// keys), a region.
type FileTarget struct {
	// The target's name.
	Name string `yaml:",key"`
	// The platform that the target speaks to.
	Platform string `yaml:"platform" required:"true" enum:"anthropic claude-on-aws claude-on-google bedrock mantle vertex foundry" later:"vllm openai"`
	// Scheme, host and port only; the platform's path is added. Default: the platform's own address, from `region` or `resource` where it has one.
	URL string `yaml:"url"`
	// More hosts for the same account.
	AlternateURLs Later `yaml:"alternate_urls" off:"[]"`
	// File of PEM certificates to check the platform's with. Default: the system's bundle.
	CAFile string `yaml:"ca_file"`
	// `true` for `http://` urls, and only for those.
	Plaintext bool `yaml:"plaintext" default:"false"`
	// AWS region (claude-on-aws, bedrock, mantle) or Vertex AI location: `global`, `us`, `eu` or a region. Required there.
	Region string `yaml:"region"`
	// bedrock: which inference profiles may be used. `geo`: those of the region's own geography. `global`: those that may run anywhere. `none`: the region itself. Default: `geo`. Another geography than the one written is never used.
	Profile string `yaml:"profile" enum:"geo global none"`
	// Google Cloud project. vertex, claude-on-google: required.
	Project string `yaml:"project"`
	// Google Cloud location. claude-on-google; default: `global`.
	Location string `yaml:"location"`
	// Workspace ID. claude-on-aws, claude-on-google: required.
	Workspace string `yaml:"workspace"`
	// Azure resource. foundry: required unless `url` is there.
	Resource string `yaml:"resource"`
	// Who hosts the deployments. foundry; default: `anthropic`. What `azure` does not serve leaves the target out.
	Hosting string `yaml:"hosting" enum:"anthropic azure"`
	// How requests are authenticated. anthropic: `key`. claude-on-aws, bedrock, mantle: `sigv4` (the AWS default chain), or `key`. vertex, claude-on-google: `adc` (Google's application default credentials). foundry: `key`, or `entra`. Default: `key` where `keys` is written, else the first of these.
	Auth string `yaml:"auth" enum:"key sigv4 adc entra"`
	// With `auth: key`, and only then: where the keys are, in order of use; spread round-robin. 1 to 32, each once.
	Keys []FileKey `yaml:"keys"`
	// An access token in place of `auth: adc`'s own: `{env: NAME}` or `{file: PATH}`. It is used as it is: keeping it fresh is up to whoever wrote it.
	Token FileToken `yaml:"token"`
	// Client headers sent on besides the allow-list (`content-type`, `accept`, `user-agent`, `anthropic-version`, `anthropic-beta`, `anthropic-user-profile-id`, `x-stainless-*`, `anthropic-dangerous-direct-browser-access`).
	ForwardHeaders []string `yaml:"forward_headers"`
	// Client model (or glob) to this platform's ID: over the built-in table. An exact name goes before globs, globs in the file's order. anthropic, claude-on-aws and claude-on-google take a model that is not in the table as it is; the others are left out for it.
	Models []FileModel `yaml:"models"`
	// Over the built-in portability table, by the feature's name: see the feature matrix.
	Features []FileFeature `yaml:"features"`
	// `true`: a file that a request names by an ID of this target's workspace is fetched with this target's key and sent to other targets in the request itself. anthropic, claude-on-aws, claude-on-google, foundry with `hosting: anthropic`; not with passthrough.
	FetchFiles bool `yaml:"fetch_files" default:"false"`
	// Until the connection stands, TLS included.
	ConnectTimeout Duration `yaml:"connect_timeout" default:"3s" max:"5m"`
	// What this target takes at most; a larger request leaves it out.
	Limits FileTargetLimits `yaml:"limits"`
	// Free labels, text to text.
	Labels []FileLabel `yaml:"labels"`
	// An answer of this target counts as degraded.
	Degraded bool `yaml:"degraded" default:"false"`
	// Requests at once; above it the target is left out as `busy`. 0 is no limit.
	MaxConcurrency int `yaml:"max_concurrency" default:"0" max:"1000000"`
	// Schema that a vLLM server speaks.
	API Later `yaml:"api" off:"messages"`
	// Context window.
	Context Later `yaml:"context" off:"0"`
	// Whether conversations with tools may go there.
	Tools Later `yaml:"tools" off:"allow"`
	// `exhausted`: only after every other target of the chain.
	When Later `yaml:"when"`
	// Failure kinds that alone never lead to this target.
	NotFor Later `yaml:"not_for" off:"[]"`
}

// FileKey says where one key is: `{env: NAME}`, `{file: PATH}`, or the word
// `passthrough`.
type FileKey struct {
	// `passthrough`: the client's own credential is sent on. anthropic, claude-on-aws, foundry.
	Passthrough string `yaml:",short" enum:"passthrough"`
	// Environment variable that holds the key.
	Env string `yaml:"env"`
	// File that holds the key.
	File string `yaml:"file"`
	// Used only after every active key failed.
	Standby Later `yaml:"standby" off:"false"`
}

// FileToken says where an access token is: one of its members.
type FileToken struct {
	// Environment variable that holds the token.
	Env string `yaml:"env"`
	// File that holds the token; read again when it changes.
	File string `yaml:"file"`
}

// FileFeature is what a target does about one feature that a request uses.
type FileFeature struct {
	// The feature's name.
	Name string `yaml:",key"`
	// `keep`: the request goes there as it is. `strip`: it goes there without the member. `refuse`: the target is left out.
	Action string `yaml:",short" enum:"keep strip refuse"`
}

// FileModel maps a client's model, or a glob over it, to an ID.
type FileModel struct {
	// The client's model or a glob: `*` is any run of characters, `?` is one.
	Model string `yaml:",key"`
	// The ID that the platform knows it by.
	ID string `yaml:"id,short" required:"true"`
	// For this model, over the target's `features`.
	Features []FileFeature `yaml:"features"`
}

// FileTargetLimits are checked while planning; 0 is not checked. The defaults
// are the platform's.
type FileTargetLimits struct {
	// Request body as it is sent there. Default: `20MiB` at bedrock and mantle, `30MiB` at vertex, else `32MiB`.
	Body Size `yaml:"body"`
	// One image, as base64 text. Default: `5MiB` at bedrock, mantle and vertex, else `10MiB`.
	Image Size `yaml:"image"`
	// Estimated input tokens.
	InputTokens int `yaml:"input_tokens" default:"0"`
}

// FileLabel is one label of a target.
type FileLabel struct {
	// The label's name.
	Name string `yaml:",key"`
	// The label's value.
	Value string `yaml:",short"`
}

// FileRoute says which requests use which chain under which rules.
type FileRoute struct {
	// The route's name, as a target's; each once.
	Name string `yaml:"name" required:"true"`
	// Globs over the whole of the client's model. A model without `*` or `?` must have an ID on every target of the chain.
	Models []string `yaml:"models" required:"true"`
	// Headers that must match too: exact, or `{prefix: …}`, or `{present: true}`.
	Headers []FileHeader `yaml:"headers"`
	// Targets in order, 1 to 10: names, or mappings with more.
	Chain []FileEntry `yaml:"chain" required:"true"`
	// `priority`, or `weighted` by the entries' weights.
	Order Later `yaml:"order" off:"priority"`
	// Labels that every used target must have.
	Require Later `yaml:"require" off:"{}"`
	// What follows a failure of a kind before the commit; default: the table of failure kinds.
	Actions []FileAction `yaml:"actions"`
	// `authenticated`: the ingress has checked the client. Needed where passthrough and own keys mix in the chain.
	Clients string `yaml:"clients" default:"unauthenticated" enum:"unauthenticated authenticated"`
	// Further tries at the same target, for kinds whose action is `retry`.
	SameTargetRetries int `yaml:"same_target_retries" default:"0" max:"20"`
	// Attempts at platforms in one exchange.
	MaxAttempts int `yaml:"max_attempts" default:"6" min:"1" max:"50"`
	// How long things may take.
	Timeouts FileTimeouts `yaml:"timeouts"`
	// Wait before a same-target retry, full jitter.
	Backoff FileBackoff `yaml:"backoff"`
	// Cool-down of a key that answered 429.
	RetryAfter FileRetryAfter `yaml:"retry_after"`
	// `strip`: what a target does not take is removed where the request's meaning stays. `strict`: a target that would need a strip which changes behaviour is left out.
	Portability string `yaml:"portability" default:"strip" enum:"strip strict"`
	// For requests that only one target can serve.
	SingleTarget Later `yaml:"single_target" off:"{}"`
	// Wait before leaving the vendor.
	Settle Later `yaml:"settle" off:"{}"`
	// `error`, or a queue.
	OnExhausted Later `yaml:"on_exhausted" off:"error"`
	// Check of the answer.
	Output Later `yaml:"output" off:"{}"`
	// How much the client is told in `x-crossdoor-*` headers.
	ClientHeaders string `yaml:"client_headers" default:"full" enum:"full basic none"`
}

// FileHeader is one header rule of a route.
type FileHeader struct {
	// The header's name; case does not count.
	Name string `yaml:",key"`
	// The whole value.
	Exact string `yaml:",short"`
	// The value begins with this.
	Prefix string `yaml:"prefix"`
	// `true`: the header is there, whatever its value.
	Present bool `yaml:"present"`
}

// FileEntry is one place of a chain.
type FileEntry struct {
	// The target's name.
	Target string `yaml:"target,short" required:"true"`
	// Another model than the client's.
	Model string `yaml:"model"`
	// Weight under `order: weighted`.
	Weight Later `yaml:"weight"`
	// The entry's own limits, in place of the route's.
	Timeouts FileEntryTimeouts `yaml:"timeouts"`
}

// FileEntryTimeouts are an entry's own limits.
type FileEntryTimeouts struct {
	// Until the response headers of a non-streaming answer.
	Attempt Duration `yaml:"attempt"`
	// Streams: from the attempt's start to the first content event.
	FirstToken Duration `yaml:"first_token"`
}

// FileAction is what follows one kind of failure.
type FileAction struct {
	// The failure kind.
	Kind string `yaml:",key"`
	// `retry`: the same target again, then the next. `failover`: the next at once. `stop`: this answer goes to the client.
	Action string `yaml:",short" enum:"retry failover stop"`
}

// FileTimeouts of a route. Values that the file writes are compared with each
// other; `auto` fits in by itself.
type FileTimeouts struct {
	// Until the response headers of a non-streaming answer. `auto`: 60s + 1s per 40 `max_tokens`, at most 8m, never more than half of a written `total`.
	Attempt AutoDuration `yaml:"attempt" default:"auto"`
	// Streams: from the attempt's start to the first content event; pings do not count. `auto`: 60s + 15s per MiB of body, never more than half of a written `total`.
	FirstToken AutoDuration `yaml:"first_token" default:"auto"`
	// When it ends, a held stream that shows life is released as it is. Not above `first_token`; the default is `first_token` where that is shorter.
	Hold Duration `yaml:"hold" default:"25s"`
	// Longest silence once an answer has begun; pings count. At least `first_token`.
	Idle Duration `yaml:"idle" default:"5m"`
	// From the end of the request body to the commit or the answer; waits and all attempts included. Above a written `attempt` and `first_token`.
	Total Duration `yaml:"total" default:"9m30s"`
}

// FileBackoff is the range of same-target waits.
type FileBackoff struct {
	// Longest first wait; doubles with each retry.
	Base Duration `yaml:"base" default:"250ms"`
	// Longest wait; at least `base`. Of the two, a default gives way to what is written.
	Max Duration `yaml:"max" default:"8s"`
}

// FileRetryAfter is the cool-down of a key that answered 429.
type FileRetryAfter struct {
	// Without a retry time of the platform's.
	Default Duration `yaml:"default" default:"5s"`
	// Longest; at least `default`. Of the two, a default gives way to what is written.
	Max Duration `yaml:"max" default:"5m"`
}

// FileBreaker is how failures eject, per target, target and model, key, key and
// model.
type FileBreaker struct {
	// Consecutive failures that open it.
	Failures int `yaml:"failures" default:"5" min:"1" max:"1000"`
	// First ejection; doubles with each failed probe.
	Window Duration `yaml:"window" default:"15s"`
	// Longest ejection; at least `window`. Of the two, a default gives way to what is written.
	MaxWindow Duration `yaml:"max_window" default:"5m"`
	// First ejection after credential, permission, billing_quota, model_unavailable, at the first one; doubles to 10m.
	LongWindow Duration `yaml:"long_window" default:"1m" max:"10m"`
}

// FileClient says who the client is.
type FileClient struct {
	// Request header with the client's name. Set it in the ingress, not by the client.
	Header string `yaml:"header"`
}

// FileDown is what Envoy does while the service is down.
type FileDown struct {
	// `reject`: 503 in the Messages error schema. This is the default.
	Mode string `yaml:",short" enum:"reject"`
	// Requests go to this target as they are; its only key must be passthrough.
	Direct string `yaml:"direct"`
}

// FileOther says where requests on other paths go: as they are, not buffered,
// tried once.
type FileOther struct {
	// `reject`: 404 in the Messages error schema. This is the default.
	Mode string `yaml:",short" enum:"reject"`
	// The target they go to: anthropic, claude-on-aws with keys, claude-on-google or foundry.
	Target string `yaml:"target"`
	// Method and path of what may go there, 1 to 64, as in `GET /v1/files/*`: `*` stands for the rest, at the end only. `/v1/organizations` and `/v1/user_profiles` never go there, whatever is allowed; what Crossdoor handles is handled.
	Allow []string `yaml:"allow"`
}

// FileTrail says where the records of exchanges go. It is read when the service starts: after a reload `/readyz` says that a restart is needed.
type FileTrail struct {
	// How many stay in memory.
	Recent int `yaml:"recent" default:"10000" max:"1000000"`
	// File of JSON lines; empty is off.
	File string `yaml:"file"`
	// Database of records.
	Store Later `yaml:"store" off:"none"`
	// How long a store keeps them.
	Keep Later `yaml:"keep" off:"30d"`
	// Size that a store may take.
	MaxSize Later `yaml:"max_size" off:"2GiB"`
}
