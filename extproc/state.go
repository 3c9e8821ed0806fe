package extproc

import (
	"encoding/json"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
	"github.com/crossdoor/crossdoor/rewrite/messages"
)

// stateVersion changes when a replica of another version could misread a state:
// it then plans afresh.
const stateVersion = 2

// carried is what Envoy carries from replica to replica about an exchange. No
// secret goes there: Envoy's access log shows it.
type carried struct {
	Version   int              `json:"v"`
	Route     string           `json:"r"`
	Model     string           `json:"m"`
	Path      string           `json:"p"`
	Stream    bool             `json:"s,omitempty"`
	MaxTokens int64            `json:"t,omitempty"`
	Size      int64            `json:"b,omitempty"`
	Image     int64            `json:"i,omitempty"`
	Began     int64            `json:"g"` // Unix ms: the headers came
	Start     int64            `json:"f"` // the body was there
	Deadline  int64            `json:"d"`
	Client    string           `json:"c,omitempty"`
	Headers   [][2]string      `json:"h,omitempty"` // the client's, of those that attempts change
	Issued    int              `json:"n,omitempty"`
	Passable  int              `json:"q,omitempty"`
	Judged    bool             `json:"j,omitempty"`
	Attempts  []carriedAttempt `json:"a,omitempty"`
	Ended     *carriedEnd      `json:"z,omitempty"` // how a converted answer ended
}

// carriedEnd is how the converted answer of attempt N ended. Error is the type
// alone: messages may quote the request.
type carriedEnd struct {
	N      int       `json:"n"`
	Stop   bool      `json:"s,omitempty"`
	Reason string    `json:"r,omitempty"`
	Error  string    `json:"e,omitempty"`
	Usage  *[4]int64 `json:"u,omitempty"` // input, output, cache read, cache creation
}

func carryEnd(c *convertedEnd) *carriedEnd {
	if c == nil {
		return nil
	}
	out := &carriedEnd{N: c.n, Stop: c.ending.Stop, Reason: c.ending.StopReason}
	if c.ending.Err != nil {
		out.Error = c.ending.Err.Type
	}
	if u := c.ending.Usage; c.ending.HasUsage {
		out.Usage = &[4]int64{u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens}
	}
	return out
}

func (c *carriedEnd) end() *convertedEnd {
	if c == nil {
		return nil
	}
	out := &convertedEnd{n: c.N, ending: messages.Ending{Stop: c.Stop, StopReason: c.Reason}}
	if c.Error != "" {
		out.ending.Err = &messages.ErrorBody{Type: c.Error}
	}
	if u := c.Usage; u != nil {
		out.ending.HasUsage = true
		out.ending.Usage = messages.Usage{InputTokens: u[0], OutputTokens: u[1], CacheReadInputTokens: u[2], CacheCreationInputTokens: u[3]}
	}
	return out
}

// carriedAttempt is one attempt. Targets go by name: another replica's policy
// may have another chain.
type carriedAttempt struct {
	Target  string        `json:"t"`
	Key     int           `json:"k,omitempty"`
	Start   int64         `json:"s"`
	End     int64         `json:"e,omitempty"`
	Status  int           `json:"c,omitempty"`
	Kind    config.Kind   `json:"o,omitempty"`
	Blame   policy.Blame  `json:"b,omitempty"`
	Reason  string        `json:"r,omitempty"`
	Verb    policy.Verb   `json:"d,omitempty"`
	Waited  time.Duration `json:"w,omitempty"`
	Request string        `json:"i,omitempty"`
	Message string        `json:"m,omitempty"`
}

// meta is the dynamic metadata that goes with an answer about attempt a. x.mu
// is held.
func (x *exchange) meta(a *policy.Attempt) []field {
	x.wrote = x.state()
	return []field{
		{Name: names.MetaID, Value: x.id},
		{Name: names.MetaNode, Value: x.node},
		{Name: names.MetaAttempt, Value: itoa(a.N)},
		{Name: names.MetaState, Value: x.wrote},
	}
}

// stateIfJoined is meta for the replica that planned, "nothing" on that replica
// itself, which knows. x.mu is held.
func (x *exchange) stateIfJoined(a *policy.Attempt) []field {
	if !x.joined {
		return nil
	}
	return x.meta(a)
}

