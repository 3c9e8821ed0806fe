package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// goodPolicy is what every bad policy differs from in one place.
const goodPolicy = `version: 1
limits: {body: 32MiB}
targets:
  first:
    platform: anthropic
    keys: [{env: KEY_FIRST}]
  second:
    platform: claude-on-aws
    region: us-east-1
    workspace: wrkspc_1
    auth: key
    keys: [{env: KEY_SECOND}]
routes:
  - name: main
    models: ["claude-*"]
    chain: [first, second]
breaker: {failures: 5}
`

// badPolicies: `old` becomes `new`, in which § is where the error must point and
// is removed. says is in the message, path is the member's.
var badPolicies = []struct{ name, old, new, path, says string }{
	{"unknown member", "breaker: {failures: 5}", "§braker: {failures: 5}", "braker", `"breaker"`},
	{"unknown member of a target", "    region: us-east-1", "    §regin: us-east-1\n    region: us-east-1", "targets.second.regin", `"region"`},
	{"unknown member of a route", `    models: ["claude-*"]`, "    §modles: [x]\n    models: [\"claude-*\"]", "routes[0].modles", `"models"`},
	{"unknown member of limits", "limits: {body: 32MiB}", "limits: {§bdy: 32MiB}", "limits.bdy", `"body"`},
	{"unknown target", "chain: [first, second]", "chain: [first, §secnd]", "routes[0].chain[1]", `"second"`},
	{"unknown platform", "platform: anthropic", "platform: §antropic", "targets.first.platform", `"anthropic"`},
	{"unknown kind", "    chain: [first, second]", "    chain: [first, second]\n    actions: {§overloded: stop}", "routes[0].actions.overloded", `"overloaded"`},
	{"unknown action", "    chain: [first, second]", "    chain: [first, second]\n    actions: {overloaded: §faillover}", "routes[0].actions.overloaded", `"failover"`},
	{"size without unit", "limits: {body: 32MiB}", "limits: {body: §32 lots}", "limits.body", "size"},
	{"negative size", "limits: {body: 32MiB}", "limits: {body: §-1}", "limits.body", ""},
	{"duration", "breaker: {failures: 5}", "breaker: {window: §15}", "breaker.window", ""},
	{"negative duration", "breaker: {failures: 5}", "breaker: {window: §-15s}", "breaker.window", ""},
	{"zero failures", "breaker: {failures: 5}", "breaker: {failures: §0}", "breaker.failures", ""},
	{"wrong type", "breaker: {failures: 5}", "breaker: {failures: §many}", "breaker.failures", ""},
	{"list for a map", "limits: {body: 32MiB}", "limits: §[1]", "limits", ""},
	{"version", "version: 1", "version: §2", "version", ""},
	{"target name", "  first:\n", "  §First_One:\n", "targets", ""},
	{"plain url without plaintext", "    platform: anthropic", "    platform: anthropic\n    url: §http://127.0.0.1:9", "targets.first.url", "plaintext"},
	{"url with a path", "    platform: anthropic", "    platform: anthropic\n    url: §https://api.anthropic.com/v1", "targets.first.url", ""},
	{"url that is none", "    platform: anthropic", "    platform: anthropic\n    url: §api.anthropic.com", "targets.first.url", ""},
	{"password in the policy", "keys: [{env: KEY_FIRST}]", "keys: [§sk-ant-api03-abc]", "targets.first.keys[0]", ""},
	{"empty chain", "chain: [first, second]", "chain: §[]", "routes[0].chain", ""},
	{"route twice", "breaker: {failures: 5}", "  - name: §main\n    models: [x]\n    chain: [first]\nbreaker: {failures: 5}", "routes[1].name", `"main"`},
	{"hold above first_token", "    chain: [first, second]", "    chain: [first, second]\n    timeouts: {first_token: 10s, hold: §11s}", "routes[0].timeouts.hold", "first_token"},
	{"total not above attempt", "    chain: [first, second]", "    chain: [first, second]\n    timeouts: {attempt: 60s, total: §60s}", "routes[0].timeouts.total", "attempt"},
	{"idle below first_token", "    chain: [first, second]", "    chain: [first, second]\n    timeouts: {first_token: 60s, idle: §30s}", "routes[0].timeouts.idle", "first_token"},
	{"not supported yet: order", "    chain: [first, second]", "    chain: [first, second]\n    §order: weighted", "routes[0].order", "not supported yet"},
	{"not supported yet: platform", "platform: anthropic", "platform: §vllm", "targets.first.platform", "not supported yet"},
	{"not supported yet: state", "breaker: {failures: 5}", "§state: {redis: {env: R}}", "state", "not supported yet"},
	{"not supported yet: budget", "breaker: {failures: 5}", "§budget: {retry_share: 0.2}", "budget", "not supported yet"},
	{"auth of another platform", "auth: key", "auth: §adc", "targets.second.auth", "sigv4"},
	{"passthrough mixed with keys", "keys: [{env: KEY_FIRST}]", "keys: [passthrough]", "routes[0].chain", "authenticated"},
	{"missing workspace", "  second:\n    platform: claude-on-aws\n    region: us-east-1\n    workspace: wrkspc_1\n", "  §second:\n    platform: claude-on-aws\n    region: us-east-1\n", "targets.second", "workspace"},
	{"missing models", "    models: [\"claude-*\"]\n", "", "routes[0]", "models"},
	{"not YAML", "limits: {body: 32MiB}", "limits: {body: 32MiB", "", ""},
	{"member twice", "limits: {body: 32MiB}", "limits: {body: 32MiB}\n§limits: {body: 1MiB}", "limits", ""},
}

