package test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crossdoor/crossdoor/envoy"
	"github.com/crossdoor/crossdoor/extproc"
	"github.com/crossdoor/crossdoor/internal/fakeplatform"
	"github.com/crossdoor/crossdoor/policy/config"
)

var update = flag.Bool("update", false, "render the examples again")

// example is one folder of examples/: which fake platform stands in for each
// target, and which credential it takes.
type example struct {
	name    string
	targets []exampleTarget
	environ []string
	client  string // the client's own key
	model   string
	// first is what the first target answers the one request with; it is served
	// by the second.
	first fakeplatform.Answer
	trail string
}

type exampleTarget struct {
	name, platform, keys, workspace string
	aws                             fakeplatform.AWSKey // signs; none, where keys are used
}

func (tg exampleTarget) rules() fakeplatform.Rules {
	r := fakeplatform.Rules{Keys: strings.Split(tg.keys, ","), Workspace: tg.workspace}
	if tg.aws.ID != "" {
		r.AWS = []fakeplatform.AWSKey{tg.aws}
	}
	return r
}

var examples = []example{
	{
		name: "two-accounts", model: "claude-sonnet-5", client: "sk-any",
		targets: []exampleTarget{
			{name: "primary", platform: fakeplatform.Anthropic, keys: "sk-a,sk-b"},
			{name: "secondary", platform: fakeplatform.Anthropic, keys: "sk-second"},
		},
		environ: []string{"ANTHROPIC_API_KEY=sk-a", "ANTHROPIC_API_KEY_B=sk-b", "ANTHROPIC_API_KEY_SECONDARY=sk-second"},
		first:   fakeplatform.Error(529, "Overloaded"), trail: "primary overloaded failover, secondary ok serve",
	},
	{
		name: "aws-and-foundry", model: "claude-sonnet-5", client: "sk-any",
		targets: []exampleTarget{
			{name: "anthropic", platform: fakeplatform.Anthropic, keys: "sk-first"},
			{name: "claude-aws", platform: fakeplatform.ClaudeOnAWS, keys: "sk-aws", workspace: "wrkspc_01"},
			{name: "foundry", platform: fakeplatform.Foundry, keys: "sk-azure"},
		},
		environ: []string{"ANTHROPIC_API_KEY=sk-first", "ANTHROPIC_AWS_API_KEY=sk-aws", "ANTHROPIC_FOUNDRY_API_KEY=sk-azure"},
		first:   fakeplatform.Error(500, "Internal server error"), trail: "anthropic server_error failover, claude-aws ok serve",
	},
	{
		name: "passthrough", model: "claude-opus-5-5", client: "sk-client",
		targets: []exampleTarget{
			{name: "anthropic", platform: fakeplatform.Anthropic, keys: "sk-client"},
			{name: "company", platform: fakeplatform.Anthropic, keys: "sk-company"},
		},
		environ: []string{"ANTHROPIC_API_KEY_COMPANY=sk-company"},
		first:   fakeplatform.Error(529, "Overloaded"), trail: "anthropic overloaded failover, company ok serve",
	},
	{
		name: "every-platform", model: "claude-sonnet-5", client: "sk-any",
		targets: []exampleTarget{
			{name: "anthropic", platform: fakeplatform.Anthropic, keys: "sk-first"},
			{name: "claude-aws", platform: fakeplatform.ClaudeOnAWS, aws: fakeplatform.AWSKey{ID: "AKIDEXAMPLE", Secret: "aws-secret"}, workspace: "wrkspc_01"},
			{name: "claude-gcp", platform: fakeplatform.ClaudeOnGoogle, workspace: "wrkspc_02"},
			{name: "foundry", platform: fakeplatform.Foundry, keys: "sk-azure"},
			{name: "bedrock-eu", platform: fakeplatform.Bedrock},
			{name: "vertex-eu", platform: fakeplatform.Vertex},
			{name: "mantle", platform: fakeplatform.Mantle},
		},
		environ: []string{
			"ANTHROPIC_API_KEY=sk-first", "ANTHROPIC_FOUNDRY_API_KEY=sk-azure", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=aws-secret",
			"AWS_EC2_METADATA_DISABLED=true", "GCE_METADATA_HOST=127.0.0.1:1",
		},
		first: fakeplatform.Error(529, "Overloaded"), trail: "anthropic overloaded failover, claude-aws ok serve",
	},
}

func (x example) dir() string    { return filepath.Join("..", "examples", x.name) }
func (x example) policy() string { return filepath.Join(x.dir(), "crossdoor.yaml") }

// TestExamplesAreListed: a new folder of examples needs a case here.
func TestExamplesAreListed(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "examples", "*", "crossdoor.yaml"))
	if err != nil || len(folders) != len(examples) {
		t.Errorf("%v (%v), want the %d that are tested", folders, err, len(examples))
	}
}

