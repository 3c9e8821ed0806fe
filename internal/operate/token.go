package operate

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

const (
	minToken = 16
	maxToken = 4096
)

// ReadToken reads an admin token from a file: one line of at least 16 printable
// characters, blanks around it aside. The error never quotes the content.
func ReadToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("admin token in %s: %w", path, err)
	}
	return token, nil
}

func checkToken(token string) error {
	switch {
	case len(token) < minToken:
		return fmt.Errorf("it has fewer than %d characters: write a longer one, for example from `openssl rand -hex 32`", minToken)
	case len(token) > maxToken:
		return fmt.Errorf("it has more than %d characters", maxToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return errors.New("it holds blanks or characters that a header cannot carry")
		}
	}
	return nil
}

// authorized compares the request's bearer token with the file's content. The
// file is read each time, so that a rotated token counts at once; requests here
// are few. An unreadable file lets nobody in.
func authorized(r *http.Request, tokenFile string) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || shown == "" {
		return false
	}
	token, err := ReadToken(tokenFile)
	if err != nil {
		return false
	}
	// Hashes have one length: the comparison tells nothing about the token's.
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
