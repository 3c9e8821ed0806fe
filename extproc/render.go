package extproc

import (
	"sync"

	"github.com/crossdoor/crossdoor/policy/config"
)

// renderState knows which config Envoy runs: its filters send the hash that the
// policy had when it was rendered.
type renderState struct {
	mu      sync.RWMutex
	current string                                // what Envoy last sent; "" before it did
	known   map[string]map[string]config.Endpoint // by hash: the targets that were rendered
}

// learn remembers the targets of a policy that was loaded.
func (r *renderState) learn(p *config.Policy) {
	targets := make(map[string]config.Endpoint, len(p.Targets))
	for _, t := range p.Targets {
		targets[t.Name] = t.Endpoint
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]map[string]config.Endpoint{}
	}
	r.known[p.RenderHash] = targets
}

func (r *renderState) seen(hash string) {
	r.mu.RLock()
	same := hash == "" || r.current == hash
	r.mu.RUnlock()
	if same {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = hash
}

// stale reports whether Envoy runs another config than p renders to.
func (r *renderState) stale(p *config.Policy) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.current != "" && r.current != p.RenderHash
}

// has reports whether Envoy has the cluster of p's target t. A config that this
// process never loaded is taken to have it: a missing cluster is a failed
// attempt, which the next target makes good.
func (r *renderState) has(p *config.Policy, t *config.Target) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.current == "" || r.current == p.RenderHash {
		return true
	}
	targets, known := r.known[r.current]
	if !known {
		return true
	}
	endpoint, ok := targets[t.Name]
	return ok && endpoint == t.Endpoint
}

// Stale reports whether Envoy runs a config that was rendered from another
// policy than the one in force, in a way that matters to it.
func (s *Server) Stale() bool { return s.render.stale(s.policy.Load()) }

// RenderState compares the config that Envoy runs with the policy in force:
// unknown, matches or differs.
func (s *Server) RenderState() string {
	s.render.mu.RLock()
	current := s.render.current
	s.render.mu.RUnlock()
	switch current {
	case "":
		return "unknown"
	case s.policy.Load().RenderHash:
		return "matches"
	}
	return "differs"
}
