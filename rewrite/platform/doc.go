// Package platform holds what differs between the platforms, as data: one file a
// platform, one row a model (models.tsv). Adding a platform is one file and one
// line in specs.
//
// A caller that plans asks for a platform's ID of a model (ModelID) and the path
// of a request (Spec.Path): without one of them the target cannot serve it. One
// that sends an attempt asks for its headers (Spec.Headers).
//
// All attempts of an exchange share one set of request headers, so Headers
// states every header that any platform may set: what one attempt set, another's
// list removes. A header that a new platform sets must be added to the list of
// all; Set keeps signers to that.
//
// models.tsv has a row for each model that exists or existed, "-" for an ID that
// is not known or not offered. The column "unconfirmed" names the columns of the
// row whose value follows the naming rule and was not seen in an official source.
//
// Everything is immutable after package initialisation and safe for concurrent
// use.
package platform
