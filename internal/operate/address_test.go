package operate

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	mtls := Security{Cert: "c.pem", Key: "k.pem", ClientCA: "ca.pem"}
	mesh := Security{Mesh: true}
	tlsOnly := Security{Cert: "c.pem", Key: "k.pem"}
	guarded := Security{Cert: "c.pem", Key: "k.pem", TokenFile: "t"}
	for _, tt := range []struct {
		name, kind, addr string
		security         Security
		wantErr          string // "" is allowed
	}{
		{"grpc on loopback", GRPC, "127.0.0.1:9002", Security{}, ""},
		{"grpc elsewhere in 127/8", GRPC, "127.1.2.3:9002", Security{}, ""},
		{"grpc on IPv6 loopback", GRPC, "[::1]:9002", Security{}, ""},
		{"grpc on mapped loopback", GRPC, "[::ffff:127.0.0.1]:9002", Security{}, ""},
		{"grpc on localhost", GRPC, "localhost:0", Security{}, ""},
		{"grpc on a socket", GRPC, "unix:/run/crossdoor.sock", Security{}, ""},
		{"grpc on all", GRPC, "0.0.0.0:9002", Security{}, "--grpc-mesh-mtls"},
		{"grpc on all, short form", GRPC, ":9002", Security{}, "--grpc-mesh-mtls"},
		{"grpc on all IPv6", GRPC, "[::]:9002", Security{}, "--grpc-mesh-mtls"},
		{"grpc on a pod's address", GRPC, "10.0.0.7:9002", Security{}, "credentials"},
		{"grpc on a name", GRPC, "crossdoor.local:9002", Security{}, "credentials"},
		{"grpc on a name that looks local", GRPC, "127.0.0.1.example.com:9002", Security{}, "credentials"},
		{"grpc on all with mTLS", GRPC, "0.0.0.0:9002", mtls, ""},
		{"grpc on all in a mesh", GRPC, "0.0.0.0:9002", mesh, ""},
		{"grpc with TLS alone", GRPC, "0.0.0.0:9002", tlsOnly, "--grpc-client-ca"},
		{"grpc with TLS alone on loopback", GRPC, "127.0.0.1:9002", tlsOnly, "--grpc-client-ca"},
		{"grpc with a CA alone", GRPC, "0.0.0.0:9002", Security{ClientCA: "ca.pem"}, "--grpc-cert"},
		{"grpc with a certificate alone", GRPC, "127.0.0.1:9002", Security{Cert: "c.pem"}, "--grpc-key"},
		{"a token is nothing for grpc", GRPC, "0.0.0.0:9002", Security{TokenFile: "t"}, "mTLS"},
		{"admin on loopback", Admin, "127.0.0.1:9003", Security{}, ""},
		{"admin on a socket", Admin, "unix:admin.sock", Security{}, ""},
		{"admin on all", Admin, "0.0.0.0:9003", Security{}, "--admin-token-file"},
		{"admin on all with a token", Admin, "0.0.0.0:9003", Security{TokenFile: "t"}, "--admin-cert"},
		{"admin on all with TLS", Admin, "0.0.0.0:9003", tlsOnly, "--admin-token-file"},
		{"admin on all with both", Admin, "0.0.0.0:9003", guarded, ""},
		{"the mesh is nothing for admin", Admin, "0.0.0.0:9003", mesh, "--metrics"},
		{"metrics on all", Metrics, "0.0.0.0:9004", Security{}, ""},
		{"no port", GRPC, "127.0.0.1", Security{}, "HOST:PORT"},
		{"empty", Admin, "", Security{}, "HOST:PORT"},
		{"port too high", GRPC, "127.0.0.1:65536", Security{}, `port "65536"`},
		{"port by name", GRPC, "127.0.0.1:http", Security{}, `port "http"`},
		{"bare IPv6", GRPC, "::1:9002", Security{}, "HOST:PORT"},
		{"URL", Admin, "http://127.0.0.1:9003", Security{}, "HOST:PORT"},
		{"socket without a path", GRPC, "unix:", Security{}, "unix:PATH"},
		{"abstract socket", GRPC, "unix:@crossdoor", Security{}, "abstract"},
		{"long socket", GRPC, "unix:/" + strings.Repeat("x", 120), Security{}, "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckAddress(tt.kind, tt.addr, tt.security)
			if tt.wantErr == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Fatalf("got %v, want %q in it", err, tt.wantErr)
			}
			if !strings.Contains(err.Error(), "--"+tt.kind) {
				t.Errorf("the flag is not named: %v", err)
			}
		})
	}
}

func listening(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dials(path string) bool {
	c, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func TestListenTCP(t *testing.T) {
	l := listening(t, "127.0.0.1:0")
	if _, err := Listen(l.Addr().String()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("taken port: got %v", err)
	}
	if _, err := Listen("nonsense"); err == nil {
		t.Error("no error for nonsense")
	}
}

func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := listening(t, "unix:"+path)
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.ModeSocket|0o660 {
		t.Errorf("mode %v, want a socket with 0660", info.Mode())
	}
	if got := l.Addr().String(); got != path {
		t.Errorf("Addr is %q, want %q", got, path)
	}
	if !dials(path) {
		t.Error("nobody answers")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left beside the socket: %v, %v", entries, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestListenUnixReplacesOnlyWhatIsDead(t *testing.T) {
	for _, tt := range []struct {
		name    string
		there   func(t *testing.T, path string)
		wantErr string
	}{
		{"a dead socket", func(t *testing.T, path string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			l.Close()
		}, ""},
		{"a socket in use", func(t *testing.T, path string) { listening(t, "unix:"+path) }, "another process"},
		{"a file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no socket"},
		{"a link", func(t *testing.T, path string) {
			if err := os.Symlink("elsewhere", path); err != nil {
				t.Fatal(err)
			}
		}, "no socket"},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no socket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			tt.there(t, path)
			l, err := Listen("unix:" + path)
			if tt.wantErr == "" {
				if err != nil {
					t.Fatal(err)
				}
				if !dials(path) {
					t.Error("nobody answers")
				}
				l.Close()
				return
			}
			if err == nil {
				l.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want %q in it", err, tt.wantErr)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("what was there is gone: %v", err)
			}
		})
	}
	if _, err := Listen("unix:" + filepath.Join(t.TempDir(), "none", "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: got %v", err)
	}
}

func TestListenUnixLeavesASuccessorsSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := listening(t, "unix:"+path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listening(t, "unix:"+path)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if !dials(path) {
		t.Error("closing the first removed the second's socket")
	}
}
