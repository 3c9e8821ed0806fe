package messages

import "strings"

// exception is what an exception of AWS is in the client's schema. status 0: the
// one that it came with.
type exception struct {
	status int
	kind   string
}

// exceptions by name, without "Exception" and in lower case: streams spell them
// lowerCamel (platform reference, sections 5.7 and 11). All others go by their
// status.
var exceptions = map[string]exception{
	"accessdenied":         {kind: TypePermission},
	"internalserver":       {kind: TypeAPI},
	"modelerror":           {500, TypeAPI},
	"modelnotready":        {529, TypeOverloaded},
	"modelstreamerror":     {500, TypeAPI},
	"modeltimeout":         {kind: TypeTimeout},
	"resourcenotfound":     {kind: TypeNotFound},
	"servicequotaexceeded": {402, TypeBilling},
	"serviceunavailable":   {kind: TypeOverloaded},
	"throttling":           {429, TypeRateLimit},
	"toomanyrequests":      {429, TypeRateLimit},
	"validation":           {kind: TypeInvalidRequest},
}

func exceptionOf(name string) exception {
	return exceptions[strings.TrimSuffix(strings.ToLower(AWSType(name)), "exception")]
}

// TypeForException is the error type of an exception that AWS sends in a stream,
// in any of its spellings; api_error for one that is not known.
func TypeForException(name string) string {
	if e := exceptionOf(name); e.kind != "" {
		return e.kind
	}
	return TypeAPI
}
