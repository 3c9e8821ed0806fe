package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crossdoor/crossdoor/internal/operate"
)

func plaintext() credentials.TransportCredentials { return insecure.NewCredentials() }

// mutualTLS is one identity for both sides: replicas show each other the
// certificate that they show Envoy.
func mutualTLS(sec operate.Security) (client, server credentials.TransportCredentials, err error) {
	pair, err := tls.LoadX509KeyPair(sec.Cert, sec.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("--grpc-cert and --grpc-key: %w", err)
	}
	pem, err := os.ReadFile(sec.ClientCA)
	if err != nil {
		return nil, nil, fmt.Errorf("--grpc-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("--grpc-client-ca: %s has no certificate", sec.ClientCA)
	}
	certs := []tls.Certificate{pair}
	client = credentials.NewTLS(&tls.Config{Certificates: certs, RootCAs: pool, MinVersion: tls.VersionTLS12})
	server = credentials.NewTLS(&tls.Config{
		Certificates: certs, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})
	return client, server, nil
}
