package extproc

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/extproc/wire"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
)

// attempt serves the attempt role: it names the target of the next attempt and
// gives the request its headers and, where it differs, its body.
func (s *Server) attempt(stream counted) error {
	var req wire.Request
	defer req.Release()
	if err := stream.Recv(&req); err != nil {
		return nil // EOF and Canceled are how Envoy ends a stream
	}
	count := headerOf(&req, names.EnvoyAttemptCount)
	x, askBody := s.find(headerOf(&req, names.ID), &req)
	var out wire.Response
	if x == nil || askBody {
		// Another replica made the plan: the body, please (envoy.md, rule 5).
		var err error
		if x, err = s.joinWithBody(stream, &req, &out, x); x == nil || err != nil {
			return err
		}
	}
	a, r := s.nextAttempt(stream.Context(), x, count)
	switch {
	case r != nil:
		r.immediate(&out, nil)
	case a == nil:
		return nil // the client left while the attempt was due
	case !s.sendAttempt(x, a, &out, askBody || req.Kind == wire.KindRequestBody):
		// Closing well would send it on with the last target's headers.
		return status.Error(codes.Aborted, "the exchange is over")
	}
	err := stream.Send(&out)
	x.letGoIfJoined()
	return err
}

// letGoIfJoined frees the copy of a body that another replica keeps: the next
// attempt may be anywhere, and can ask for it again.
func (x *exchange) letGoIfJoined() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.joined {
		x.letGo()
	}
}

// nextAttempt is the attempt that Envoy asks for. A judge that decided has
// begun it; else the held answer before it broke (envoy.md, rule 11), and it is
// decided here. A reply means that no attempt follows.
func (s *Server) nextAttempt(ctx context.Context, x *exchange, count string) (*policy.Attempt, *reply) {
	for {
		x.mu.Lock()
		if x.end.answered != nil {
			defer x.mu.Unlock()
			return nil, x.end.answered
		}
		if x.run == nil {
			defer x.mu.Unlock()
			return nil, serviceFailed()
		}
		a := x.run.Last()
		switch {
		case a != nil && !a.Closed() && a.N > x.issued && !s.keyUsable(x, x.target(a), a.Key):
			// Chosen by a replica that has the client's credential; the one in these
			// headers is another target's.
			s.fail(x, a, policy.Outcome{Kind: config.KindConnection, Reason: "credential_elsewhere"}, time.Now())
		case a != nil && !a.Closed() && a.N > x.issued:
			defer x.mu.Unlock()
			x.issue(a, count)
			return a, nil
		case a != nil && !a.Closed():
			s.fail(x, a, x.broken(a, "", 0), time.Now())
		}
		until := x.waitUntil
		if time.Until(until) <= 0 {
			now := time.Now()
			a, ok := s.begin(x, now)
			if !ok {
				r := s.exhaustedReply(x, now)
				x.end.answered, x.status = r, r.status
				x.mu.Unlock()
				return nil, r
			}
			x.issue(a, count)
			x.mu.Unlock()
			return a, nil
		}
		x.mu.Unlock()
		if pause(ctx, until) != nil {
			return nil, nil
		}
	}
}

// begin starts the next attempt unless the last decision was to stop. x.mu is
// held.
func (s *Server) begin(x *exchange, now time.Time) (*policy.Attempt, bool) {
	if a := x.run.Last(); a != nil && a.Decision == policy.VerbStop {
		return nil, false
	}
	return x.run.Next(now)
}

// sendAttempt fills out with attempt a. asked says that Envoy sent the body
// again and waits for one in return. false: the body was let go since a was
// chosen, because the client left or the total ran out.
func (s *Server) sendAttempt(x *exchange, a *policy.Attempt, out *wire.Response, asked bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.body == nil {
		return false
	}
	p := x.placement(a)
	body := p.body(x.body.buf)
	if x.policy.Guard == config.GuardScan {
		if left := p.scan(body.Bytes()); left != 0 {
			s.leftOver(x, x.target(a), left)
		}
	}
	edits := s.attemptEdits(x, a, body.Bytes())
	out.Reset()
	out.Kind, out.Set, out.Remove, out.Meta = wire.KindRequestHeaders, edits.set, edits.remove, x.meta(a)
	if asked {
		out.Kind = wire.KindRequestBody
	}
	if x.unchanged(a) && !asked {
		body.Free()
		return true
	}
	out.HasBody, out.Replace, out.Body = true, !asked, body
	out.Set = append(out.Set, field{Name: "content-length", Value: strconv.Itoa(len(out.Body.Bytes()))})
	return true
}
