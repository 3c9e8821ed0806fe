package envoy

import (
	"fmt"
	"net/netip"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// serviceView is one of the service's clusters. Its type follows from the
// addresses: names need a resolver.
type serviceView struct {
	Name, Purpose string
	Health        string // what the health check asks for; "" is the whole server
	Type          string
	Endpoints     []Service
	TLS           *tlsView // nil is plaintext
}

// viewServices makes two clusters of the same replicas. One that drains takes no
// new requests and still decides for those that run: two health checks.
func viewServices(services []Service, tls ServiceTLS) ([]serviceView, error) {
	planning, err := viewService(services)
	if err != nil {
		return nil, err
	}
	if planning.TLS, err = tls.view(services); err != nil {
		return nil, err
	}
	running := planning
	planning.Name, planning.Purpose = names.ClusterService, "the service, for new requests"
	running.Name, running.Purpose, running.Health = names.ClusterRunning, "the service, for what runs: it is healthy until a drain is over", names.HealthRunning
	return []serviceView{planning, running}, nil
}

func viewService(services []Service) (serviceView, error) {
	view := serviceView{Type: "STATIC", Endpoints: services}
	socket := ""
	for _, s := range services {
		if s.Path != "" {
			socket = s.Path
			continue
		}
		if err := checkPort(s.Port); err != nil {
			return view, fmt.Errorf("service %s: %w", s.Host, err)
		}
		if _, err := netip.ParseAddr(s.Host); err != nil {
			// Every address behind the name is a replica: a headless Service has
			// one for each pod.
			view.Type = "STRICT_DNS"
		}
	}
	if socket != "" && view.Type == "STRICT_DNS" {
		return view, fmt.Errorf("service unix:%s stands beside a host name: Envoy resolves names only in a cluster without sockets; use IP addresses", socket)
	}
	return view, nil
}
