package extproc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// connection is one gRPC connection from an Envoy. When it breaks its exchanges
// are orphaned, not ended: their answers may still be on their way (envoy.md,
// section 4).
type connection struct{ over atomic.Bool }

// lost reports whether the connection ended; a nil one never did.
func (c *connection) lost() bool { return c != nil && c.over.Load() }

type connectionKey struct{}

// connectionOf is the connection that carries a stream.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// connections is the stats.Handler that marks connections as they end.
type connections struct{}

// TagConn gives a new connection its mark.
func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// HandleConn sets the mark.
func (connections) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, end := s.(*stats.ConnEnd); end {
		if c := connectionOf(ctx); c != nil {
			c.over.Store(true)
		}
	}
}

// TagRPC does nothing.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (connections) HandleRPC(context.Context, stats.RPCStats) {}
