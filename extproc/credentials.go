package extproc

import (
	"bytes"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/credential"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// has reports whether a key of ours has a value that is valid now. An attempt
// never waits for one.
func (s *Server) has(k config.Key) (ok bool) {
	switch k.Source {
	case config.KeyAWS:
		_, ok = s.issued.AWS(k.Place())
	case config.KeyGoogle, config.KeyEntra:
		_, ok = s.issued.Bearer(k.Place())
	case config.KeyEnv, config.KeyFile:
		_, ok = s.keys.Value(k.Place())
	case config.KeyPassthrough:
	}
	return ok
}

// authenticate puts the credential at k into a call to t, except a signature,
// which needs the body: sign.
func (s *Server) authenticate(call *platform.Call, t *config.Target, k config.Key, client *clientRequest) {
	switch k.Source {
	case config.KeyPassthrough:
		call.Auth, call.Credential = platform.AuthPassthrough, client.credential()
	case config.KeyAWS:
		call.Auth = platform.AuthSigned
	case config.KeyGoogle, config.KeyEntra:
		call.Auth, call.UserProject = platform.AuthToken, s.issued.UserProject(k.Place())
		call.Secret, _ = s.issued.Bearer(k.Place())
	case config.KeyEnv, config.KeyFile:
		if t.Auth == config.AuthADC { // a token in place of ADC
			call.Auth = platform.AuthToken
		}
		call.Secret, _ = s.keys.Value(k.Place())
	}
}

// sign gives the headers of a call the signature over them and the body that
// goes out with them. Where the credential has just expired nothing is set: the
// platform says so.
func (s *Server) sign(method string, headers []platform.Header, spec *platform.Spec, t *config.Target, k config.Key, body []byte) {
	creds, ok := s.issued.AWS(k.Place())
	if k.Source != config.KeyAWS || !ok {
		return
	}
	value := func(name string) string {
		for _, h := range headers {
			if h.Name == name {
				return h.Value
			}
		}
		return ""
	}
	signature, err := credential.Sign(creds, credential.Unsigned{
		Method: method, Authority: value(":authority"), Path: value(":path"), ContentType: value("content-type"),
		PayloadHash: credential.PayloadHash(body), Service: spec.SigV4, Region: t.Region,
	}, time.Now())
	if err != nil {
		s.log.Error("the request could not be signed", "target", t.Name, "error", err)
		return
	}
	for name, v := range signature.Headers() {
		platform.Set(headers, name, v)
	}
}

// renew looks for another value of a key that a platform has refused.
func (s *Server) renew(k config.Key) {
	if !s.issued.Renew(k.Place()) {
		go s.keys.Reread(k.Place())
	}
}

// secretsOf are the values that must not come back to a client when a platform
// repeats them in an error. Short ones are no credentials, and may be words.
func (s *Server) secretsOf(k config.Key) (out []string) {
	var values []string
	switch k.Source {
	case config.KeyAWS:
		creds, _ := s.issued.AWS(k.Place())
		values = []string{creds.SecretAccessKey, creds.SessionToken}
	case config.KeyGoogle, config.KeyEntra:
		token, _ := s.issued.Bearer(k.Place())
		values = []string{token}
	case config.KeyEnv, config.KeyFile:
		value, _ := s.keys.Value(k.Place())
		values = []string{value}
	case config.KeyPassthrough:
	}
	const shortest = 8
	for _, v := range values {
		if len(v) >= shortest {
			out = append(out, v)
		}
	}
	return out
}

// withoutSecrets replaces what must not be told.
func withoutSecrets(text []byte, secrets []string) []byte {
	for _, v := range secrets {
		text = bytes.ReplaceAll(text, []byte(v), []byte("[redacted]"))
	}
	return text
}
