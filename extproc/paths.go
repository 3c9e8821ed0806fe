package extproc

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// The paths that are handled (contract, section 2).
const (
	pathMessages    = "/v1/messages"
	pathCountTokens = "/v1/messages/count_tokens" //nolint:gosec // a path, no credential
	pathModels      = "/v1/models"
)

// refuse says what is wrong with a request by its headers alone, before Envoy
// buffers its body; nil when nothing is.
func (p *planSession) refuse() *reply {
	method := http.MethodPost
	switch p.client.barePath() {
	case pathMessages, pathCountTokens:
	case pathModels:
		method = http.MethodGet
	default:
		return noSuchPath()
	}
	if p.client.method != method {
		r := rejected(http.StatusMethodNotAllowed, typeInvalid, "This path takes "+method+" only.")
		r.headers = append(r.headers, field{Name: "allow", Value: method})
		return r
	}
	switch strings.ToLower(strings.TrimSpace(p.client.value("content-encoding"))) {
	case "", "identity", "gzip":
	default:
		return rejected(http.StatusUnsupportedMediaType, typeInvalid, "content-encoding: only gzip and identity are accepted.")
	}
	if n := p.client.contentLength; n > p.policy.Limits.Body {
		return tooLarge(p.policy.Limits.Body)
	} else if n > 0 && !p.s.table.fits(n) {
		return memoryFull()
	}
	return nil
}

// modelEntry is one model in the vendor's list shape.
type modelEntry struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

// modelList answers GET /v1/models from the policy: the models of its routes
// that are no globs, and for globs the built-in models that match and that some
// target of the chain can serve.
func (s *Server) modelList(p *config.Policy) *reply {
	seen := map[string]bool{}
	entries := []modelEntry{}
	add := func(model string) {
		if !seen[model] {
			seen[model] = true
			entries = append(entries, modelEntry{Type: "model", ID: model, DisplayName: model, CreatedAt: "1970-01-01T00:00:00Z"})
		}
	}
	for _, r := range p.Routes {
		for _, glob := range r.Models {
			if !strings.ContainsAny(glob, "*?") {
				add(glob)
				continue
			}
			for _, model := range platform.Models() {
				if config.Glob(glob, model) && served(r, model) {
					add(model)
				}
			}
		}
	}
	list := struct {
		Data    []modelEntry `json:"data"`
		HasMore bool         `json:"has_more"`
		FirstID *string      `json:"first_id"`
		LastID  *string      `json:"last_id"`
	}{Data: entries}
	if n := len(entries); n > 0 {
		list.FirstID, list.LastID = &entries[0].ID, &entries[n-1].ID
	}
	body, err := json.Marshal(list)
	if err != nil {
		return serviceFailed()
	}
	return &reply{status: http.StatusOK, body: body, headers: []field{{Name: "content-type", Value: "application/json"}}}
}

func served(r *config.Route, model string) bool {
	for _, e := range r.Chain {
		name := model
		if e.Model != "" {
			name = e.Model
		}
		if _, ok := e.Target.ModelID(name); ok {
			return true
		}
	}
	return false
}
