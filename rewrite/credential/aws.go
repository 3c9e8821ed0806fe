package credential

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/smithy-go"
)

// AWSDefault is the AWS default chain: environment, shared config and profile,
// web identity, assumed roles, SSO, processes, the roles of containers and
// instances. region is that of the services it asks, where neither environment
// nor profile names one.
func AWSDefault(region string) Issuer { return awsDefault{region: region} }

type awsDefault struct{ region string }

// Fetch loads the configuration each time: files may have changed, and the SDK's
// own cache would give a credential that a platform has just refused.
func (a awsDefault) Fetch(ctx context.Context) (Credential, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion(a.region), config.WithCredentialsCacheOptions(trueExpiry))
	if err != nil {
		return Credential{}, awsReason(err)
	}
	got, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return Credential{}, awsReason(err)
	}
	c := Credential{AWS: AWSCredentials{AccessKeyID: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey, SessionToken: got.SessionToken}}
	if got.CanExpire {
		c.Expires = got.Expires
	}
	if soon := time.Now().Add(instanceGrace); got.Source == ec2rolecreds.ProviderName && c.Expires.Before(soon) {
		c.Expires = soon
	}
	return c, nil
}

// instanceGrace is how long an instance's credentials are used at least. While its
// metadata service cannot get new ones it gives the old ones, and AWS takes them
// after their end: the SDK prolongs them likewise. (EC2 User Guide, "Retrieve
// security credentials from instance metadata".)
const instanceGrace = 10 * time.Minute

// trueExpiry keeps the SDK's cache from moving the end of credentials forward:
// they are renewed ahead of need here.
func trueExpiry(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = 0 }

// awsReason leaves out what a process or an endpoint has printed.
func awsReason(err error) error {
	if process := (*processcreds.ProviderError)(nil); errors.As(err, &process) {
		return errors.New("aws: credential_process failed or printed what is no credential")
	}
	api, operation := smithy.APIError(nil), (*smithy.OperationError)(nil)
	if errors.As(err, &api) && errors.As(err, &operation) {
		return fmt.Errorf("aws: %s %s: %s", operation.Service(), operation.Operation(), api.ErrorCode())
	}
	return fmt.Errorf("aws: %s", reason(err))
}
