// Package operate is how people and machines look into a running service: the
// admin HTTP server (`/healthz`, `/readyz`, `/metrics`, `/trail`), the smaller
// one behind `--metrics` that names nobody, the client that commands use, and
// the rules about which addresses the service may listen on.
//
// What may be seen here names targets, routes and clients. Hence an admin
// address that others can dial needs a token and TLS (CheckAddress), a loopback
// one refuses what comes through a foreign host name (a page in somebody's
// browser), and probes without a token learn only whether the service is ready.
package operate
