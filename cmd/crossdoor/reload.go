package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/policy"
	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/credential"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

const (
	// settle is how long the policy's folder must be quiet before it is read: an
	// editor or a ConfigMap swap changes it in several steps.
	settle = 200 * time.Millisecond
	// pollPolicy is how often it is looked at without being told.
	pollPolicy = 10 * time.Second
)

// serviceState is what /readyz tells beside the policy.
type serviceState struct {
	listening atomic.Bool
	draining  atomic.Bool
	refused   atomic.Pointer[string] // why the newest policy was not taken
}

// watchPolicy reads the policy again when its file changes and on SIGHUP. It
// watches the folder: a ConfigMap is swapped by a symbolic link beside the file.
func (s *service) watchPolicy(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	changes, failures := make(<-chan fsnotify.Event), make(<-chan error)
	if w, err := s.watchFolder(); err != nil {
		s.log.Warn("the policy's folder cannot be watched: a change is seen within "+pollPolicy.String(), "error", err)
	} else {
		defer func() { _ = w.Close() }()
		changes, failures = w.Events, w.Errors
	}
	poll := time.NewTicker(pollPolicy)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			s.reload()
		case <-changes:
			quiet.Reset(settle)
		case err := <-failures:
			// Changes may have been lost (a queue that ran over): look.
			s.log.Warn("watching the policy's folder", "error", err)
			quiet.Reset(settle)
		case <-quiet.C:
			s.reload()
		case <-poll.C:
			s.reload()
		}
	}
}

func (s *service) watchFolder() (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(filepath.Dir(s.path)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// reload takes the policy file as it is now, unless it is what is in force or
// cannot be used.
func (s *service) reload() {
	p, err := loadPolicy(s.path)
	if err != nil {
		text := err.Error()
		if old := s.state.refused.Swap(&text); old == nil || *old != text {
			s.reloads.WithLabelValues("refused").Inc()
			s.log.Error("the policy was refused, the old one stays", "errors", text)
		}
		return
	}
	s.state.refused.Store(nil)
	if p.Hash == s.server.Policy().Hash {
		return
	}
	s.keys.Use(append(keySources(p), s.stillNeeded()...))
	s.issued.Use(append(cloudSources(s.server.Policy()), cloudSources(p)...))
	s.health.Reload(p)
	s.server.Reload(p)
	s.reloads.WithLabelValues("ok").Inc()
	s.log.Info("policy loaded", "policy", p.Hash, "render_needed", s.server.Stale())
	if why := s.restartNeeded(p); why != "" {
		s.log.Warn(why)
	}
}

// restartNeeded says what of a policy this process does not follow; "" when it
// follows all of it: the trail is opened once, at the start.
func (s *service) restartNeeded(p *config.Policy) string {
	var changed []string
	if p.Trail.File != s.trail.File {
		changed = append(changed, "trail.file")
	}
	if p.Trail.Recent != s.trail.Recent {
		changed = append(changed, "trail.recent")
	}
	if len(changed) == 0 {
		return ""
	}
	return strings.Join(changed, ", ") + ": changed since the start; records go where they went until a restart"
}

// stillNeeded are the keys of the policy in force that have a value: exchanges
// that run keep that policy to their end. One without a value is not kept, so
// that /readyz names only what the next policy misses.
func (s *service) stillNeeded() []credential.Source {
	return slices.DeleteFunc(keySources(s.server.Policy()), func(src credential.Source) bool {
		_, ok := s.keys.Value(src.Place())
		return !ok
	})
}

// keyChanged clears the ejections of a key whose file has another value.
func (s *service) keyChanged(place string) {
	for _, t := range s.server.Policy().Targets {
		s.health.ResetKey(t.Name, place)
	}
	s.log.Info("key changed", "key", place)
}

func keySources(p *config.Policy) []credential.Source {
	var out []credential.Source
	for _, t := range p.Targets {
		for _, k := range t.Keys {
			src := credential.Source{}
			switch k.Source {
			case config.KeyEnv:
				src.Env = k.Name
			case config.KeyFile:
				src.File = k.Name
			case config.KeyPassthrough, config.KeyAWS, config.KeyGoogle, config.KeyEntra:
				continue
			}
			if !slices.Contains(out, src) {
				out = append(out, src)
			}
		}
	}
	return out
}

// cloudSources are the credentials of a policy that clouds issue.
func cloudSources(p *config.Policy) []credential.CloudSource {
	var out []credential.CloudSource
	for _, t := range p.Targets {
		for _, k := range t.Keys {
			src := credential.CloudSource{Place: k.Place()}
			switch k.Source {
			case config.KeyAWS:
				src.Issuer = credential.AWSDefault(t.Region)
			case config.KeyGoogle:
				src.Issuer = credential.GoogleADC()
			case config.KeyEntra:
				src.Issuer = credential.EntraDefault("")
			case config.KeyEnv, config.KeyFile, config.KeyPassthrough:
				continue
			}
			out = append(out, src)
		}
	}
	return out
}

// knownModels says which platform IDs may be labels: the built-in ones and those
// of the policy that the service started with.
func knownModels(p *config.Policy) func(string) bool {
	ids := map[string]bool{}
	for _, t := range p.Targets {
		for _, m := range platform.Models() {
			if id, ok := t.ModelID(m); ok {
				ids[id] = true
			}
		}
		for _, r := range t.Models {
			ids[r.ID] = true
		}
	}
	for _, r := range p.Routes {
		for _, m := range r.Models {
			if !strings.ContainsAny(m, "*?") {
				ids[m] = true
			}
		}
		for _, e := range r.Chain {
			if e.Model != "" {
				ids[e.Model] = true
			}
		}
	}
	return func(id string) bool { return ids[id] }
}

// opened logs and counts an ejection.
func (s *service) opened(m *extproc.Metrics) func(policy.Event) {
	return func(e policy.Event) {
		m.Opened(e)
		s.log.Warn("ejected", "scope", string(e.Scope), "target", e.Target, "model", e.Model, "key", e.Key,
			"reason", string(e.Kind), "for", e.Window.Round(time.Millisecond).String())
	}
}

// closed logs a recovery.
func (s *service) closed(e policy.Event) {
	s.log.Info("recovered", "scope", string(e.Scope), "target", e.Target, "model", e.Model, "key", e.Key)
}

// ready is what /readyz tells.
func (s *service) ready() operate.Ready {
	p := s.server.Policy()
	r := operate.Ready{Ready: true, Policy: p.Hash, Inflight: s.server.Inflight(), Render: s.server.RenderState()}
	refuse := func(reason string) { r.Ready, r.Reasons = false, append(r.Reasons, reason) }
	if !s.state.listening.Load() {
		refuse("gRPC does not listen yet")
	}
	if s.state.draining.Load() {
		refuse("draining")
	}
	if why := s.state.refused.Load(); why != nil {
		r.Reasons = append(r.Reasons, "the newest policy was refused: "+*why)
	}
	if r.Render == operate.RenderDiffers {
		r.Reasons = append(r.Reasons, "Envoy runs a config of another policy: render again")
	}
	if why := s.restartNeeded(p); why != "" {
		r.Reasons = append(r.Reasons, why)
	}
	for _, place := range append(s.keys.Missing(), s.issued.Missing()...) {
		r.Reasons = append(r.Reasons, "no value for key "+place)
	}
	r.Targets = targetStates(p, s.health.Snapshot())
	return r
}
