package envoy_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossdoor/crossdoor/envoy"
	"github.com/crossdoor/crossdoor/policy/config"
)

var update = flag.Bool("update", false, "write the golden files")

// options are fixed for goldens: nothing depends on the machine.
func options(name string) envoy.Options {
	o := envoy.Options{SystemCA: "/etc/ssl/certs/ca-certificates.crt"}
	if name == "failover" {
		o.Services = []envoy.Service{{Host: "10.0.0.1", Port: 9002}, {Host: "fd00::2", Port: 9002}, {Path: "/run/crossdoor/grpc.sock"}}
		o.Listen, o.AdminPort = "[::]:8080", 9902
	}
	if name == "mtls" {
		o.Services = []envoy.Service{{Host: "10.0.0.1", Port: 9002}, {Host: "10.0.0.2", Port: 9002}}
		o.ServiceTLS = envoy.ServiceTLS{CA: "/etc/crossdoor/ca.pem", Cert: "/etc/crossdoor/envoy.pem", Key: "/etc/crossdoor/envoy.key"}
	}
	if name == "direct" {
		o.Services = []envoy.Service{{Host: "crossdoor.llm.svc", Port: 9002}}
	}
	return o
}

func TestGolden(t *testing.T) {
	for name, p := range policies() {
		t.Run(name, func(t *testing.T) {
			files, err := envoy.Render(p, options(name))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join("testdata", name)
			if *update {
				write(t, dir, files)
			}
			for _, path := range files.Paths() {
				want, err := os.ReadFile(filepath.Join(dir, path))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(files[path])); diff != "" {
					t.Errorf("%s (-golden +rendered; -update rewrites):\n%s", path, diff)
				}
			}
		})
	}
}

