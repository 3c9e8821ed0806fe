package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemoWithoutEnvoy: a usage error that says what to do.
func TestDemoWithoutEnvoy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "no-program")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, env string
		args      []string
		want      []string
	}{
		{"none", "", nil, []string{"make demo", "--envoy", "$ENVOY"}},
		{"flag, missing", "", []string{"--envoy", dir + "/no"}, []string{"--envoy", "no such file", "make envoy"}},
		{"variable, missing", dir + "/no", nil, []string{"$ENVOY", "no such file", "make envoy"}},
		{"a folder", dir, nil, []string{"$ENVOY", "is not a program"}},
		{"no program", "", []string{"--envoy", file}, []string{"--envoy", "is not a program"}},
		{"an argument", file, []string{"now"}, []string{`unexpected "now"`}},
		{"an unknown flag", file, []string{"--kepe"}, []string{"unknown flag: --kepe"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("ENVOY", c.env)
			root := rootCommand()
			root.SetArgs(append([]string{"demo"}, c.args...))
			err := root.ExecuteContext(context.Background())
			if _, ok := errors.AsType[usageError](err); !ok {
				t.Fatalf("%v is no usage error", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestDemoHelp(t *testing.T) {
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"demo", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Examples:", "crossdoor demo --envoy", "--keep", "Exit codes:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
