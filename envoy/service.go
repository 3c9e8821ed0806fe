package envoy

import (
	"fmt"
	"net/netip"
)

// servicesView is the service's cluster. Its type follows from the addresses:
// names need a resolver.
type servicesView struct {
	Type      string
	Endpoints []Service
}

func viewServices(services []Service) (servicesView, error) {
	view := servicesView{Type: "STATIC", Endpoints: services}
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
