package extproc

import (
	"errors"
	"io"
	"strings"
	"time"

	accesslogdata "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossdoor/crossdoor/envoy/names"
)

// entry is one access-log entry as far as it matters here: how an attempt or an
// exchange ended (envoy.md, section 4).
type entry struct {
	id      string
	node    string // the replica that planned
	state   string // what the service wrote into the exchange's metadata
	attempt string // Envoy's attempt count, of an attempt
	target  string // the attempt's cluster
	status  int
	flags   flags
	details string
	at      time.Time // when it came
	over    time.Time // when what it tells of ended, by Envoy's clock; zero when it does not say
	tail    []byte    // last bytes of the answer; nil when it was cut
	hasTail bool
	bytes   int64
}

// flags are the response flags that tell endings apart.
type flags struct {
	downstreamGone bool // DC
	idle           bool // SI
	upstreamBroke  bool // UPE, UC, UR
}

// logService is the gRPC access-log service: it never answers until the client
// closes, and drops what it cannot read.
type logService struct {
	accesslog.UnimplementedAccessLogServiceServer
	s *Server
}

// StreamAccessLogs takes the entries of one Envoy worker.
func (l logService) StreamAccessLogs(stream accesslog.AccessLogService_StreamAccessLogsServer) error {
	name := ""
	for {
		msg, err := stream.Recv()
		if err != nil {
			return l.closed(stream, err)
		}
		if id := msg.GetIdentifier(); id != nil {
			name = id.GetLogName()
		}
		for _, e := range msg.GetHttpLogs().GetLogEntry() {
			l.s.logged(name, readEntry(e), msg)
		}
	}
}

// closed answers a peer that ended its stream well; Envoy never reads it.
func (logService) closed(stream accesslog.AccessLogService_StreamAccessLogsServer, err error) error {
	if errors.Is(err, io.EOF) {
		return stream.SendAndClose(&accesslog.StreamAccessLogsResponse{})
	}
	return nil
}

func readEntry(e *accesslogdata.HTTPAccessLogEntry) *entry {
	common := e.GetCommonProperties()
	out := &entry{
		over:    endOf(common),
		status:  int(e.GetResponse().GetResponseCode().GetValue()),
		details: e.GetResponse().GetResponseCodeDetails(),
	}
	if f := common.GetResponseFlags(); f != nil {
		out.flags = flags{
			downstreamGone: f.GetDownstreamConnectionTermination(),
			idle:           f.GetStreamIdleTimeout(),
			upstreamBroke:  f.GetUpstreamConnectionTermination() || f.GetUpstreamRemoteReset() || f.GetUpstreamProtocolError(),
		}
	}
	if strings.HasPrefix(out.details, "upstream_reset_after_response_started") {
		out.flags.upstreamBroke = true
	}
	meta := common.GetMetadata().GetFilterMetadata()
	out.readMeta(meta[names.Namespace].GetFields())
	tail := meta[names.TailNamespace].GetFields()
	if text, ok := tail[names.TailText]; ok {
		out.tail, out.hasTail = []byte(text.GetStringValue()), true
		out.bytes = int64(tail[names.TailBytes].GetNumberValue())
	}
	return out
}

// endOf is the moment of the last byte downstream.
func endOf(c *accesslogdata.AccessLogCommon) time.Time {
	took := c.GetTimeToLastDownstreamTxByte()
	if took == nil {
		took = c.GetDuration()
	}
	if c.GetStartTime() == nil || took == nil {
		return time.Time{}
	}
	return c.GetStartTime().AsTime().Add(took.AsDuration())
}

func (e *entry) readMeta(fields map[string]*structpb.Value) {
	e.id = fields[names.MetaID].GetStringValue()
	e.node = fields[names.MetaNode].GetStringValue()
	e.state = fields[names.MetaState].GetStringValue()
	e.attempt = fields[names.MetaAttempt].GetStringValue()
	e.target = fields[names.MetaTarget].GetStringValue()
}

// logged takes one entry: it belongs to an exchange of this replica, or to one
// that has ended, or to another replica's.
func (s *Server) logged(log string, e *entry, msg *accesslog.StreamAccessLogsMessage) {
	if e.id == "" {
		return // nothing of ours was planned for it
	}
	x, ended := s.table.get(e.id)
	switch {
	case x == nil && ended:
		return
	case x == nil:
		s.foreign(log, e, msg)
		return
	case x.joined:
		s.foreign(log, e, msg)
		if log == names.LogExchange {
			x.mu.Lock()
			defer x.mu.Unlock()
			s.dropJoined(x)
		}
		return
	}
	s.told(x, log, e)
}

// told adds an entry to what is known of the end of x.
func (s *Server) told(x *exchange, log string, e *entry) {
	x.mu.Lock()
	e.at = time.Now()
	if log == names.LogExchange {
		x.end.exchange = e
	} else if n := x.envoyN[e.attempt]; n > 0 {
		x.end.attempt, x.end.attemptN = e, n
	}
	x.mu.Unlock()
	s.tryEnd(x)
}
