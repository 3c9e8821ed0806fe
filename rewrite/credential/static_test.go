package credential

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestStaticReads(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("CREDENTIAL_TEST", "from-env")
	t.Setenv("CREDENTIAL_SPLIT", "a\r\nb")
	cases := []struct {
		name string
		src  Source
		want string
	}{
		{"environment", Source{Env: "CREDENTIAL_TEST"}, "from-env"},
		{"unset variable", Source{Env: "CREDENTIAL_UNSET"}, ""},
		{"value that would split a header", Source{Env: "CREDENTIAL_SPLIT"}, ""},
		{"file with a newline at its end", Source{File: write("a", "key-a\n")}, "key-a"},
		{"first line of several", Source{File: write("b", "\n key-b \nnote\n")}, "key-b"},
		{"empty file", Source{File: write("c", "\n")}, ""},
		{"no such file", Source{File: filepath.Join(dir, "none")}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := NewStatic(nil)
			s.Use([]Source{c.src})
			got, ok := s.Value(c.src.Place())
			if got != c.want || ok != (c.want != "") {
				t.Errorf("Value = %q, %v; want %q", got, ok, c.want)
			}
		})
	}
}

func TestStaticFollowsAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		s := NewStatic(func(place string) {
			if place != "file:"+path {
				t.Errorf("changed %q", place)
			}
			changes.Add(1)
		})
		s.Use([]Source{{File: path}})
		ctx, stop := context.WithTimeout(t.Context(), 2*rereadEvery+1)
		defer stop()
		if err := os.WriteFile(path, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Watch(ctx)
		if got, _ := s.Value("file:" + path); got != "two" || changes.Load() != 1 {
			t.Errorf("Value = %q after %d changes; want two after 1", got, changes.Load())
		}
	})
}

func TestStaticForgetsWhatThePolicyDropped(t *testing.T) {
	t.Setenv("CREDENTIAL_TEST", "v")
	s := NewStatic(nil)
	s.Use([]Source{{Env: "CREDENTIAL_TEST"}, {Env: "CREDENTIAL_UNSET"}})
	if got := s.Missing(); len(got) != 1 || got[0] != "env:CREDENTIAL_UNSET" {
		t.Errorf("Missing = %v", got)
	}
	s.Use(nil)
	if _, ok := s.Value("env:CREDENTIAL_TEST"); ok {
		t.Error("a dropped key is still there")
	}
}
