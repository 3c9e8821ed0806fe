package envoy

import (
	"errors"
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	// Every type that the templates put into an Any, so that it can be read.
	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/composite/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// validate reads text as what the file at path is, strictly (an unknown or
// repeated member is an error), and checks every message in it, also inside
// each Any, against the rules in Envoy's protos.
func validate(path string, text []byte) error {
	var message proto.Message = &discoveryv3.DiscoveryResponse{}
	if path == "envoy.yaml" || path == "dynamic/envoy.yaml" {
		message = &bootstrapv3.Bootstrap{}
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal(asJSON, message); err != nil {
		return err
	}
	return check(message.ProtoReflect())
}

// check validates one message, then what its Anys hold: the generated
// validators stop there.
func check(m protoreflect.Message) error {
	errs := []error{}
	if v, ok := m.Interface().(interface{ ValidateAll() error }); ok {
		errs = append(errs, v.ValidateAll())
	}
	return errors.Join(append(errs, checkAnys(m))...)
}

// checkAnys walks to every Any below m.
func checkAnys(m protoreflect.Message) error {
	if held, ok := m.Interface().(*anypb.Any); ok {
		inner, err := held.UnmarshalNew()
		if err != nil {
			return fmt.Errorf("%s: %w", held.GetTypeUrl(), err)
		}
		return check(inner.ProtoReflect())
	}
	var errs []error
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, one protoreflect.Value) bool {
					errs = append(errs, checkAnys(one.Message()))
					return true
				})
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				errs = append(errs, checkAnys(value.List().Get(i).Message()))
			}
		default:
			errs = append(errs, checkAnys(value.Message()))
		}
		return true
	})
	return errors.Join(errs...)
}
