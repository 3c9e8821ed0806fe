package envoy

import (
	"net/netip"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy/config"
)

// targetView is one target's cluster.
type targetView struct {
	Cluster        string
	Type           string
	Host           string
	Port           int
	ConnectTimeout string
	TLS            bool
	SNI            string // "" for an IP address, which SNI cannot carry
	SANType, SAN   string
	CA             string
}

func viewTarget(t *config.Target, systemCA string) targetView {
	view := targetView{
		Cluster:        names.TargetCluster(t.Name),
		Type:           "LOGICAL_DNS",
		Host:           t.Endpoint.Host,
		Port:           t.Endpoint.Port,
		ConnectTimeout: duration(t.ConnectTimeout),
		TLS:            t.Endpoint.TLS,
		SNI:            t.Endpoint.Host,
		SANType:        "DNS",
		SAN:            t.Endpoint.Host,
		CA:             t.CAFile,
	}
	if ip, err := netip.ParseAddr(t.Endpoint.Host); err == nil {
		view.Type, view.SNI, view.SANType, view.SAN = "STATIC", "", "IP_ADDRESS", ip.String()
	}
	if view.CA == "" {
		view.CA = systemCA
	}
	return view
}
