package envoy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Defaults of Options.
const (
	DefaultVersion   = "1.40"
	DefaultService   = "127.0.0.1:9002" // the service's own default for --grpc
	DefaultListen    = "127.0.0.1:10000"
	DefaultAdminPort = 9901
)

// versions are those that the rendered config was run on.
var versions = []string{"1.37", "1.38", "1.39", "1.40"}

// systemCAs are where distributions keep the bundle, in the order of trial.
var systemCAs = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Alpine, distroless
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",                  // older RHEL
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/ssl/cert.pem",                                 // Alpine without the package, macOS
}

// Options say for which Envoy, and where it and the service listen. The zero
// value is the defaults above.
type Options struct {
	// Version is "1.37" to "1.40", with or without a patch number.
	Version string
	// Services are the replicas of the service; none is DefaultService.
	Services []Service
	// ServiceTLS is for all of them.
	ServiceTLS ServiceTLS
	// Listen is ADDR:PORT for clients; ADDR is an IP address.
	Listen string
	// AdminPort is Envoy's admin port, on 127.0.0.1.
	AdminPort int
	// SystemCA is the CA bundle, on Envoy's machine, for targets without a
	// ca_file. "" is what FindSystemCA says.
	SystemCA string
	// DynamicDir is where Envoy will find the files of dynamic/. "" means that
	// it is started in that folder.
	DynamicDir string
}

// Service is one replica of the service: Host and Port, or the Path of a unix
// socket.
type Service struct {
	Host string
	Port int
	Path string
}

// ParseServices reads HOST:PORT or unix:PATH, several separated by commas. Its
// errors name the one that is wrong.
func ParseServices(text string) ([]Service, error) {
	var services []Service
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		if path, ok := strings.CutPrefix(one, "unix:"); ok {
			path = strings.TrimPrefix(path, "//")
			if path == "" {
				return nil, fmt.Errorf("service %q: no path after unix", one)
			}
			services = append(services, Service{Path: path})
			continue
		}
		host, port, err := splitHostPort(one)
		if err != nil {
			return nil, fmt.Errorf("service %q: %w (HOST:PORT or unix:PATH)", one, err)
		}
		services = append(services, Service{Host: host, Port: port})
	}
	return services, nil
}

// FindSystemCA is the CA bundle of the machine it runs on: the first common
// path that exists, else Debian's.
func FindSystemCA() string {
	for _, path := range systemCAs {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return systemCAs[0]
}

// address is a checked ADDR:PORT.
type address struct {
	Host string
	Port int
}

func (o Options) withDefaults() Options {
	if o.Version == "" {
		o.Version = DefaultVersion
	}
	if len(o.Services) == 0 {
		o.Services, _ = ParseServices(DefaultService)
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.AdminPort == 0 {
		o.AdminPort = DefaultAdminPort
	}
	if o.SystemCA == "" {
		o.SystemCA = FindSystemCA()
	}
	if o.DynamicDir == "" {
		o.DynamicDir = "."
	}
	return o
}

// line is the supported minor version that text names.
func line(text string) (string, error) {
	major, rest, _ := strings.Cut(text, ".")
	minorText, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(minorText)
	if major != "1" || err != nil {
		return "", fmt.Errorf("envoy version %q: want one of %s", text, strings.Join(versions, ", "))
	}
	version := "1." + strconv.Itoa(minor)
	switch {
	case slices.Contains(versions, version):
		return version, nil
	case minor < 37:
		return "", fmt.Errorf("envoy version %q is too old: an answer is judged by a filter that is put in by a matcher on the response, "+
			"which came with 1.36 and was run from 1.37 on; use one of %s", text, strings.Join(versions, ", "))
	}
	return "", fmt.Errorf("envoy version %q was not tried yet: the newest is %s; render for that one", text, DefaultVersion)
}

func (o Options) listenAddress() (address, error) {
	host, port, err := splitHostPort(o.Listen)
	if err != nil {
		return address{}, fmt.Errorf("listen address %q: %w (ADDR:PORT)", o.Listen, err)
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return address{}, fmt.Errorf("listen address %q: Envoy binds to IP addresses, not to names; say 127.0.0.1, 0.0.0.0 or [::]", o.Listen)
	}
	return address{Host: host, Port: port}, nil
}

func checkPort(port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	return nil
}

func splitHostPort(text string) (string, int, error) {
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, errors.New("not an address with a port")
	}
	if host == "" {
		return "", 0, errors.New("no host before the port")
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number", portText)
	}
	return host, port, checkPort(port)
}
