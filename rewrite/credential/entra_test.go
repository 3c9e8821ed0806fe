package credential

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority answers for every host: the SDK takes no authority without TLS.
type authority func(w http.ResponseWriter, r *http.Request)

func (a authority) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// entra is Microsoft Entra's token endpoint; accepts says whether a form is taken.
func entra(t *testing.T, accepts func(r *http.Request) bool) authority {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
			fmt.Fprintf(w, `{"tenant_discovery_endpoint":"https://login.example/tenant/v2.0/.well-known/openid-configuration","api-version":"1.1","metadata":[{"preferred_network":"login.example","preferred_cache":"login.example","aliases":["login.example"]}]}`)
		case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
			fmt.Fprint(w, `{"token_endpoint":"https://login.example/tenant/oauth2/v2.0/token","authorization_endpoint":"https://login.example/tenant/oauth2/v2.0/authorize","issuer":"https://login.example/tenant/v2.0"}`)
		case r.URL.Path != "/tenant/oauth2/v2.0/token":
			t.Errorf("asked for %s", r.URL.Redacted())
			w.WriteHeader(http.StatusNotFound)
		case !accepts(r):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided: SECRET.","error_codes":[7000215]}`)
		default:
			fmt.Fprint(w, `{"token_type":"Bearer","expires_in":3599,"ext_expires_in":3599,"access_token":"token-of-entra"}`)
		}
	}
}

func TestEntraClientSecret(t *testing.T) {
	bare(t)
	t.Setenv("AZURE_AUTHORITY_HOST", "https://login.example/")
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_CLIENT_SECRET", "right")
	issuer := entraDefault{scope: EntraScope, via: entra(t, func(r *http.Request) bool {
		return strings.Contains(r.FormValue("scope"), EntraScope) && r.FormValue("client_id") == "client" && r.FormValue("client_secret") == "right"
	})}
	gives(t, issuer, Credential{Token: "token-of-entra"}, time.Hour)

	t.Setenv("AZURE_CLIENT_SECRET", "SECRET")
	fails(t, issuer, "entra: the token endpoint answers 401 invalid_client AADSTS7000215")
}

func TestEntraWorkloadIdentity(t *testing.T) {
	home := bare(t)
	t.Setenv("AZURE_AUTHORITY_HOST", "https://login.example/")
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", written(t, filepath.Join(home, "token"), "jwt-of-the-pod"))
	issuer := entraDefault{scope: "https://cognitiveservices.azure.com/.default", via: entra(t, func(r *http.Request) bool {
		return strings.Contains(r.FormValue("scope"), "https://cognitiveservices.azure.com/.default") && r.FormValue("client_assertion") == "jwt-of-the-pod"
	})}
	gives(t, issuer, Credential{Token: "token-of-entra"}, time.Hour)
}

func TestEntraManagedIdentity(t *testing.T) {
	bare(t)
	t.Setenv("IDENTITY_HEADER", "of-the-app")
	t.Setenv("IDENTITY_ENDPOINT", fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "application/json")
		if r.Header.Get("x-identity-header") != "of-the-app" || r.URL.Query().Get("resource") != "https://ai.azure.com" {
			t.Errorf("asked with %v", r.URL)
		}
		fmt.Fprintf(w, `{"access_token":"token-of-the-app","expires_on":"%d","resource":"https://ai.azure.com","token_type":"Bearer"}`, time.Now().Add(24*time.Hour).Unix())
	})+"/msi/token")
	gives(t, EntraDefault(""), Credential{Token: "token-of-the-app"}, 24*time.Hour)
}

func TestEntraWithoutAnything(t *testing.T) {
	bare(t)
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
	fails(t, EntraDefault(""), "AZURE_TENANT_ID")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "none")
	fails(t, EntraDefault(""), "AZURE_TOKEN_CREDENTIALS")
}
