package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/test/sdk"
)

// sdkFailures are the ways in which a lane's first target fails.
var sdkFailures = []string{"status", "event", "refused"}

// sdkLane is a chain whose first target fails and whose second one is good; one
// of them is the vendor's own.
func sdkLane(first, second, failure string) lane {
	l := lane{name: "to-" + second + "-" + failure}
	if first != fakeplatform.Anthropic {
		l.name = "from-" + first + "-" + failure
	}
	l.targets = []target{sdkTarget(first), sdkTarget(second)}
	if failure == "refused" {
		l.targets[0].url = "http://127.0.0.1:1"
	}
	return l.forSDK()
}

// sdkTarget is a target of the platform with an ID for both models.
func sdkTarget(platform string) target {
	tg := target{platform: platform}
	if platform == fakeplatform.Bedrock {
		tg.yaml = []string{"models: {" + sdkCountModel + ": anthropic." + sdkCountModel + "}"}
	}
	return tg
}

// forSDK makes the lane's route one for the models of the cases, found by header.
func (l lane) forSDK() lane {
	l.models = sdkModel
	if slices.ContainsFunc(l.targets, func(tg target) bool { return tg.platform == fakeplatform.Bedrock }) {
		l.models += ", " + sdkCountModel
	}
	l.route = append(l.route, "headers: {x-sdk-lane: "+l.name+"}")
	return l
}

// sdkOptions keep targets in that fail on purpose again and again.
func sdkOptions() options { return options{top: []string{"breaker: {failures: 1000}"}} }

// casesFor are the cases in which a failure can make a difference.
func casesFor(failure string, cases []sdkCase) []sdkCase {
	return slices.DeleteFunc(slices.Clone(cases), func(c sdkCase) bool {
		switch failure {
		case "event": // of a stream
			return !c.stream
		case "refused": // no answer there whose framing could matter
			return !slices.Contains([]string{"text", "tools-stream", "count", "claude-code"}, c.name)
		}
		return false
	})
}

// failureOf is a platform's own failure of the name.
func failureOf(t testing.TB, platform string, names ...string) fakeplatform.Answer {
	t.Helper()
	for _, name := range names {
		for _, f := range fakeplatform.Failures(platform) {
			if f.Name == name {
				return f.Answer
			}
		}
	}
	t.Fatalf("%s has none of the failures %v", platform, names)
	return fakeplatform.Answer{}
}

// failSDK makes the lane's first target fail as the lane's name says.
func failSDK(t testing.TB, l *laneRun) {
	t.Helper()
	platform := platformOf(l.targets[0])
	status, event := failureOf(t, platform, "overloaded", "google-overloaded"), failureOf(t, platform, "stream-first-overloaded_error", "stream-first-unavailable")
	byEvent := strings.HasSuffix(l.name, "-event")
	l.fakes[0].Respond(func(r fakeplatform.Request) fakeplatform.Answer {
		if r.Stream && byEvent {
			return event
		}
		return status
	})
}

// TestSDKs: the vendor's own libraries, with their retries on, through chains
// whose first target fails. Their callers see one good answer and no retry.
func TestSDKs(t *testing.T) {
	cases := sdkCases()
	var lanes []lane
	casesOf := map[string][]sdkCase{}
	for _, platform := range fakeplatform.Platforms() {
		for _, failure := range sdkFailures {
			if platform == fakeplatform.Anthropic {
				continue
			}
			to, from := sdkLane(fakeplatform.Anthropic, platform, failure), sdkLane(platform, fakeplatform.Anthropic, failure)
			lanes = append(lanes, to, from)
			casesOf[to.name], casesOf[from.name] = casesFor(failure, cases), casesFor("refused", casesFor(failure, cases))
		}
	}
	e := start(t, sdkOptions(), lanes...)
	for _, l := range e.order {
		if l.fakes[0] != nil {
			failSDK(t, l)
		}
		l.fakes[1].Respond(answerCases(platformOf(l.targets[1]), cases))
	}
	results := runSDKs(t, func(client sdkClient) []sdk.Job {
		var jobs []sdk.Job
		for _, l := range e.order {
			for _, c := range casesOf[l.name] {
				jobs = append(jobs, c.job(client, l))
				l.sent.Add(1)
			}
		}
		return jobs
	})
	if t.Failed() {
		return
	}
	for _, shared := range e.order {
		t.Run(shared.name, func(t *testing.T) { checkSDKLane(t, shared.in(t), casesOf[shared.name], results) })
	}
}
