package main

// usageError is a wrong command line or a wrong policy: exit code 2 (contract,
// section "Commands"). Every other error is exit code 1.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

// Unwrap gives what is wrong, for example the policy's errors.
func (e usageError) Unwrap() error { return e.err }
