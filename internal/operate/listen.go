package operate

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// socketMode lets the owner and the group connect: Envoy runs in the service's
// group (contract, fine print on `--grpc`).
const socketMode = 0o660

// Listen listens at HOST:PORT or unix:PATH. A socket that a dead process left is
// replaced; anything else at the path, or a socket somebody listens on, is an
// error. The socket has mode 0660 from the moment it can be dialled. Close
// removes it unless another process has replaced it meanwhile.
func Listen(addr string) (net.Listener, error) {
	if _, err := parseAddress(addr); err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	path, ok := strings.CutPrefix(addr, "unix:")
	if !ok {
		l, err := net.Listen("tcp", addr)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%s: another process listens there: stop it or choose another port", addr)
		}
		return l, err
	}
	if err := free(path); err != nil {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}
	l, err := bind(path)
	if err != nil {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}
	return l, nil
}

// free looks at what is there; it removes nothing, bind replaces.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is something that is no socket: remove it or choose another path")
	}
	conn, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // a second is its limit
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
		return errors.New("another process listens there: stop it or choose another path")
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("cannot tell whether somebody listens there: %w", err)
}

// bind makes the socket in a directory that only we may enter, gives it its mode
// and moves it to its place: a socket made in place could be dialled by anybody
// until its mode is set, and the umask belongs to the whole process.
func bind(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nobody else may enter what stays
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		if errors.Is(err, syscall.EINVAL) {
			return nil, errTooLong
		}
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would look at the place where it was made
	info, err := place(made, path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{UnixListener: l, path: path, info: info}, nil
}

func place(made, path string) (fs.FileInfo, error) {
	if err := os.Chmod(made, socketMode); err != nil {
		return nil, err
	}
	info, err := os.Lstat(made)
	if err != nil {
		return nil, err
	}
	return info, os.Rename(made, path)
}

// socket is a unix listener that knows its final place.
type socket struct {
	*net.UnixListener

	path string
	info fs.FileInfo
}

func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if info, lerr := os.Lstat(s.path); lerr == nil && os.SameFile(info, s.info) {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}
