package credential_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/crossdoor/crossdoor/rewrite/credential"
)

// An attempt goes out to Bedrock: the final bytes and the final path are signed.
func ExampleSign() {
	body := []byte(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":16,"messages":[]}`)
	signature, err := credential.Sign(
		credential.AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"},
		credential.Unsigned{
			Method: "POST", Authority: "bedrock-runtime.us-east-1.amazonaws.com",
			Path:        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke",
			ContentType: "application/json", PayloadHash: credential.PayloadHash(body),
			Service: "bedrock", Region: "us-east-1",
		},
		time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, value := range signature.Headers() {
		if value == "" {
			value = "(removed)"
		}
		fmt.Println(name, strings.ReplaceAll(value, ", ", "\n  "))
	}
	// Output:
	// authorization AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261201/us-east-1/bedrock/aws4_request
	//   SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date
	//   Signature=6c563050292e636791c3be3f1619f7def515695e53eebb6a97eaea00b99aaa36
	// x-amz-date 20261201T093000Z
	// x-amz-security-token (removed)
	// x-amz-content-sha256 431c0b55f3a93c50a80e2a84b7c0fd0aa70aa6a9b02ac2b5e6cdf2cfa744cfee
}
