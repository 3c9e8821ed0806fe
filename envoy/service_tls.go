package envoy

import (
	"fmt"
	"net/netip"
	"slices"
)

// ServiceTLS is how Envoy and the service prove themselves to each other
// (`serve --grpc-cert --grpc-key --grpc-client-ca`). The paths are on Envoy's
// machine and written as they are: Envoy reads the files when it starts. The
// zero value is plaintext.
type ServiceTLS struct {
	// CA signed the service's certificate.
	CA string
	// Cert and Key are what Envoy shows; the service's client CA signed them.
	Cert, Key string
	// Name is what the service's certificate must be for. "" is the host of one
	// of the services.
	Name string
}

// tlsView is the TLS of the service's clusters.
type tlsView struct {
	CA, Cert, Key string
	SNI           string // "" without one name to ask for
	SANs          []sanView
}

// sanView is one name that the peer's certificate may be for.
type sanView struct{ Type, Value string }

func viewSAN(host string) sanView {
	if ip, err := netip.ParseAddr(host); err == nil {
		return sanView{"IP_ADDRESS", ip.String()}
	}
	return sanView{"DNS", host}
}

// view is nil for plaintext.
func (t ServiceTLS) view(services []Service) (*tlsView, error) {
	if t == (ServiceTLS{}) {
		return nil, nil //nolint:nilnil // plaintext is no error and has nothing to show
	}
	for _, f := range []struct{ option, value string }{{"service-ca", t.CA}, {"service-cert", t.Cert}, {"service-key", t.Key}} {
		if f.value == "" {
			return nil, fmt.Errorf("%s is missing: service-ca, service-cert and service-key go together", f.option)
		}
	}
	view := &tlsView{CA: t.CA, Cert: t.Cert, Key: t.Key}
	for _, s := range services {
		if s.Path != "" {
			return nil, fmt.Errorf("service-ca with service unix:%s: a socket has no TLS; its mode says who may dial", s.Path)
		}
		if san := viewSAN(s.Host); t.Name == "" && !slices.Contains(view.SANs, san) {
			view.SANs = append(view.SANs, san)
		}
	}
	if t.Name != "" {
		view.SANs = []sanView{viewSAN(t.Name)}
	}
	if len(view.SANs) == 1 && view.SANs[0].Type == "DNS" {
		view.SNI = view.SANs[0].Value
	}
	return view, nil
}
