package test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// rss is the resident memory of the service in bytes.
func (s *service) rss(t testing.TB) int64 {
	t.Helper()
	n, err := statusValue(s.proc.cmd.Process.Pid, "VmRSS:")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func statusValue(pid int, name string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no %s", name)
}

// ownClient has a connection that nobody else uses.
func ownClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
}
