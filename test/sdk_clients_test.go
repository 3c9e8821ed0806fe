package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crossdoor/crossdoor/test/sdk"
)

// sdkClient is a program that sends jobs with a vendor's library.
type sdkClient struct {
	name    string
	version string // of anthropic-version that the library asks with
	// marksBeta says that the library's beta methods add ?beta=true; newer ones do
	// not, and Claude Code does.
	marksBeta bool
	start     func(testing.TB) *exec.Cmd
}

var sdkClients = []sdkClient{
	{"go2", "2026-10-21", false, goClient},
	{"python2", "2026-10-21", false, func(testing.TB) *exec.Cmd { return pythonClient("2") }},
	{"python1", "2023-06-01", true, func(testing.TB) *exec.Cmd { return pythonClient("1") }},
}

var goClientOnce struct {
	sync.Mutex

	path string
}

// goClient builds with the race detector: the library is compiled so already
// where the whole suite runs.
func goClient(t testing.TB) *exec.Cmd {
	t.Helper()
	goClientOnce.Lock()
	defer goClientOnce.Unlock()
	if goClientOnce.path == "" {
		path := filepath.Join(filepath.Dir(crossdoorBin), "goclient")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", path, "./sdk/goclient").CombinedOutput(); err != nil {
			t.Fatalf("go build -race ./sdk/goclient: %v\n%s", err, out)
		}
		goClientOnce.path = path
	}
	return exec.Command(goClientOnce.path)
}

// pythonClient says itself how to install the library when it is missing.
func pythonClient(major string) *exec.Cmd {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	return exec.Command(python, filepath.Join("python", "client.py"), major)
}

// sdkRun sends the jobs with a client, in order, and returns what its caller saw
// of each. The library finds none of its own variables in the environment, and
// no proxy.
func sdkRun(t testing.TB, cmd *exec.Cmd, jobs []sdk.Job) map[string]sdk.Result {
	t.Helper()
	var in, out, errs bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, j := range jobs {
		if err := encoder.Encode(j); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(s), "=")
		return strings.HasPrefix(name, "ANTHROPIC_") || strings.HasSuffix(name, "_PROXY")
	}), "NO_PROXY=*")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	results := map[string]sdk.Result{}
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r sdk.Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v: %.200s", cmd.Args[0], err, lines.Bytes())
		}
		results[r.Name] = r
	}
	if len(results) != len(jobs) {
		t.Fatalf("%s: %d results of %d jobs\n%s", cmd.Args[0], len(results), len(jobs), errs.String())
	}
	return results
}

// runSDKs sends the jobs of each client, all clients at once, and returns the
// results by the job's name.
func runSDKs(t *testing.T, jobs func(sdkClient) []sdk.Job) map[string]sdk.Result {
	t.Helper()
	var mu sync.Mutex
	results := map[string]sdk.Result{}
	t.Run("clients", func(t *testing.T) {
		for _, client := range sdkClients {
			t.Run(client.name, func(t *testing.T) {
				t.Parallel()
				got := sdkRun(t, client.start(t), jobs(client))
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(results, got)
			})
		}
	})
	return results
}
