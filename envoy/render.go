package envoy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crossdoor/crossdoor/envoy/names"
	"github.com/crossdoor/crossdoor/policy/config"
)

// Files are rendered files by their path, with slashes, below the output
// folder. The caller owns the bytes.
type Files map[string][]byte

// Paths are the files' paths, sorted.
func (f Files) Paths() []string { return slices.Sorted(maps.Keys(f)) }

// view is what templates see.
type view struct {
	Version, RenderHash string
	Dynamic             bool
	Dir                 string

	Listen                                    address
	AdminPort                                 int
	MaxHeap, MaxConnections                   int64
	BodyBuffer, ConnectionBuffer, InnerBuffer int64
	BodyTime                                  string

	// Planned is a regular expression for the paths that are planned, without a
	// query; PlanBody the body mode of the plan's filter.
	Planned, PlanBody                                     string
	PlanTimeout, AttemptTimeout, JudgeTimeout, StreamIdle string
	Idles                                                 []string
	LongestIdle                                           string

	ServiceDown, Overloaded, ServiceDetails string
	ListenerReplies, DispatchReplies        []reply
	Direct                                  *directView
	DirectFilter                            string
	ServiceClusters                         []serviceView
	Targets                                 []targetView
}

// plannedPaths are POST /v1/messages and /v1/messages/count_tokens; with another
// method the plan refuses them.
const plannedPaths = `/v1/messages(/count_tokens)?/?`

// WithPlanBody is the view for the plan's filter with a body mode.
func (v view) WithPlanBody(mode string) view {
	v.PlanBody = mode
	return v
}

// outputs says which template makes which file, and whether its routes are in
// files of their own.
var outputs = []struct {
	path, template string
	dynamic        bool
}{
	{"envoy.yaml", "envoy.yaml.tmpl", false},
	{"dynamic/envoy.yaml", "dynamic.yaml.tmpl", true},
	{"dynamic/lds.yaml", "lds.yaml.tmpl", true},
	{"dynamic/cds.yaml", "cds.yaml.tmpl", true},
	{"dynamic/rds.yaml", "rds.yaml.tmpl", true},
	{"dynamic/rds-dispatch.yaml", "rds-dispatch.yaml.tmpl", true},
}

// connectionBuffer is L of the listener's template: large enough that Envoy does
// not crash, small enough for clients that do not read.
const connectionBuffer = 16 << 20

// Render writes the policy as Envoy config: envoy.yaml starts as it is;
// dynamic/ is the same in files that Envoy follows, dynamic/envoy.yaml the one
// to start. The same policy and options give the same bytes. Nothing secret is
// in them. What it returns has passed Envoy's own validation rules; an error
// about the options names the option and what it takes.
func Render(p *config.Policy, o Options) (Files, error) {
	v, err := newView(p, o.withDefaults())
	if err != nil {
		return nil, err
	}
	files := Files{}
	for _, out := range outputs {
		v.Dynamic = out.dynamic
		text, err := execute(out.template, v)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", out.path, err)
		}
		if err := validate(out.path, text); err != nil {
			return nil, fmt.Errorf("rendered %s is not valid: %w", out.path, err)
		}
		files[out.path] = text
	}
	return files, nil
}

func newView(p *config.Policy, o Options) (view, error) {
	version, err := line(o.Version)
	if err != nil {
		return view{}, err
	}
	listen, err := o.listenAddress()
	if err != nil {
		return view{}, err
	}
	if err := checkPort(o.AdminPort); err != nil {
		return view{}, fmt.Errorf("admin port: %w", err)
	}
	services, err := viewServices(o.Services, o.ServiceTLS)
	if err != nil {
		return view{}, err
	}
	bodyBuffer := 2 * p.Limits.Body
	v := view{
		Version: version, RenderHash: p.RenderHash, Dir: o.DynamicDir,
		Listen: listen, AdminPort: o.AdminPort,
		MaxHeap: maxHeap(p.Limits), MaxConnections: maxConnections,
		BodyBuffer: bodyBuffer, ConnectionBuffer: connectionBuffer, InnerBuffer: 1 << 20, BodyTime: duration(p.Limits.BodyTime),
		Planned:     plannedPaths,
		PlanTimeout: duration(messageSlack), AttemptTimeout: duration(attemptTimeout(p)), JudgeTimeout: duration(judgeTimeout(p)), StreamIdle: duration(streamIdle(p)),
		ServiceDown: errorBody("overloaded_error", textServiceDown), Overloaded: errorBody("overloaded_error", textOverloaded),
		ServiceDetails:  names.DetailsPrefix,
		ListenerReplies: listenerReplies(p.Limits), DispatchReplies: dispatchReplies(),
		Direct: viewDirect(p.Direct), DirectFilter: names.FilterDirect,
		ServiceClusters: services,
	}
	var longest time.Duration
	for _, d := range p.IdleValues() {
		v.Idles = append(v.Idles, duration(d))
		longest = max(longest, d)
	}
	v.LongestIdle = duration(longest)
	for _, t := range p.Targets {
		v.Targets = append(v.Targets, viewTarget(t, o.SystemCA))
	}
	return v, nil
}
