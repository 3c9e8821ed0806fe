package config

import (
	"regexp"
	"slices"
	"strings"
)

// maxKeys bounds the keys of a target, and with them the series of the breaker
// metric.
const maxKeys = 32

// chains are what stands for the credentials that a chain of the platform's own
// gives.
var chains = map[Auth]KeySource{AuthSigV4: KeyAWS, AuthADC: KeyGoogle, AuthEntra: KeyEntra}

// credentials compiles auth and what it goes with.
func (c *compiler) credentials(path string, f FileTarget, p front) (Auth, []Key) {
	auth := c.auth(path, f, p)
	at, token := join(path, "keys"), join(path, "token")
	if auth == "" {
		return "", nil
	}
	if c.has(token) && auth != AuthADC {
		c.failKey(token, "a token goes with auth: adc, which platform %s does not have: write keys: [{env: NAME}]", f.Platform)
	}
	if auth == AuthKey {
		return auth, c.keysOf(at, path, f, p)
	}
	if c.has(at) {
		c.failKey(at, "%s", noKeys(auth))
	}
	if c.has(token) {
		return auth, c.token(token, f.Token)
	}
	return auth, []Key{{Source: chains[auth]}}
}

func noKeys(auth Auth) string {
	if auth == AuthADC {
		return "keys go with auth: key; for a token in place of adc write token: {env: NAME} or token: {file: PATH}"
	}
	return "keys go with auth: key, not with " + string(auth)
}

// auth is "" when it is not known.
func (c *compiler) auth(path string, f FileTarget, p front) Auth {
	at, keys := join(path, "auth"), join(path, "keys")
	switch {
	case !c.ok(at):
	case c.has(at) && !slices.Contains(p.auths, Auth(f.Auth)):
		words := make([]string, len(p.auths))
		for i, a := range p.auths {
			words[i] = string(a)
		}
		c.fail(at, "platform %s takes auth: %s, not %s", f.Platform, strings.Join(words, " or "), f.Auth)
	case c.has(at):
		return Auth(f.Auth)
	case (c.has(keys) || !c.ok(keys)) && slices.Contains(p.auths, AuthKey):
		return AuthKey
	default:
		return p.auths[0]
	}
	return ""
}

func (c *compiler) token(path string, f FileToken) []Key {
	if !c.ok(path) {
		return nil
	}
	if k, ok := c.place(path, f.Env, f.File, "{env: NAME} or {file: PATH}", "a token has either env or file"); ok {
		return []Key{k}
	}
	return nil
}

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// keysOf never repeats a value: people put keys where names belong.
func (c *compiler) keysOf(path, parent string, target FileTarget, p front) []Key {
	if !c.has(path) {
		if c.ok(path) {
			c.missing(parent, "keys", "%s", keysHint(p))
		}
		return nil
	}
	if !c.ok(path) {
		return nil
	}
	list := target.Keys
	if len(list) == 0 || len(list) > maxKeys {
		c.fail(path, "must be 1 to %d keys", maxKeys)
	}
	var keys []Key
	first := map[Key]int{}
	for i, f := range list {
		at := index(path, i)
		k, ok := c.key(at, f)
		if !ok {
			continue
		}
		if k.Source == KeyPassthrough && !p.passthrough {
			c.fail(at, "platform %s takes no credential of a client: write {env: NAME} or {file: PATH}", target.Platform)
		}
		if other, twice := first[k]; twice {
			c.fail(at, "is the same key as %s", index("keys", other))
		} else {
			first[k] = i
		}
		keys = append(keys, k)
	}
	return keys
}

// keysHint says what to write in place of keys that are not there.
func keysHint(p front) string {
	forms := []string{"keys: [{env: NAME}]", "keys: [{file: PATH}]"}
	if p.passthrough {
		forms = append(forms, "keys: [passthrough]")
	}
	for _, a := range p.auths {
		if a != AuthKey {
			forms = append(forms, "auth: "+string(a))
		}
	}
	last := len(forms) - 1
	return "write " + strings.Join(forms[:last], ", ") + " or " + forms[last]
}

func (c *compiler) key(path string, f FileKey) (Key, bool) {
	switch {
	case !c.ok(path):
		return Key{}, false
	case f.Passthrough != "":
		return Key{Source: KeyPassthrough}, true
	}
	return c.place(path, f.Env, f.File, "{env: NAME}, {file: PATH} or passthrough", "a key has either env or file: write two keys")
}

// place compiles where one secret is; forms is what may be written, and twice
// what is wrong with two places.
func (c *compiler) place(path, variable, name, forms, twice string) (Key, bool) {
	env, file := join(path, "env"), join(path, "file")
	switch {
	case !c.ok(env, file):
	case c.has(env) && c.has(file):
		c.fail(file, "%s", twice)
	case !c.has(env) && !c.has(file):
		if c.clean(path) {
			c.missing(path, "env", "write %s", forms)
		}
	case c.has(env) && !envForm.MatchString(variable):
		c.fail(env, "must be the name of an environment variable (letters, digits and _), never the key itself")
	case c.has(file) && name == "":
		c.fail(file, "must be the path of a file that holds the key")
	case c.has(env):
		return Key{Source: KeyEnv, Name: variable}, true
	default:
		return Key{Source: KeyFile, Name: name}, true
	}
	return Key{}, false
}
