// Package platform holds what differs between the platforms, as data: one file a
// platform, one row a model (models.tsv). Adding a platform is one file and one
// line in Get.
//
// All attempts of an exchange share one set of request headers, so Headers
// states every header that any platform may set: what one attempt set, another's
// list removes. A header that a new platform sets must be added to the list of
// all.
//
// models.tsv has a row for each model that exists or existed, "-" for an ID that
// is not known or not offered. The column "unconfirmed" names the columns of the
// row whose value follows the naming rule and was not seen in an official source.
// Columns of platforms that are not spoken to yet are there for the day they are.
//
// Everything is immutable after package initialisation and safe for concurrent
// use.
package platform
