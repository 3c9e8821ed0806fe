package fakeplatform

import "slices"

// Failure is one way in which a platform fails.
type Failure struct {
	Name      string // unique among a platform's failures
	Kind      string // what the contract calls it
	Stream    bool   // answers a request for a stream
	Committed bool   // content has gone to the client before
	Answer    Answer
}

// Failures are a platform's failures in its own shapes: answers, streams, and
// what happens to the connection. They can be scripted as they are.
func Failures(platform string) []Failure {
	var own []Failure
	switch platform {
	case Bedrock:
		own = slices.Concat(awsFailures(), frameFailures())
	case Mantle:
		own = slices.Concat(vendorFailures(), eventFailures(), []Failure{
			fails("aws-credential", "credential", BedrockError(403, excUnrecognized, "The security token included in the request is invalid.")),
			fails("aws-permission", "permission", BedrockError(403, "", "User is not authorized to perform: bedrock-mantle:CreateInference")),
			fails("aws-throttled", "rate_limit", BedrockError(429, "", "Too many requests, please wait before trying again.")),
		})
	case Vertex:
		own = slices.Concat(googleFailures(), eventFailures(), []Failure{fails("vendor-overloaded", "overloaded", Error(529, "Overloaded"))})
	case ClaudeOnGoogle:
		own = slices.Concat(vendorFailures(), googleFailures(), eventFailures())
	case Foundry:
		own = slices.Concat(vendorFailures(), azureFailures(), eventFailures())
	default:
		own = slices.Concat(vendorFailures(), eventFailures())
	}
	if platform != Anthropic { // there the client asked for it, and it is invalid_request
		own = append(own, fails("unsupported", "unsupported_feature", unsupported(platform)))
	}
	return append(own, connectionFailures(platform)...)
}

func fails(name, kind string, a Answer) Failure { return Failure{Name: name, Kind: kind, Answer: a} }

func unsupported(platform string) Answer {
	_, a := inner(platform, 400, "zz_future: Extra inputs are not permitted")
	return a
}

