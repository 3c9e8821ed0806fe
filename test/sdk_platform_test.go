package test

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// sdkRequest is one request of a job at a platform.
type sdkRequest struct {
	fakeplatform.Request

	letter   string
	platform string
	body     []byte // unwrapped
}

var sdkMarker = regexp.MustCompile(`\[\[([a-z0-9]+/[-a-z0-9]+/([-a-z0-9]+))\]\]`)

// sdkBody is the body that has the marker: Bedrock's count wraps it.
func sdkBody(r fakeplatform.Request) []byte {
	var wrapped struct {
		Input struct{ InvokeModel struct{ Body string } }
	}
	if json.Unmarshal(r.Body, &wrapped) == nil && wrapped.Input.InvokeModel.Body != "" {
		if inside, err := base64.StdEncoding.DecodeString(wrapped.Input.InvokeModel.Body); err == nil {
			return inside
		}
	}
	return r.Body
}

// sdkRequests are what the lane's platforms got, by job.
func (l *laneRun) sdkRequests() map[string][]sdkRequest {
	out := map[string][]sdkRequest{}
	for i, f := range l.fakes {
		if f == nil {
			continue
		}
		for _, r := range f.Requests() {
			body := sdkBody(r)
			name := ""
			if m := sdkMarker.FindSubmatch(body); m != nil {
				name = string(m[1])
			}
			out[name] = append(out[name], sdkRequest{r, letter(i), platformOf(l.targets[i]), body})
		}
	}
	return out
}

// answerCases makes a platform answer each request as its case says.
func answerCases(platform string, cases []sdkCase) func(fakeplatform.Request) fakeplatform.Answer {
	return func(r fakeplatform.Request) fakeplatform.Answer {
		m := sdkMarker.FindSubmatch(sdkBody(r))
		if m == nil {
			return fakeplatform.Error(500, "no case in the request")
		}
		i := slices.IndexFunc(cases, func(c sdkCase) bool { return c.name == string(m[2]) })
		if i < 0 {
			return fakeplatform.Error(500, "an unknown case")
		}
		if cases[i].count {
			return fakeplatform.Count(platform, r.Tokens)
		}
		reply := cases[i].reply
		reply.ID = replyID(string(m[1]))
		return reply.Answer(platform, r)
	}
}

// replyID differs by job, so that an answer of another one shows.
func replyID(job string) string { return "msg_" + strings.ReplaceAll(job, "/", "_") }
