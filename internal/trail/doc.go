// Package trail keeps the record of every exchange: what was planned, each
// attempt and what it came to, and what the client got. Records are held in
// memory (Ring) and written to a file, one JSON line each (FileWriter); Sink
// does both without ever making an exchange wait. Filter, Read and the printers
// answer, afterwards, what happened to a request.
//
// A record carries no message content and no secret: keys appear as their place
// (`env:NAME`), errors as messages.Redact leaves them. Whoever fills a Record keeps to
// that; nothing here looks into the fields again.
//
// The file is the operator's: it is appended to in whole lines, reopened when
// something else has taken its path (logrotate, a renamed file), and never
// truncated, rotated or removed from here. Bad lines in it are counted and
// passed over.
package trail