func write(t *testing.T, dir string, files envoy.Files) {
	t.Helper()
	for path, text := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	first, err := envoy.Render(failoverPolicy(), options("failover"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := envoy.Render(failoverPolicy(), options("failover"))
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(first, second, bytes.Equal) {
		t.Error("two renders of one policy differ")
	}
}

func TestRenderVersions(t *testing.T) {
	for _, c := range []struct{ version, want string }{
		{"", ""}, {"1.37", ""}, {"1.38.3", ""}, {"1.39", ""}, {"1.40.0", ""},
		{"1.36", "too old: an answer is judged by a filter that is put in by a matcher on the response"},
		{"1.41", "was not tried yet: the newest is 1.40"},
		{"latest", "want one of 1.37, 1.38, 1.39, 1.40"},
		{"2.1", "want one of"},
	} {
		t.Run("version "+c.version, func(t *testing.T) {
			o := options("one-target")
			o.Version = c.version
			_, err := envoy.Render(onePolicy(), o)
			wantError(t, err, c.want)
		})
	}
}

func TestRenderRefusesOptions(t *testing.T) {
	for name, c := range map[string]struct {
		options envoy.Options
		want    string
	}{
		"listen without port":  {envoy.Options{Listen: "127.0.0.1"}, `listen address "127.0.0.1": not an address with a port`},
		"listen without host":  {envoy.Options{Listen: ":8080"}, "no host before the port"},
		"listen on a name":     {envoy.Options{Listen: "localhost:80"}, "Envoy binds to IP addresses"},
		"listen port too high": {envoy.Options{Listen: "127.0.0.1:70000"}, "port 70000 is not between 1 and 65535"},
		"admin port":           {envoy.Options{AdminPort: -1}, "admin port: port -1"},
		"service port":         {envoy.Options{Services: []envoy.Service{{Host: "10.0.0.1"}}}, "service 10.0.0.1: port 0"},
		"mTLS without a key":   {envoy.Options{ServiceTLS: envoy.ServiceTLS{CA: "a", Cert: "b"}}, "service-key is missing"},
		"mTLS without a CA":    {envoy.Options{ServiceTLS: envoy.ServiceTLS{Cert: "b", Key: "c"}}, "service-ca is missing"},
		"only a name":          {envoy.Options{ServiceTLS: envoy.ServiceTLS{Name: "svc"}}, "service-ca, service-cert and service-key go together"},
		"mTLS and a socket":    {envoy.Options{Services: []envoy.Service{{Path: "/s"}}, ServiceTLS: envoy.ServiceTLS{CA: "a", Cert: "b", Key: "c"}}, "a socket has no TLS"},
		"name and socket":      {envoy.Options{Services: []envoy.Service{{Host: "svc", Port: 1}, {Path: "/s"}}}, "stands beside a host name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := envoy.Render(onePolicy(), c.options)
			wantError(t, err, c.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error is %v, want %q in it", err, want)
	}
}

func TestParseServices(t *testing.T) {
	for text, want := range map[string][]envoy.Service{
		"127.0.0.1:9002":                      {{Host: "127.0.0.1", Port: 9002}},
		"[::1]:9002, svc:80":                  {{Host: "::1", Port: 9002}, {Host: "svc", Port: 80}},
		"unix:/run/c.sock,unix:///run/d.sock": {{Path: "/run/c.sock"}, {Path: "/run/d.sock"}},
		"":                                    nil, "svc": nil, "unix:": nil, "a:1,": nil, "a:x": nil, "a:0": nil,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := envoy.ParseServices(text)
			if (err == nil) != (want != nil) || !slices.Equal(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
}

// A text that a policy or an option brings in must stay one scalar.
func TestRenderQuotes(t *testing.T) {
	p := onePolicy()
	p.Targets[0].Endpoint.TLS = true
	p.Targets[0].CAFile = "/tmp/a b: \"c\" # d\n- e"
	p.RenderHash = "123456789012" // digits alone are a number to YAML
	o := options("one-target")
	o.DynamicDir = "/etc/envoy: {x"
	if _, err := envoy.Render(p, o); err != nil {
		t.Error(err)
	}
}

// The certificate of the service is for its host, or for the name that is given.
func TestRenderServiceTLS(t *testing.T) {
	ip, host := envoy.Service{Host: "10.0.0.1", Port: 9002}, envoy.Service{Host: "crossdoor.llm.svc", Port: 9002}
	for name, c := range map[string]struct {
		services   []envoy.Service
		name       string
		want, lack []string
	}{
		"an IP address":      {[]envoy.Service{ip}, "", []string{"{san_type: IP_ADDRESS, matcher: {exact: \"10.0.0.1\"}}"}, []string{"sni:"}},
		"a host":             {[]envoy.Service{host}, "", []string{"sni: crossdoor.llm.svc", "{san_type: DNS, matcher: {exact: crossdoor.llm.svc}}"}, nil},
		"several":            {[]envoy.Service{ip, host, ip}, "", []string{"IP_ADDRESS, matcher: {exact: \"10.0.0.1\"}", "DNS, matcher: {exact: crossdoor.llm.svc}"}, []string{"sni:"}},
		"a name for several": {[]envoy.Service{ip, host}, "crossdoor", []string{"sni: crossdoor", "{san_type: DNS, matcher: {exact: crossdoor}}"}, []string{"IP_ADDRESS"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := envoy.Options{Services: c.services, ServiceTLS: envoy.ServiceTLS{CA: "/a b", Cert: "c.pem", Key: "k.pem", Name: c.name}}
			files, err := envoy.Render(onePolicy(), o)
			if err != nil {
				t.Fatal(err)
			}
			text := string(files["envoy.yaml"])
			for _, want := range append(c.want, `trusted_ca: {filename: "/a b"}`, "alpn_protocols: [h2]") {
				if strings.Count(text, want) != 2 {
					t.Errorf("%q is there %d times, want both clusters", want, strings.Count(text, want))
				}
			}
			for _, lack := range c.lack {
				if strings.Contains(text, lack) {
					t.Errorf("%q is there", lack)
				}
			}
		})
	}
}

// No key's place is in the config: whoever reads it learns nothing.
func TestRenderHasNoKeys(t *testing.T) {
	files, err := envoy.Render(failoverPolicy(), options("failover"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		for _, place := range []string{"ANTHROPIC_API_KEY", "/run/secrets"} {
			if bytes.Contains(text, []byte(place)) {
				t.Errorf("%s names the key %s", path, place)
			}
		}
	}
}

func TestRenderFollowsPolicy(t *testing.T) {
	p := failoverPolicy()
	for name, c := range map[string]struct {
		change func(*config.Policy)
		want   string
	}{
		"body buffer is twice the limit":      {func(p *config.Policy) { p.Limits.Body = 5 << 20 }, "request_body_buffer_limit: 10485760"},
		"connection buffer stays large":       {func(p *config.Policy) { p.Limits.Body = 1000 }, "per_connection_buffer_limit_bytes: 16777216\n"},
		"body time":                           {func(p *config.Policy) { p.Limits.BodyTime = 1500e6 }, "request_timeout: 1.5s"},
		"heap":                                {func(p *config.Policy) { p.Limits.Memory = 1 << 20 }, "max_heap_size_bytes: 1076887552"},
		"attempt waits out a retry-after":     {func(*config.Policy) {}, "message_timeout: 360s"},
		"judge outlasts total":                {func(*config.Policy) {}, "message_timeout: 1510s"},
		"message timeout at Envoy's maximum":  {func(p *config.Policy) { p.Routes[0].Timeouts.Total = 1e13 }, "message_timeout: 3600s"},
		"one inner route per idle time":       {func(*config.Policy) {}, "string_match: {exact: 2.5s}"},
		"the render hash goes to the service": {func(p *config.Policy) { p.RenderHash = "0123456789ab" }, `{key: x-crossdoor-render, value: "0123456789ab"}`},
		"an IP address is matched as one":     {func(*config.Policy) {}, `{san_type: IP_ADDRESS, matcher: {exact: "2001:db8::7"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p = failoverPolicy()
			c.change(p)
			files, err := envoy.Render(p, options("failover"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(files["envoy.yaml"]), c.want) {
				t.Errorf("no %q in envoy.yaml", c.want)
			}
		})
	}
}
