// Package credential holds the secrets that attempts are signed with, and signs.
// An attempt asks and never waits: keys are read when the policy is loaded, what
// clouds issue is renewed in the background, and both are kept fresh there. A
// credential that is missing or has expired is an answer, not an error.
//
//   - Static are keys from the environment and from files.
//   - Issued are tokens and AWS credentials that a cloud gives for a while; an
//     Issuer fetches them by the cloud's own library: AWSDefault, GoogleADC,
//     EntraDefault.
//   - Sign makes the headers of AWS's Signature Version 4.
//
// After an answer of the kind `credential` (401, or 403 with an expired or invalid
// token), Static.Reread and Issued.Renew look for a newer value while the request
// goes on with its next target; the changed callback tells when there is one.
//
// Values leave the package through the methods that are made for it, and none is
// logged: what holds a secret prints nothing of it, and the reasons that are
// logged are cleared of whatever looks like one.
package credential