// state is the exchange for another replica. x.mu is held.
func (x *exchange) state() string {
	p := x.run.Plan
	c := carried{
		Version: stateVersion, Route: p.Route.Name, Model: p.Request.Model, Path: x.client.path, Stream: p.Request.Stream,
		MaxTokens: p.Request.MaxTokens, Size: p.Request.BodyBytes, Image: p.Request.LargestImage,
		Began: x.started.UnixMilli(), Start: p.Start.UnixMilli(), Deadline: p.Deadline.UnixMilli(),
		Client: x.clientName, Headers: x.client.changeable(), Issued: x.issued, Passable: x.passable, Judged: x.judged,
		Ended: carryEnd(x.converted),
	}
	for _, a := range x.run.Attempts {
		d := x.detail(a)
		ca := carriedAttempt{
			Target: x.target(a).Name, Key: a.Key, Start: a.Start.UnixMilli(), Status: a.Status, Kind: a.Outcome.Kind,
			Blame: a.Outcome.Blame, Reason: a.Outcome.Reason, Verb: a.Decision, Waited: a.Waited, Request: d.requestID, Message: d.message,
		}
		if a.Closed() {
			ca.End = a.End.UnixMilli()
		}
		c.Attempts = append(c.Attempts, ca)
	}
	text, err := json.Marshal(&c)
	if err != nil {
		return ""
	}
	return string(text)
}

// readState reads what another replica wrote; nil when it cannot be used.
func readState(text string) *carried {
	var c carried
	if text == "" || json.Unmarshal([]byte(text), &c) != nil || c.Version != stateVersion {
		return nil
	}
	return &c
}

// attempts places the carried attempts on a plan: each at the first place of
// its target that is not before the last one's.
func (c *carried) attempts(p *policy.Plan) []policy.Attempt {
	out := make([]policy.Attempt, 0, len(c.Attempts))
	at := 0
	for i, ca := range c.Attempts {
		for at < len(p.Places) && p.Places[at].Entry.Target.Name != ca.Target {
			at++
		}
		if at == len(p.Places) || ca.Key < 0 || ca.Key >= len(p.Places[at].Entry.Target.Keys) {
			return out
		}
		a := policy.Attempt{
			N: i + 1, Place: at, Model: p.Places[at].Model, Key: ca.Key, Start: time.UnixMilli(ca.Start), Status: ca.Status,
			Outcome:  policy.Outcome{Kind: ca.Kind, Blame: ca.Blame, Reason: ca.Reason, Status: ca.Status},
			Decision: ca.Verb, Waited: ca.Waited,
		}
		if ca.End != 0 {
			a.End = time.UnixMilli(ca.End)
			if ca.Verb == policy.VerbFailover && ca.Blame != policy.BlameKey && ca.Blame != policy.BlameKeyModel {
				at++
			}
		}
		out = append(out, a)
	}
	return out
}

// facts is what planning needs of a request whose body is not here.
func (c *carried) facts() rewrite.Facts {
	return rewrite.Facts{Model: c.Model, Stream: c.Stream, MaxTokens: c.MaxTokens, LargestImage: c.Image}
}

// mergeState takes over what other replicas did for x, by what its final
// response headers carry. x.mu is held.
func (s *Server) mergeState(x *exchange, text string) {
	if x.run == nil || len(text) == 0 || text == x.wrote {
		return
	}
	c := readState(text)
	if c == nil || !c.knowsMore(x) {
		return
	}
	attempts := c.attempts(x.run.Plan)
	x.run.Merge(attempts)
	x.takeOver(c)
}

func (c *carried) knowsMore(x *exchange) bool {
	n := len(c.Attempts)
	switch mine := len(x.run.Attempts); {
	case n > mine, c.Issued > x.issued, c.Judged && !x.judged, c.Passable > x.passable:
		return true
	case n == mine && n > 0:
		return c.Attempts[n-1].End != 0 && !x.run.Last().Closed()
	}
	return false
}

// takeOver copies what is not part of the attempts. x.mu is held.
func (x *exchange) takeOver(c *carried) {
	issued := min(max(x.issued, c.Issued), len(x.run.Attempts))
	for n := x.issued + 1; n <= issued; n++ {
		x.counted(itoa(n), n) // Envoy's count is ours, unless a turn was passed
	}
	x.issued = issued
	x.passable = max(x.passable, c.Passable)
	x.judged = x.judged || c.Judged
	for i, a := range x.run.Attempts {
		if i < len(c.Attempts) {
			*x.detail(a) = detail{requestID: c.Attempts[i].Request, message: c.Attempts[i].Message}
		}
	}
}