var errorLine = regexp.MustCompile(`^(.*\.yaml):(\d+):(\d+): (?:([^ ]*): )?(.+)$`)

func TestBadPolicies(t *testing.T) {
	for _, c := range badPolicies {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(goodPolicy, c.old) {
				t.Fatalf("the good policy has no %q", c.old)
			}
			text := strings.Replace(goodPolicy, c.old, c.new, 1)
			line, col := 0, 0
			if i := strings.Index(text, "§"); i >= 0 {
				line, col = 1+strings.Count(text[:i], "\n"), i-strings.LastIndex(text[:i], "\n")
				text = strings.Replace(text, "§", "", 1)
			}
			out, code := check(t, text)
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if line == 0 {
				if c.says != "" && !strings.Contains(out, c.says) {
					t.Errorf("no %q in\n%s", c.says, out)
				}
				return
			}
			if !names(out, line, col, c.path, c.says) {
				t.Errorf("no line for %d:%d %s saying %q in\n%s", line, col, c.path, c.says, out)
			}
		})
	}
	t.Run("the good one", func(t *testing.T) {
		if out, code := check(t, goodPolicy); code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("all at once", func(t *testing.T) {
		text := strings.NewReplacer("failures: 5", "failures: 0", "platform: anthropic", "platform: antropic", "[first, second]", "[first, secnd]").Replace(goodPolicy)
		out, code := check(t, text)
		for _, path := range []string{"breaker.failures", "targets.first.platform", "routes[0].chain[1]"} {
			if !strings.Contains(out, ": "+path+": ") {
				t.Errorf("no line for %s in\n%s", path, out)
			}
		}
		if code != 2 {
			t.Errorf("exit code %d", code)
		}
	})
}

// names: a line of out is about this place.
func names(out string, line, col int, path, says string) bool {
	for l := range strings.SplitSeq(out, "\n") {
		m := errorLine.FindStringSubmatch(l)
		if m != nil && m[2] == strconv.Itoa(line) && m[3] == strconv.Itoa(col) && strings.HasPrefix(m[4], path) && strings.Contains(m[5], says) {
			return true
		}
	}
	return false
}

// check runs `crossdoor check` on a policy.
func check(t *testing.T, text string) (string, int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crossdoor.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := startProcess("crossdoor check", []string{"KEY_FIRST=a", "KEY_SECOND=b"}, crossdoorBin, "check", "--policy", path)
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	return p.out.String(), p.cmd.ProcessState.ExitCode()
}

// TestBadPolicyStopsEveryCommand: serve and render refuse it the same way.
func TestBadPolicyStopsEveryCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crossdoor.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(goodPolicy, "failures: 5", "failures: 0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve", "--policy", path, "--grpc", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
		{"render", "--policy", path, "--for", "envoy", "--out", t.TempDir()},
	} {
		t.Run(args[0], func(t *testing.T) {
			p, err := startProcess(args[0], nil, crossdoorBin, args...)
			if err != nil {
				t.Fatal(err)
			}
			<-p.done
			if code := p.cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(p.out.String(), "breaker.failures") {
				t.Errorf("exit code %d: %s", code, p.out)
			}
		})
	}
}
