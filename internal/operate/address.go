package operate

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The kinds of addresses that CheckAddress knows, by their flags' names.
const (
	GRPC    = "grpc"
	Admin   = "admin"
	Metrics = "metrics"
)

// Security is what the command line says about who may dial an address: paths of
// files, "" where the flag is not given.
type Security struct {
	// Cert and Key make the server speak TLS (`--grpc-cert`, `--admin-cert`, …).
	Cert, Key string
	// ClientCA makes it ask for client certificates (`--grpc-client-ca`).
	ClientCA string
	// Mesh says that the mesh does mTLS (`--grpc-mesh-mtls`).
	Mesh bool
	// TokenFile holds the token that callers must show (`--admin-token-file`).
	TokenFile string
}

// CheckAddress says whether the service may listen at addr, HOST:PORT or
// unix:PATH. Whoever can dial a gRPC address gets credentials, hence one that is
// neither loopback nor a unix socket needs mTLS, ours or the mesh's; such an
// admin address needs a token and TLS. A metrics address may be any. The error
// names the flag and what to do.
func CheckAddress(kind, addr string, s Security) error {
	local, err := parseAddress(addr)
	if err != nil {
		return fmt.Errorf("--%s %q: %w", kind, addr, err)
	}
	if err := s.complete(kind); err != nil {
		return err
	}
	if local {
		return nil
	}
	switch kind {
	case GRPC:
		if s.Mesh || s.ClientCA != "" {
			return nil
		}
		return fmt.Errorf("--grpc %s: others can dial it, and whoever can gets credentials: listen on 127.0.0.1 or unix:PATH, "+
			"or give --grpc-cert, --grpc-key and --grpc-client-ca (mTLS), or --grpc-mesh-mtls when the mesh does it", addr)
	case Admin:
		if s.TokenFile != "" && s.Cert != "" {
			return nil
		}
		return fmt.Errorf("--admin %s: others can dial it: listen on 127.0.0.1 or unix:PATH, "+
			"or give --admin-token-file, --admin-cert and --admin-key; for scrapers and probes there is --metrics", addr)
	}
	return nil
}

// complete finds half-given TLS, on whatever address: it was meant to protect.
func (s Security) complete(kind string) error {
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return fmt.Errorf("--%[1]s-cert and --%[1]s-key: give both or neither", kind)
	case kind == GRPC && (s.Cert == "") != (s.ClientCA == ""):
		return errors.New("--grpc-cert, --grpc-key and --grpc-client-ca: give all three or none; without a client CA anybody could connect")
	}
	return nil
}

// maxSocketPath is what every system can dial (sun_path of macOS).
const maxSocketPath = 103

var errTooLong = errors.New("the path is too long for a socket: choose one under 90 characters")

var errAddress = errors.New("write HOST:PORT, for example 127.0.0.1:9002, or unix:PATH")

// parseAddress checks the form. local is true for loopback addresses and unix
// sockets: only processes of this machine (of this pod) can dial them.
func parseAddress(addr string) (local bool, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return true, checkSocketPath(path)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, errAddress
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("port %q is no number from 0 to 65535: %w", port, errAddress)
	}
	return loopback(host), nil
}

// loopback takes literal addresses and `localhost`; another name may mean
// another machine tomorrow.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func checkSocketPath(path string) error {
	switch {
	case path == "":
		return errAddress
	case path[0] == '@' || path[0] == 0:
		return errors.New("an abstract socket has no permissions: give a path")
	case len(path) > maxSocketPath:
		return errTooLong
	}
	return nil
}