// vendorFailures are in the envelope of the Messages schema.
func vendorFailures() []Failure {
	return []Failure{
		fails("overloaded", "overloaded", Error(529, "Overloaded")),
		fails("rate-limit", "rate_limit", Error(429, "This request would exceed your organization's rate limit.", Field{"retry-after", "7"})),
		fails("credential", "credential", Error(401, "invalid x-api-key")),
		fails("permission", "permission", Error(403, "Your credential does not have permission to use the specified resource.")),
		fails("billing", "billing_quota", Error(400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")),
		fails("payment", "billing_quota", Error(402, "There is a problem with your payment.")),
		fails("model", "model_unavailable", Error(404, "model: claude-wren-1")),
		fails("invalid", "invalid_request", Error(400, "messages: at least one message is required")),
		fails("too-large", "too_large", Error(413, "Request exceeds the maximum size")),
		fails("prompt-too-long", "too_large", Error(400, "prompt is too long: 214113 tokens > 200000 maximum")),
		fails("server-error", "server_error", Error(500, "Internal server error")),
		fails("timeout-answer", "timeout", Error(504, "Timed out while processing")),
		fails("edge", "server_error", HTML(502)),
		fails("firewall", "server_error", HTML(403)),
	}
}

// awsFailures are the exceptions of reference 5.7.
func awsFailures() []Failure {
	at := func(name, kind string, status int, exception, message string) Failure {
		return fails(name, kind, BedrockError(status, exception, message))
	}
	return []Failure{
		at("overloaded", "overloaded", 503, "", "Bedrock is unable to process your request."),
		at("not-ready", "overloaded", 429, "ModelNotReadyException", "The model is not ready for inference."),
		at("rate-limit", "rate_limit", 429, "", "Too many requests, please wait before trying again."),
		at("throttled-tokens", "rate_limit", 429, "", "Too many tokens, please wait before trying again."),
		at("throttled-day", "billing_quota", 429, "", "Too many tokens per day, please wait before trying again."),
		at("quota", "billing_quota", 400, "ServiceQuotaExceededException", "You have exceeded your service quota."),
		at("credential", "credential", 403, excUnrecognized, "The security token included in the request is invalid."),
		at("expired", "credential", 403, excExpired, "The security token included in the request is expired"),
		at("signature", "credential", 403, excSignature, "The request signature we calculated does not match the signature you provided."),
		at("permission", "permission", 403, "", "User: arn:aws:iam::111122223333:role/app is not authorized to perform: bedrock:InvokeModel"),
		at("model", "model_unavailable", 404, "", "This model version has reached the end of its life."),
		at("on-demand", "model_unavailable", 400, "", "Invocation of model ID anthropic.claude-wren-1-v1:0 with on-demand throughput isn't supported."),
		at("identifier", "model_unavailable", 400, "", "The provided model identifier is invalid."),
		at("beta", "unsupported_feature", 400, "", "invalid beta flag"),
		at("invalid", "invalid_request", 400, "", "messages: at least one message is required"),
		at("too-large", "too_large", 413, "", "Request exceeds the maximum size"),
		at("prompt-too-long", "too_large", 400, "", "prompt is too long: 214113 tokens > 200000 maximum"),
		at("server-error", "server_error", 500, "", "The system encountered an unexpected error during processing."),
		at("model-error", "server_error", 424, "", "The model returned an error."),
		at("timeout-answer", "timeout", 408, "", "The model took too long to process the request."),
		fails("edge", "server_error", HTML(502)),
	}
}

// googleFailures are what Google's front says, reference 6.6.
func googleFailures() []Failure {
	at := func(name, kind string, status int, message string) Failure {
		return fails("google-"+name, kind, GoogleError(status, message))
	}
	quota := "Quota exceeded for aiplatform.googleapis.com/global_online_prediction_requests_per_base_model with base model: anthropic-claude-wren-1."
	return []Failure{
		at("overloaded", "overloaded", 503, "The service is currently unavailable."),
		at("rate-limit", "rate_limit", 429, quota),
		fails("google-rate-limit-array", "rate_limit", InArray(GoogleError(429, quota))),
		at("credential", "credential", 401, "Request had invalid authentication credentials."),
		at("permission", "permission", 403, "Permission 'aiplatform.endpoints.predict' denied on resource."),
		at("model", "model_unavailable", 404, "Publisher Model `claude-wren-1` was not found or your project does not have access to it."),
		fails("google-precondition", "model_unavailable", GoogleErrorOf(400, "FAILED_PRECONDITION", "The publisher's terms have not been accepted.")),
		at("invalid", "invalid_request", 400, "Request contains an invalid argument."),
		at("too-large", "too_large", 413, "Request payload size exceeds the limit: 31457280 bytes."),
		at("server-error", "server_error", 500, "Internal error encountered."),
		at("timeout-answer", "timeout", 504, "Deadline expired before operation could complete."),
	}
}

// azureFailures are what stands before Foundry's models.
func azureFailures() []Failure {
	return []Failure{
		fails("azure-rate-limit", "rate_limit", AzureError(429, "429", "Requests have exceeded the rate limit of your deployment.", Field{"retry-after", "9"})),
		fails("azure-credential", "credential", AzureError(401, "401", "Access denied due to invalid subscription key or wrong API endpoint.")),
		fails("azure-permission", "permission", AzureError(403, "PermissionDenied", "The principal lacks the required data action.")),
		fails("azure-deployment", "model_unavailable", AzureError(404, "DeploymentNotFound", "The API deployment for this resource does not exist.")),
	}
}

// opening is a stream up to where its first content would come.
func opening() [][]byte {
	return [][]byte{MessageStart("msg_fake_failure", "claude-wren-1"), Ping(), BlockStart(0)}
}

// begun is a stream with content.
func begun() [][]byte { return append(opening(), TextDelta(0, "The qui")) }

// eventFailures are SSE errors, before and after content.
func eventFailures() []Failure {
	var out []Failure
	for _, e := range []struct{ kind, event string }{
		{"overloaded", "overloaded_error"}, {"server_error", "api_error"}, {"rate_limit", "rate_limit_error"}, {"timeout", "timeout_error"}, {"invalid_request", "invalid_request_error"},
	} {
		event := StreamError(e.event, "it failed")
		out = append(out,
			Failure{"stream-first-" + e.event, e.kind, true, false, Stream(event)},
			Failure{"stream-opened-" + e.event, e.kind, true, false, Stream(append(opening(), event)...)},
			Failure{"stream-content-" + e.event, "stream_error", true, true, Stream(append(begun(), event)...)},
		)
	}
	return out
}

// frameFailures are Bedrock's exceptions, error events and broken frames.
func frameFailures() []Failure {
	reframed := func(events [][]byte, last ...[]byte) Answer {
		var frames [][]byte
		for _, e := range events {
			frames = append(frames, Reframe(e))
		}
		return Frames(append(frames, last...)...)
	}
	var out []Failure
	for _, x := range []struct {
		name, kind string
		frame      []byte
	}{
		{"throttling", "rate_limit", Exception("throttlingException", "Too many requests, please wait before trying again.")},
		{"unavailable", "overloaded", Exception("serviceUnavailableException", "Bedrock is unable to process your request.")},
		{"internal", "server_error", Exception("internalServerException", "The system encountered an unexpected error during processing.")},
		{"model-stream", "server_error", Exception("modelStreamErrorException", "The model's stream failed.")},
		{"model-timeout", "timeout", Exception("modelTimeoutException", "The model took too long.")},
		{"validation", "invalid_request", Exception("validationException", "messages: at least one message is required")},
		{"error-frame", "server_error", ErrorFrame("InternalError", "An internal error occurred")},
		{"inner-overloaded", "overloaded", Reframe(StreamError("overloaded_error", "Overloaded"))},
		{"corrupt-message", "connection", CorruptMessage(Reframe(TextDelta(0, "x")))},
		{"corrupt-prelude", "connection", CorruptPrelude(Reframe(TextDelta(0, "x")))},
	} {
		out = append(out,
			Failure{"stream-first-" + x.name, x.kind, true, false, reframed(nil, x.frame)},
			Failure{"stream-opened-" + x.name, x.kind, true, false, reframed(opening(), KeepAlive(), x.frame)},
			Failure{"stream-content-" + x.name, "stream_error", true, true, reframed(begun(), x.frame)},
		)
	}
	return out
}

// connectionFailures are the same everywhere but for the framing of what came
// before.
func connectionFailures(platform string) []Failure {
	whole := goodMessage(platform, "claude-wren-1", false, 1)
	start, content := StreamFor(platform, opening()...), StreamFor(platform, begun()...)
	ended := StreamFor(platform, append(begun(), BlockStop(0), MessageDelta("end_turn"))...)
	return []Failure{
		fails("reset", "connection", ResetBeforeHeaders()),
		fails("close", "connection", CloseBeforeHeaders()),
		fails("silent", "timeout", Silence()),
		fails("short-answer", "connection", whole.Ending(EndClose)),
		{"stream-opened-reset", "connection", true, false, start.Ending(EndReset)},
		{"stream-opened-end", "connection", true, false, start},
		{"stream-opened-silent", "timeout", true, false, start.Ending(EndStall)},
		{"stream-content-reset", "truncated", true, true, content.Ending(EndReset)},
		{"stream-content-end", "truncated", true, true, content},
		{"stream-no-message-stop", "truncated", true, true, ended},
	}
}
