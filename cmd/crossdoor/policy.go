package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/policy/config"
)

// policyFlagHelp is the same for every command that takes a policy.
const policyFlagHelp = "policy file (default $CROSSDOOR_POLICY)"

// policyPath is the flag's value or what stands for it.
func policyPath(flag string) (string, error) {
	if flag == "" {
		flag = os.Getenv("CROSSDOOR_POLICY")
	}
	if flag == "" {
		return "", usageError{errors.New("--policy: which policy file? (CROSSDOOR_POLICY stands for it)")}
	}
	return flag, nil
}

// loadPolicy reads a policy file. What is wrong with it is a usageError.
func loadPolicy(path string) (*config.Policy, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("policy: %w", err)}
	}
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(io.LimitReader(in, config.MaxFileBytes+1))
	if err != nil {
		return nil, usageError{fmt.Errorf("policy %s: %w", path, err)}
	}
	p, err := config.Load(path, data, extproc.Catalog())
	if err != nil {
		return nil, usageError{err}
	}
	return p, nil
}
