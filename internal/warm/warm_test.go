package warm
import (
 _ "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
 _ "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
 _ "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
 _ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
 _ "google.golang.org/grpc"
 _ "google.golang.org/grpc/health"
 _ "google.golang.org/grpc/experimental"
 _ "github.com/prometheus/client_golang/prometheus/promhttp"
 _ "github.com/spf13/cobra"
 _ "github.com/goccy/go-yaml"
)
