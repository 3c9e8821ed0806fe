package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/compute/metadata"
)

// cloudPlatform is the scope of every Google Cloud API.
const cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"

// GoogleADC are Google's application default credentials: the file that
// GOOGLE_APPLICATION_CREDENTIALS names (service accounts, workload identity
// federation, impersonation), gcloud's own, the metadata server.
func GoogleADC() Issuer { return googleADC{} }

type googleADC struct{}

// Fetch detects the credentials each time: files may have changed, and the
// library's own cache would give a token that a platform has just refused.
func (googleADC) Fetch(ctx context.Context) (Credential, error) {
	found, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{cloudPlatform}})
	if err != nil {
		// Whether there is a metadata server the library asks once in a process's
		// life. In a pod that is faster than its node's metadata server, that answer
		// is wrong.
		if server := metadata.NewClient(nil); foundNothing(err) && server.OnGCEWithContext(ctx) {
			return fromMetadata(ctx, server)
		}
		return Credential{}, googleReason(err)
	}
	token, err := found.Token(ctx)
	if err != nil {
		return Credential{}, googleReason(err)
	}
	// Without a project that pays, Google takes the credential's own.
	project, _ := found.QuotaProjectID(ctx)
	return Credential{Token: token.Value, UserProject: project, Expires: token.Expiry}, nil
}

// foundNothing tells a chain without any credentials from one whose file is
// broken, which must not be passed over. The library has no other sign of it.
func foundNothing(err error) bool {
	return strings.Contains(err.Error(), "could not find default credentials")
}

func fromMetadata(ctx context.Context, server *metadata.Client) (Credential, error) {
	text, err := server.GetWithContext(ctx, "instance/service-accounts/default/token?scopes="+url.QueryEscape(cloudPlatform))
	if err != nil {
		return Credential{}, googleReason(err)
	}
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return Credential{}, errors.New("google: the metadata server's answer is no token")
	}
	return Credential{Token: answer.Token, Expires: time.Now().Add(time.Duration(answer.Seconds) * time.Second)}, nil
}

// googleReason leaves out what an endpoint has answered.
func googleReason(err error) error {
	if refused := (*auth.Error)(nil); errors.As(err, &refused) && refused.Response != nil {
		return fmt.Errorf("google: the token endpoint answers %d %s", refused.Response.StatusCode, codeIn(string(refused.Body)))
	}
	if refused := (*metadata.Error)(nil); errors.As(err, &refused) {
		return fmt.Errorf("google: the metadata server answers %d", refused.Code)
	}
	return fmt.Errorf("google: %s", reason(err))
}
