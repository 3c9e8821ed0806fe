package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// EntraScope is the scope that Foundry's tokens have unless something else is
// asked for. (Platform reference, section 7.)
const EntraScope = "https://ai.azure.com/.default"

// EntraDefault is Azure's default chain: a client's secret or certificate in the
// environment, workload identity, managed identity, the developers' tools.
// AZURE_TOKEN_CREDENTIALS narrows it. scope "" is EntraScope.
func EntraDefault(scope string) Issuer {
	if scope == "" {
		scope = EntraScope
	}
	return entraDefault{scope: scope}
}

type entraDefault struct {
	scope string
	via   policy.Transporter // nil is the SDK's own
}

// Fetch builds the chain each time: files may have changed, and the SDK's own
// cache would give a token that a platform has just refused.
func (e entraDefault) Fetch(ctx context.Context) (Credential, error) {
	var options azidentity.DefaultAzureCredentialOptions
	options.Transport = e.via
	chain, err := azidentity.NewDefaultAzureCredential(&options)
	if err != nil {
		return Credential{}, entraReason(err)
	}
	token, err := chain.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{e.scope}})
	if err != nil {
		return Credential{}, entraReason(err)
	}
	return Credential{Token: token.Token, Expires: token.ExpiresOn}, nil
}

// entraReason leaves out what an endpoint has answered.
func entraReason(err error) error {
	if refused := (*azidentity.AuthenticationFailedError)(nil); errors.As(err, &refused) && refused.RawResponse != nil {
		return fmt.Errorf("entra: the token endpoint answers %d %s", refused.RawResponse.StatusCode, codeIn(payload(refused.RawResponse)))
	}
	return fmt.Errorf("entra: %s", reason(err))
}

// payload is "" when the body cannot be had: the reason is shorter then.
func payload(r *http.Response) string {
	body, err := runtime.Payload(r)
	if err != nil {
		return ""
	}
	return string(body)
}
