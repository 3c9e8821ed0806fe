package operate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/crossdoor/crossdoor/internal/trail"
)

// socketHost is the host of requests through a unix socket, which have none.
const socketHost = "crossdoor.sock"

const (
	dialTimeout = 5 * time.Second
	maxAnswer   = 8 << 20 // of readyz
	maxRefusal  = 64 << 10
)

// ClientOptions is how a client shows who it is and checks who answers.
type ClientOptions struct {
	TokenFile string // "" shows no token
	CAFile    string // of the server's certificate; "" is the system's bundle
}

// Client calls the admin API of a running service. It is safe for concurrent use.
type Client struct {
	addr  string
	base  string
	token string
	http  *http.Client
}

// NewClient is a client for addr, HOST:PORT or unix:PATH. An address that is
// neither loopback nor a socket is spoken to with TLS, and so is a loopback one
// when a CA file is given: what the server demands, see CheckAddress.
func NewClient(addr string, o ClientOptions) (*Client, error) {
	local, err := parseAddress(addr)
	if err != nil {
		return nil, fmt.Errorf("--admin %q: %w", addr, err)
	}
	c := &Client{addr: addr, base: "http://" + addr}
	if o.TokenFile != "" {
		if c.token, err = ReadToken(o.TokenFile); err != nil {
			return nil, err
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	// No proxy: the address is meant as it stands, and the token is for it alone.
	transport := &http.Transport{DialContext: dialer.DialContext, ResponseHeaderTimeout: writeTimeout, DisableKeepAlives: true}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		c.base = "http://" + socketHost
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
	} else if !local || o.CAFile != "" {
		c.base = "https://" + addr
		if transport.TLSClientConfig, err = clientTLS(o.CAFile); err != nil {
			return nil, err
		}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return c, nil
}

func clientTLS(caFile string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("admin CA: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("admin CA %s: no certificate in it: give a PEM file", caFile)
	}
	return c, nil
}

// Trail calls visit for the records in the service's memory that f matches,
// newest last. bad counts lines that are no record.
func (c *Client) Trail(ctx context.Context, f trail.Filter, visit func(*trail.Record) error) (bad int, err error) {
	answer, err := c.get(ctx, "/trail", f.Values())
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, c.refused(answer)
	}
	f.Limit = 0 // the service has seen to it; records go on as they come
	return trail.Read(answer.Body, f, visit)
}

// Ready is what `/readyz` tells, whether it is ready or not.
func (c *Client) Ready(ctx context.Context) (Ready, error) {
	answer, err := c.get(ctx, "/readyz", nil)
	if err != nil {
		return Ready{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
		return Ready{}, c.refused(answer)
	}
	var r Ready
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&r); err != nil {
		return Ready{}, fmt.Errorf("%s/readyz: not what a Crossdoor service answers: %w", c.addr, err)
	}
	return r, nil
}

func (c *Client) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("--admin %q: %w", c.addr, err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return answer, nil
}

// unreachable says what can be done. The error of net/http names the URL again,
// with the whole query.
func (c *Client) unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("nobody listens at %s: is `crossdoor serve` running, and is this its --admin address?", c.addr)
	}
	return fmt.Errorf("asking %s: %w", c.addr, err)
}

func (c *Client) refused(answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return fmt.Errorf("asking %s: %w", c.addr, err)
	}
	var e errorBody
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return fmt.Errorf("%s answered %d: %s", c.addr, answer.StatusCode, e.Error)
	}
	if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) {
		return fmt.Errorf("%s speaks TLS: give its CA with --admin-ca", c.addr)
	}
	return fmt.Errorf("%s answered %d: not what a Crossdoor service answers; is this its --admin address?", c.addr, answer.StatusCode)
}
