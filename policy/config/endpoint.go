package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// endpoint is where the target listens, from url or the platform.
func (c *compiler) endpoint(path string, f FileTarget, p front) Endpoint {
	at, plain, ca := join(path, "url"), join(path, "plaintext"), join(path, "ca_file")
	if !c.ok(at, plain, join(path, "region"), join(path, "resource")) {
		return Endpoint{}
	}
	text := p.url(f)
	if c.has(at) {
		text = f.URL
	}
	e, problem := parseEndpoint(text)
	switch {
	case problem != "":
		c.fail(at, "%s", problem)
	case e.TLS && f.Plaintext:
		c.fail(plain, "plaintext is for http:// urls; this target is reached by https://")
	case !e.TLS && !f.Plaintext:
		c.fail(at, "http:// sends keys and prompts unencrypted: write https://, or plaintext: true inside a mesh")
	case !e.TLS && f.CAFile != "":
		c.fail(ca, "has no meaning with plaintext: true: there is no certificate to check")
	}
	return e
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$`)

// parseEndpoint never repeats the url: it may hold a password.
func parseEndpoint(text string) (e Endpoint, problem string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "":
		return e, "is no url: write it as https://host or https://host:port"
	case u.Scheme != "http" && u.Scheme != "https":
		return e, "must begin with https:// (or http:// with plaintext: true)"
	case u.User != nil:
		return e, "has a user or password in it: keys belong into keys: [{env: NAME}] or keys: [{file: PATH}]"
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		return e, "must be scheme, host and port only: the platform's path is added"
	}
	e = Endpoint{Host: strings.ToLower(u.Hostname()), Port: 80, TLS: u.Scheme == "https"}
	if e.TLS {
		e.Port = 443
	}
	ip, ipErr := netip.ParseAddr(e.Host)
	if (ipErr != nil && !hostForm.MatchString(e.Host)) || len(e.Host) > 253 || ip.Zone() != "" {
		return e, "has no host that can be reached: write it as https://host or https://host:port"
	}
	if port := u.Port(); port != "" {
		e.Port, err = strconv.Atoi(port)
		if err != nil || e.Port < 1 || e.Port > 65535 {
			return e, "has a port that is not 1 to 65535"
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return e, "has a colon but no port"
	}
	return e, ""
}
