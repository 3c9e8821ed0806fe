package config

import "time"

// maxChain is the contract's length of a chain.
const maxChain = 10

func (c *compiler) route(path string, f FileRoute) {
	if !c.ok(path) {
		return
	}
	if at := join(path, "name"); c.has(at) && c.ok(at) && !nameForm.MatchString(f.Name) {
		c.fail(at, "the name of a route %s", nameRule)
	}
	r := &Route{
		Name:          f.Name,
		Models:        c.globs(join(path, "models"), f.Models),
		Headers:       c.match(join(path, "headers"), f.Headers),
		Actions:       c.actions(join(path, "actions"), f.Actions),
		Authenticated: f.Clients == "authenticated",

		SameTargetRetries: f.SameTargetRetries,
		MaxAttempts:       f.MaxAttempts,

		Timeouts:      c.timeouts(join(path, "timeouts"), f.Timeouts),
		Backoff:       Backoff{Base: time.Duration(f.Backoff.Base), Max: time.Duration(f.Backoff.Max)},
		RetryAfter:    RetryAfter{Default: time.Duration(f.RetryAfter.Default), Max: time.Duration(f.RetryAfter.Max)},
		Portability:   Portability(f.Portability),
		ClientHeaders: ClientHeaders(f.ClientHeaders),
	}
	backoff, retryAfter := join(path, "backoff"), join(path, "retry_after")
	c.fit(join(backoff, "max"), join(backoff, "base"), &r.Backoff.Max, &r.Backoff.Base)
	c.fit(join(retryAfter, "max"), join(retryAfter, "default"), &r.RetryAfter.Max, &r.RetryAfter.Default)
	r.Chain = c.chain(path, f.Chain, r)
	c.mixed(join(path, "chain"), r)
	c.resolvable(path, r)
	c.policy.Routes = append(c.policy.Routes, r)
}

func (c *compiler) chain(route string, list []FileEntry, r *Route) []*Entry {
	path := join(route, "chain")
	if c.has(path) && c.ok(path) && (len(list) == 0 || len(list) > maxChain) {
		c.fail(path, "must be 1 to %d targets, is %d", maxChain, len(list))
	}
	chain := make([]*Entry, 0, len(list))
	for i, f := range list {
		at := index(path, i)
		t := c.reference(c.at(at, "target"), f.Target)
		c.entryModel(join(at, "model"), f, t)
		e := &Entry{Target: t, Model: f.Model, Attempt: time.Duration(f.Timeouts.Attempt), FirstToken: time.Duration(f.Timeouts.FirstToken)}
		c.entryTimeouts(join(at, "timeouts"), join(route, "timeouts"), e, r.Timeouts)
		chain = append(chain, e)
	}
	return chain
}

// mixed refuses a chain in which a client that nobody has checked would be
// served with the operator's keys once its own credential failed. It points at
// the first entry that makes the mix.
func (c *compiler) mixed(path string, r *Route) {
	if r.Authenticated {
		return
	}
	passthrough, own := false, false
	for i, e := range r.Chain {
		if e.Target == nil {
			continue
		}
		for _, k := range e.Target.Keys {
			if k.Source == KeyPassthrough {
				passthrough = true
			} else {
				own = true
			}
		}
		if passthrough && own {
			c.fail(index(path, i), "the chain mixes passthrough and own keys here: write clients: authenticated if the ingress checks clients")
			return
		}
	}
}

func (c *compiler) actions(path string, list []FileAction) map[Kind]Action {
	if len(list) == 0 {
		return nil
	}
	known := make([]string, 0, len(actionable))
	for k := range actionable {
		known = append(known, string(k))
	}
	actions := map[Kind]Action{}
	for _, f := range list {
		k, at := Kind(f.Kind), join(path, f.Kind)
		if _, ok := actionable[k]; !ok {
			c.noAction(at, k, known)
			continue
		}
		actions[k] = Action(f.Action)
	}
	return actions
}

func (c *compiler) noAction(path string, k Kind, known []string) {
	switch k {
	case KindOK, KindClientGone:
		c.failKey(path, "nothing follows %s: it has no action", k)
	case KindStreamError, KindTruncated, KindIdle:
		c.failKey(path, "%s comes after the commit, when nothing can be tried again: it has no action", k)
	default:
		c.failKey(path, "unknown failure kind %s%s", show(string(k)), suggest(string(k), known))
	}
}
