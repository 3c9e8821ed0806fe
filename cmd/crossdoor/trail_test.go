package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/internal/operate"
	"github.com/crossdoor/crossdoor/internal/trail"
)

// Two records: the second one failed over.
func trailRecords() []*trail.Record {
	return []*trail.Record{
		{
			Time: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), ID: "01A", Route: "chat", Model: "claude-haiku-4-5",
			Status: 200, Outcome: trail.OutcomeServed, ServedBy: "anthropic", MS: 40,
			Attempts: []trail.Attempt{{N: 1, Target: "anthropic", Outcome: "ok", MS: 40}},
		},
		{
			Time: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), ID: "01B", Route: "batch", Model: "claude-haiku-4-5",
			Status: 200, Outcome: trail.OutcomeFailedOver, ServedBy: "foundry", MS: 55, AddedMS: 12,
			Attempts: []trail.Attempt{
				{N: 1, Target: "anthropic", Outcome: "overloaded", MS: 12},
				{N: 2, Target: "foundry", Outcome: "ok", MS: 43, UpstreamRequestID: "req_1"},
			},
		},
	}
}

func trailLines(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, r := range trailRecords() {
		line, err := trail.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// adminAddress is a service with the two records in memory.
func adminAddress(t *testing.T) string {
	t.Helper()
	sink := trail.NewSink(10, nil)
	for _, r := range trailRecords() {
		sink.Add(r)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := operate.NewServer(operate.AdminHandler(operate.Options{
		Ready: func() operate.Ready { return operate.Ready{} }, Metrics: http.NotFoundHandler(), Recent: sink.Recent,
	}), nil)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return l.Addr().String()
}

func policyWith(t *testing.T, trailMember string) string {
	t.Helper()
	return written(t, "crossdoor.yaml", `version: 1
targets:
  anthropic:
    platform: anthropic
    keys: [{env: ANTHROPIC_API_KEY}]
routes:
  - name: chat
    models: ["claude-*"]
    chain: [anthropic]
`+trailMember)
}

func runTrail(in string, args ...string) (stdout, stderr string, err error) {
	var out, side bytes.Buffer
	c := trailCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&side)
	c.SetArgs(args)
	err = c.Execute()
	return out.String(), side.String(), err
}

const (
	tableHead = "TIME                      ID   ROUTE  MODEL             OUTCOME      STATUS  SERVED BY  MS  ADDED  WHAT HAPPENED\n"
	tableMove = "2026-11-30T09:00:00.000Z  01B  batch  claude-haiku-4-5  failed_over     200  foundry    55     12  anthropic overloaded 12ms, foundry ok 43ms\n"
)

func TestTrailCommand(t *testing.T) {
	lines := trailLines(t)
	file := written(t, "trail.jsonl", lines)
	policy := policyWith(t, "trail: {file: "+file+"}\n")
	admin := adminAddress(t)
	for _, tt := range []struct {
		name, in, env string
		args          []string
		want, stderr  string
	}{
		{name: "table of a file", args: []string{"--file", file, "--failed-over"}, want: tableHead + tableMove},
		{name: "the service's memory", args: []string{"--admin", admin, "--failed-over"}, want: tableHead + tableMove},
		{name: "a policy's file", args: []string{"--policy", policy, "--target", "foundry"}, want: tableHead + tableMove},
		{name: "the environment's policy", env: policy, args: []string{"--id", "req_1"}, want: tableHead + tableMove},
		{name: "a flag beats the environment", env: policy, args: []string{"--file", "-"}, stderr: "crossdoor: no record matches\n"},
		{name: "json", args: []string{"--file", file, "--format", "json"}, want: lines},
		{name: "json of the service", args: []string{"--admin", admin, "--format", "json"}, want: lines},
		{name: "standard input", in: lines, args: []string{"--file", "-", "--outcome", "failed_over"}, want: tableHead + tableMove},
		{name: "since", in: lines, args: []string{"--file", "-", "--since", "2026-11-30T08:30:00Z"}, want: tableHead + tableMove},
		{name: "nothing matches", in: lines, args: []string{"--file", "-", "--route", "none"}, stderr: "crossdoor: no record matches\n"},
		{
			name: "bad lines are told", in: "INFO hello\n" + lines + `{"time":"2026-`, args: []string{"--file", "-", "--route", "batch"},
			want: tableHead + tableMove, stderr: "crossdoor: passed over, being no trail records: 2 line(s)\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CROSSDOOR_POLICY", tt.env)
			stdout, stderr, err := runTrail(tt.in, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if stdout != tt.want || stderr != tt.stderr {
				t.Errorf("got\n%swant\n%sbeside: %q, want %q", stdout, tt.want, stderr, tt.stderr)
			}
		})
	}
}

func TestTrailCommandErrors(t *testing.T) {
	noFile := policyWith(t, "")
	bad := policyWith(t, "trail: {fil: x}\n")
	for _, tt := range []struct {
		name, env string
		args      []string
		usage     bool // exit code 2
		want      string
	}{
		{name: "two sources", args: []string{"--file", "a", "--policy", "b"}, usage: true, want: "give one of them"},
		{name: "no path", args: []string{"--file", ""}, usage: true, want: "need a path"},
		{name: "since", args: []string{"--file", "-", "--since", "tomorrow"}, usage: true, want: `--since "tomorrow"`},
		{name: "outcome", args: []string{"--file", "-", "--outcome", "ok"}, usage: true, want: `--outcome "ok"`},
		{name: "format", args: []string{"--file", "-", "--format", "xml"}, usage: true, want: `--format "xml"`},
		{name: "unknown flag", args: []string{"--rout", "x"}, usage: true, want: "--rout"},
		{name: "argument", args: []string{"all"}, usage: true, want: `unexpected "all"`},
		{name: "address", args: []string{"--admin", "9003"}, usage: true, want: "HOST:PORT"},
		{name: "no policy", args: []string{"--policy", "/nonexistent.yaml"}, usage: true, want: "/nonexistent.yaml"},
		{name: "a policy with an error", args: []string{"--policy", bad}, usage: true, want: bad + ":10:"},
		{name: "the environment's policy with an error", env: bad, usage: true, want: bad + ":10:"},
		{name: "a policy without a file", args: []string{"--policy", noFile}, want: "no trail.file"},
		{name: "no such file", args: []string{"--file", "/nonexistent.jsonl"}, want: "/nonexistent.jsonl is not there"},
		{name: "a directory", args: []string{"--file", "/"}, want: "trail file"},
		{name: "nobody there", args: []string{"--admin", "unix:/nonexistent/s"}, want: "nobody listens"},
		{name: "summary", args: []string{"summary"}, usage: true, want: "not supported yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CROSSDOOR_POLICY", tt.env)
			_, _, err := runTrail("", tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q in it", err, tt.want)
			}
			var usage usageError
			if got := errors.As(err, &usage); got != tt.usage {
				t.Errorf("usage error: %v, want %v: %v", got, tt.usage, err)
			}
		})
	}
}

func TestTrailAsksTheServiceWhenThePolicyHasNoFile(t *testing.T) {
	t.Setenv("CROSSDOOR_POLICY", policyWith(t, ""))
	f := trailFlags{admin: "127.0.0.1:9003"}
	path, err := f.source(trailCommand())
	if path != "" || err != nil {
		t.Errorf("got %q, %v; want the running service", path, err)
	}
}

func TestTrailWithoutColoursWhereNobodyLooks(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, w := range map[string]io.Writer{"buffer": &bytes.Buffer{}, "file": file} {
		if styleOf(w) != trail.Plain {
			t.Errorf("%s: colours", name)
		}
	}
}