// TestExamplesAreRendered: envoy/ of each example is what its policy renders
// to, on any machine: the CA bundle is named, not looked for.
func TestExamplesAreRendered(t *testing.T) {
	for _, x := range examples {
		t.Run(x.name, func(t *testing.T) {
			text, err := os.ReadFile(x.policy())
			if err != nil {
				t.Fatal(err)
			}
			p, err := config.Load(x.policy(), text, extproc.Catalog())
			if err != nil {
				t.Fatal(err)
			}
			files, err := envoy.Render(p, envoy.Options{SystemCA: "/etc/ssl/certs/ca-certificates.crt"})
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(x.dir(), "envoy")
			if *update {
				writeFiles(t, dir, files)
			}
			for _, name := range files.Paths() {
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, files[name]) {
					t.Errorf("%s is stale (%v): run `make generate`", filepath.Join(dir, name), err)
				}
			}
			if got := countFiles(t, dir); got != len(files) {
				t.Errorf("%s has %d files, the render %d: remove what is not rendered", dir, got, len(files))
			}
		})
	}
}

func writeFiles(t *testing.T, dir string, files envoy.Files) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range files.Paths() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExamples starts each as its make target does, with fake platforms in
// place of the hosts, and sends one request that fails over.
func TestExamples(t *testing.T) {
	for _, x := range examples {
		t.Run(x.name, func(t *testing.T) { x.run(t) })
	}
}

func (x example) run(t *testing.T) {
	dir, listen, admin := t.TempDir(), freePort(t), freePort(t)
	text, err := os.ReadFile(x.policy())
	if err != nil {
		t.Fatal(err)
	}
	fakes := map[string]*fakeplatform.Server{}
	for _, tg := range x.targets {
		s, err := fakeplatform.New(tg.platform)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		s.SetRules(tg.rules())
		fakes[tg.name] = s
		text = toLoopback(t, text, tg.name, s.URL())
	}
	fakes[x.targets[0].name].Script(x.first)
	policy := filepath.Join(dir, "crossdoor.yaml")
	if err := os.WriteFile(policy, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	environ := append([]string{
		"CROSSDOOR=" + crossdoorBin, "POLICY=" + policy, "OUT=" + filepath.Join(dir, "out"), "LISTEN=" + address(listen),
		"GRPC=" + address(freePort(t)), "ADMIN=" + address(admin), fmt.Sprintf("ENVOY_ADMIN_PORT=%d", freePort(t)),
	}, x.environ...)
	p, err := startProcess("examples/run.py", environ, "python3", filepath.Join("..", "examples", "run.py"), x.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.stop(20 * time.Second) {
			t.Errorf("run.py did not end on SIGTERM")
		}
		if t.Failed() {
			t.Logf("%s", p.out)
		}
	})
	a := x.request(t, p, "http://"+address(listen))
	if got, want := a.header.Get("x-crossdoor-served-by"), x.targets[1].name; a.status != 200 || got != want {
		t.Fatalf("%d by %q, want 200 by %q: %s", a.status, got, want, a.body)
	}
	x.checkTrail(t, a.id(), address(admin))
}

// toLoopback gives a target of the policy the address of a fake platform.
func toLoopback(t *testing.T, policy []byte, target, url string) []byte {
	t.Helper()
	head := []byte("\n  " + target + ":")
	at := bytes.Index(policy, head)
	if at < 0 {
		t.Fatalf("the policy has no target %q", target)
	}
	end := at + len(head) + bytes.IndexByte(policy[at+len(head):], '\n')
	return bytes.Join([][]byte{policy[:end], fmt.Appendf(nil, "\n    url: %s\n    plaintext: true", url), policy[end:]}, nil)
}

// request sends one request as soon as it is answered by a platform.
func (x example) request(t *testing.T, p *process, url string) *answer {
	t.Helper()
	var a *answer
	eventually(t, 30*time.Second, "the example answers", func() error {
		if !p.alive() {
			t.Fatalf("run.py ended: %v", p.err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", bytes.NewReader(goodBody(x.model, false, 0)))
		if err != nil {
			return err
		}
		req.Header = http.Header{"X-Api-Key": {x.client}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}}
		began := time.Now()
		resp, err := http1.Do(req)
		if err != nil {
			return err
		}
		a = readAnswer(resp, began)
		if a.id() == "" { // Envoy does not see the service yet
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	})
	return a
}

func (x example) checkTrail(t *testing.T, id, admin string) {
	t.Helper()
	eventually(t, 2*time.Second, "the request is in the trail", func() error {
		text, err := get("http://" + admin + "/trail?id=" + id)
		if err != nil {
			return err
		}
		var r struct {
			Attempts []struct{ Target, Outcome, Decision string } `json:"attempts"`
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("%w: %q", err, text)
		}
		var got []string
		for _, at := range r.Attempts {
			got = append(got, at.Target+" "+at.Outcome+" "+at.Decision)
		}
		if s := strings.Join(got, ", "); s != x.trail {
			return fmt.Errorf("attempts %q, want %q", s, x.trail)
		}
		return nil
	})
}
