package credential

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bare takes away everything of this machine that a chain of credentials looks
// at, and gives a home without any.
func bare(t *testing.T) (home string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		for _, cloud := range []string{"AWS_", "AZURE_", "GOOGLE_", "GCE_", "CLOUDSDK_", "IDENTITY_", "IMDS_", "MSI_"} {
			if strings.HasPrefix(name, cloud) {
				unset(t, name)
			}
		}
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(home, ".aws", "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(home, ".aws", "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return home
}

// unset takes a variable away for the length of a test.
func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "")
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

// fake serves a cloud's endpoint on loopback.
func fake(t *testing.T, serve http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server.URL
}

// written is a file with this text.
func written(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gives checks what an issuer fetches: want as it must be but for Expires, which
// is about lifetime from now; 0 is never.
func gives(t *testing.T, issuer Issuer, want Credential, lifetime time.Duration) {
	t.Helper()
	got, err := issuer.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	switch left := time.Until(got.Expires); {
	case lifetime == 0 && !got.Expires.IsZero():
		t.Errorf("it ends at %v", got.Expires)
	case lifetime != 0 && (left < lifetime-time.Minute || left > lifetime+time.Minute):
		t.Errorf("it ends in %v; want %v", left, lifetime)
	}
	if want.Expires = got.Expires; got != want {
		t.Errorf("got %q %q, project %q; want %q %q, project %q",
			got.Token, [3]string{got.AWS.AccessKeyID, got.AWS.SecretAccessKey, got.AWS.SessionToken}, got.UserProject,
			want.Token, [3]string{want.AWS.AccessKeyID, want.AWS.SecretAccessKey, want.AWS.SessionToken}, want.UserProject)
	}
}

// fails checks that an issuer has no credential, and what its error says.
func fails(t *testing.T, issuer Issuer, want string) {
	t.Helper()
	got, err := issuer.Fetch(t.Context())
	if err == nil || !got.empty() {
		t.Fatalf("it gives a credential, and %v", err)
	}
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q; want %q in it, on one line, without a secret", err, want)
	}
}
