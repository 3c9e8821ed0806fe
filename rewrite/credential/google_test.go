package credential

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/compute/metadata"
)

// metadataServer is that of a Compute Engine machine or a GKE node.
func metadataServer(t *testing.T) (host string) {
	t.Helper()
	url := fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("metadata-flavor", "Google")
		switch {
		case r.Header.Get("metadata-flavor") != "Google":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.URL.Query().Get("scopes") == cloudPlatform:
			fmt.Fprint(w, `{"access_token":"ya29.machine","expires_in":3599,"token_type":"Bearer"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	return strings.TrimPrefix(url, "http://")
}

func TestGoogleMetadataServer(t *testing.T) {
	bare(t)
	t.Setenv("GCE_METADATA_HOST", metadataServer(t))
	gives(t, GoogleADC(), Credential{Token: "ya29.machine"}, time.Hour)
}

// TestGoogleMetadataServerThatCameLate is of what is asked when the library has
// found no metadata server before.
func TestGoogleMetadataServerThatCameLate(t *testing.T) {
	bare(t)
	t.Setenv("GCE_METADATA_HOST", metadataServer(t))
	got, err := fromMetadata(t.Context(), metadata.NewClient(nil))
	if err != nil || got.Token != "ya29.machine" || time.Until(got.Expires) < 50*time.Minute {
		t.Errorf("got %q, ends %v, %v", got.Token, got.Expires, err)
	}
}

func TestGoogleWorkloadIdentityFederation(t *testing.T) {
	home := bare(t)
	subject := written(t, filepath.Join(home, "token"), "jwt-of-the-pod")
	endpoint := fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "application/json")
		if err := r.ParseForm(); err != nil || r.Form.Get("scope") != cloudPlatform || r.Form.Get("audience") != "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q" {
			t.Errorf("asked with %v, %v", r.Form, err)
		}
		if r.Form.Get("subject_token") != "jwt-of-the-pod" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"SECRET is not accepted"}`)
			return
		}
		fmt.Fprint(w, `{"access_token":"ya29.federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`)
	})
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", written(t, filepath.Join(home, "adc.json"), fmt.Sprintf(`{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": %q, "credential_source": {"file": %q}, "quota_project_id": "acme"
	}`, endpoint+"/v1/token", subject)))
	gives(t, GoogleADC(), Credential{Token: "ya29.federated", UserProject: "acme"}, time.Hour)

	written(t, subject, "SECRET-of-another-pod")
	fails(t, GoogleADC(), "google: credentials: status code 400: invalid_grant")
}

func TestGoogleServiceAccount(t *testing.T) {
	home := bare(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := fake(t, func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.FormValue("assertion"), ".")
		var claims struct{ Iss, Scope string }
		if raw, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)]); err != nil || json.Unmarshal(raw, &claims) != nil || claims.Iss != "crossdoor@acme.example" || claims.Scope != cloudPlatform {
			t.Errorf("asked with %+v, %v", claims, err)
		}
		w.Header().Set("content-type", "application/json")
		fmt.Fprint(w, `{"access_token":"ya29.account","token_type":"Bearer","expires_in":3600}`)
	})
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "crossdoor@acme.example", "private_key_id": "1", "token_uri": endpoint,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", written(t, filepath.Join(home, "adc.json"), string(file)))
	gives(t, GoogleADC(), Credential{Token: "ya29.account"}, time.Hour)
}

func TestGoogleFileThatIsNone(t *testing.T) {
	home := bare(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(home, "none.json"))
	fails(t, GoogleADC(), "no such file")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", written(t, filepath.Join(home, "adc.json"), `{"type":"service_account","private_key":SECRET`))
	fails(t, GoogleADC(), "google: ")
}
