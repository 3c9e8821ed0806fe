package credential

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAWSFromTheEnvironment(t *testing.T) {
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	gives(t, AWSDefault("us-east-1"), Credential{AWS: AWSCredentials{"AKIDENV", "secret", "session"}}, 0)
}

func TestAWSFromAFileThatChanges(t *testing.T) {
	home := bare(t)
	t.Setenv("AWS_PROFILE", "models")
	file := filepath.Join(home, ".aws", "credentials")
	issuer := AWSDefault("us-east-1")
	for _, secret := range []string{"one", "two"} {
		written(t, file, "[models]\naws_access_key_id = AKIDFILE\naws_secret_access_key = "+secret+"\n")
		gives(t, issuer, Credential{AWS: AWSCredentials{"AKIDFILE", secret, ""}}, 0)
	}
}

// sts answers one operation as AWS STS does.
func sts(t *testing.T, operation string, accepts func(*http.Request) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/xml")
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != operation {
			t.Errorf("asked for %q, %v", r.Form.Get("Action"), err)
		}
		if !accepts(r) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>SECRET is not accepted</Message></Error><RequestId>1</RequestId></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials>`+
			`<AccessKeyId>ASIASTS</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration>`+
			`</Credentials></%[1]sResult></%[1]sResponse>`, operation, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
}

func TestAWSWebIdentity(t *testing.T) {
	home := bare(t)
	token := written(t, filepath.Join(home, "token"), "jwt-of-the-pod")
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/models")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ENDPOINT_URL_STS", fake(t, sts(t, "AssumeRoleWithWebIdentity", func(r *http.Request) bool {
		return r.Form.Get("WebIdentityToken") == "jwt-of-the-pod" && r.Form.Get("RoleArn") == "arn:aws:iam::123456789012:role/models"
	})))
	gives(t, AWSDefault("eu-west-1"), Credential{AWS: AWSCredentials{"ASIASTS", "secret", "session"}}, time.Hour)

	written(t, token, "SECRET-of-another-pod")
	fails(t, AWSDefault("eu-west-1"), "aws: STS AssumeRoleWithWebIdentity: InvalidIdentityToken")
}

func TestAWSAssumedRole(t *testing.T) {
	home := bare(t)
	written(t, filepath.Join(home, ".aws", "config"), strings.Join([]string{
		"[profile models]", "role_arn = arn:aws:iam::123456789012:role/models", "source_profile = base", "region = eu-central-1",
		"[profile base]", "aws_access_key_id = AKIDBASE", "aws_secret_access_key = secret", "",
	}, "\n"))
	t.Setenv("AWS_PROFILE", "models")
	t.Setenv("AWS_ENDPOINT_URL_STS", fake(t, sts(t, "AssumeRole", func(r *http.Request) bool {
		return strings.Contains(r.Header.Get("authorization"), "Credential=AKIDBASE/") &&
			strings.Contains(r.Header.Get("authorization"), "/eu-central-1/sts/")
	})))
	gives(t, AWSDefault("us-east-1"), Credential{AWS: AWSCredentials{"ASIASTS", "secret", "session"}}, time.Hour)
}

func TestAWSContainer(t *testing.T) {
	bare(t)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-the-pod")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", fake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("authorization") != "of-the-pod" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":"ASIAPOD","SecretAccessKey":"secret","Token":"session","Expiration":%q}`, time.Now().Add(6*time.Hour).UTC().Format(time.RFC3339))
	})+"/v1/credentials")
	gives(t, AWSDefault("us-east-1"), Credential{AWS: AWSCredentials{"ASIAPOD", "secret", "session"}}, 6*time.Hour)
}

// TestAWSInstanceRole is of a credential for six hours, which the SDK takes for
// one hour at most, and of one that has ended while AWS has no other.
func TestAWSInstanceRole(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{6 * time.Hour: time.Hour, -time.Minute: instanceGrace} {
		t.Run(lifetime.String(), func(t *testing.T) { instanceRole(t, lifetime, want) })
	}
}

func instanceRole(t *testing.T, lifetime, want time.Duration) {
	t.Helper()
	bare(t)
	unset(t, "AWS_EC2_METADATA_DISABLED")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			w.Header().Set("x-aws-ec2-metadata-token-ttl-seconds", "21600")
			fmt.Fprint(w, "session-of-imds")
		case r.Header.Get("x-aws-ec2-metadata-token") != "session-of-imds":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/models"):
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"ASIAROLE","SecretAccessKey":"secret","Token":"session","Expiration":%q}`, time.Now().Add(lifetime).UTC().Format(time.RFC3339))
		case strings.Contains(r.URL.Path, "/iam/security-credentials"):
			fmt.Fprint(w, "models")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	gives(t, AWSDefault("us-east-1"), Credential{AWS: AWSCredentials{"ASIAROLE", "secret", "session"}}, want)
}

func TestAWSProcessIsNotQuoted(t *testing.T) {
	home := bare(t)
	written(t, filepath.Join(home, ".aws", "config"), "[default]\ncredential_process = echo SECRET\n")
	fails(t, AWSDefault("us-east-1"), "credential_process")
}

func TestAWSWithoutAnything(t *testing.T) {
	bare(t)
	fails(t, AWSDefault("us-east-1"), "aws: ")
}
