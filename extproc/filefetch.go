package extproc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite/platform"
)

// filesBeta is what the files API wants where it is not generally available.
const filesBeta = "files-api-2025-04-14"

// fileClients are the HTTP clients that files are fetched with: one for each CA
// file. It is the one place where the service itself speaks to a platform.
type fileClients struct {
	mu   sync.Mutex
	byCA map[string]*http.Client
}

// of is the client for a target.
func (c *fileClients) of(t *config.Target) (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client, ok := c.byCA[t.CAFile]; ok {
		return client, nil
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		security.RootCAs = x509.NewCertPool()
		if !security.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file: has no certificate")
		}
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: security, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: fetchFilesFor},
		// Where else the file may be is nobody's to send a credential to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if c.byCA == nil {
		c.byCA = map[string]*http.Client{}
	}
	c.byCA[t.CAFile] = client
	return client, nil
}

// fetch gets a file from its owner: what it is, then its bytes.
func (c *fileClients) fetch(ctx context.Context, s *Server, owner *config.Target, id string) (*file, error) {
	client, err := c.of(owner)
	if err != nil {
		return nil, err
	}
	text, err := s.getFrom(ctx, client, owner, "/v1/files/"+id, 64<<10)
	if err != nil {
		return nil, err
	}
	var about struct {
		MIME string `json:"mime_type"`
		Size int64  `json:"size_bytes"`
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, errors.New("what the platform says of the file cannot be read")
	}
	if about.Size > maxFile {
		return nil, fmt.Errorf("the file is larger than the %d bytes that are sent inline", maxFile)
	}
	if text, err = s.getFrom(ctx, client, owner, "/v1/files/"+id+"/content", maxFile); err != nil {
		return nil, err
	}
	return &file{mime: about.MIME, text: base64.StdEncoding.AppendEncode(nil, text)}, nil
}

// getFrom is a GET at a target with its own credential. limit is the largest body
// that is taken.
func (s *Server) getFrom(ctx context.Context, client *http.Client, t *config.Target, path string, limit int64) ([]byte, error) {
	spec, _ := platform.Get(t.Platform)
	path, err := spec.Path(site(t), path, "", false)
	if err != nil {
		return nil, fmt.Errorf("the platform has no files: %w", err)
	}
	key := t.Keys[0]
	call := platform.Call{Path: path, Authority: t.Endpoint.Authority(), Workspace: t.Workspace, Betas: []string{filesBeta}}
	s.authenticate(&call, t, key, &clientRequest{})
	headers := spec.Headers(call)
	s.sign(http.MethodGet, headers, spec, t, key, nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Endpoint.URL()+path, nil)
	if err != nil {
		return nil, errors.New("the target's address cannot be used")
	}
	for _, h := range headers {
		if h.Value != "" && h.Name[0] != ':' {
			req.Header.Set(h.Name, h.Value)
		}
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, errors.New("the platform could not be reached")
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the platform answered with status %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	switch {
	case err != nil:
		return nil, errors.New("the platform's answer was cut")
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("the answer is larger than %d bytes", limit)
	}
	return body, nil
}
