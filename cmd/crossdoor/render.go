package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/crossdoor/crossdoor/envoy"
)

const renderHelp = `Write the Envoy config of a policy: DIR/envoy.yaml, which starts as it is, and
DIR/dynamic/, the same as file-based LDS, CDS and RDS. The config holds no secret.

Render again, and let Envoy take it, when a target's url, connect_timeout,
ca_file or plaintext, an idle time, limits.body or on_service_down changed, or a
target was added: /readyz of the service says when that is due.`

const renderExamples = `  crossdoor render --policy crossdoor.yaml --for envoy --out ./envoy
  crossdoor render --policy crossdoor.yaml --for envoy --out ./envoy \
    --service unix:/run/crossdoor.sock --listen 0.0.0.0:8080
  crossdoor render --policy crossdoor.yaml --for envoy --out ./envoy \
    --service 10.0.0.5:9002,10.0.0.6:9002 --envoy-version 1.38
  crossdoor render --policy crossdoor.yaml --for envoy --out ./envoy \
    --service crossdoor.llm.svc:9002 --service-ca /etc/crossdoor/ca.pem \
    --service-cert /etc/crossdoor/envoy.pem --service-key /etc/crossdoor/envoy.key`

type renderFlags struct {
	policy, mesh, out, service string
	options                    envoy.Options
}

func renderCommand() *cobra.Command {
	var f renderFlags
	c := &cobra.Command{
		Use: "render", Short: "Write the Envoy config of a policy", Long: renderHelp, Example: renderExamples,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fs := c.Flags()
	fs.StringVar(&f.policy, "policy", "", policyFlagHelp)
	fs.StringVar(&f.mesh, "for", "envoy", "envoy (istio and envoy-gateway: not supported yet)")
	fs.StringVar(&f.out, "out", "", "folder to write to")
	fs.StringVar(&f.options.Version, "envoy-version", envoy.DefaultVersion, "1.37, 1.38, 1.39 or 1.40")
	fs.StringVar(&f.service, "service", envoy.DefaultService, "where the service is: HOST:PORT or unix:PATH, several with commas")
	fs.StringVar(&f.options.ServiceTLS.CA, "service-ca", "", "mTLS to the service: PEM file, on Envoy's machine, of the CA of the service's certificate")
	fs.StringVar(&f.options.ServiceTLS.Cert, "service-cert", "", "the certificate that Envoy shows the service")
	fs.StringVar(&f.options.ServiceTLS.Key, "service-key", "", "its key")
	fs.StringVar(&f.options.ServiceTLS.Name, "service-name", "", "name in the service's certificate (default: the host in --service)")
	fs.StringVar(&f.options.Listen, "listen", envoy.DefaultListen, "where Envoy listens for clients, ADDR:PORT")
	fs.IntVar(&f.options.AdminPort, "admin-port", envoy.DefaultAdminPort, "Envoy's admin port on 127.0.0.1")
	return c
}

func (f *renderFlags) run(c *cobra.Command) error {
	switch f.mesh {
	case "envoy":
	case "istio", "envoy-gateway":
		return usageError{fmt.Errorf("--for %s: not supported yet", f.mesh)}
	default:
		return usageError{fmt.Errorf("--for %q: want envoy, istio or envoy-gateway", f.mesh)}
	}
	if f.out == "" {
		return usageError{errors.New("--out: which folder?")}
	}
	path, err := policyPath(f.policy)
	if err != nil {
		return err
	}
	p, err := loadPolicy(path)
	if err != nil {
		return err
	}
	if f.options.Services, err = envoy.ParseServices(f.service); err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	if f.options.DynamicDir, err = filepath.Abs(filepath.Join(f.out, "dynamic")); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	files, err := envoy.Render(p, f.options)
	if err != nil {
		return usageError{err}
	}
	return f.write(c, files)
}

// write puts each file in place whole, so that a watching Envoy never reads
// half of one.
func (f *renderFlags) write(c *cobra.Command, files envoy.Files) error {
	for _, name := range files.Paths() {
		path := filepath.Join(f.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // Envoy reads it as a user of its own
			return fmt.Errorf("render: %w", err)
		}
		tmp := path + ".tmp"
		if err := os.WriteFile(tmp, files[name], 0o644); err != nil { //nolint:gosec // the same, and no secret is in it
			return fmt.Errorf("render: %w", err)
		}
		if err := os.Rename(tmp, path); err != nil {
			return fmt.Errorf("render: %w", err)
		}
		fmt.Fprintln(c.OutOrStdout(), path)
	}
	return nil
}
