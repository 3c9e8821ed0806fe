package demo

import (
	"maps"
	"slices"
	"sync"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// fake is one platform of the demo. Its methods are safe for concurrent use.
type fake struct {
	target string
	server *fakeplatform.Server

	mu     sync.Mutex
	faults map[string]func() fakeplatform.Answer // by model
	mended map[string]bool
	gate   <-chan struct{} // of modelRestart
	sent   map[int][]byte  // body of the answer to request n
}

func startFake(target, platform, key string) (*fake, error) {
	server, err := fakeplatform.New(platform)
	if err != nil {
		return nil, err
	}
	f := &fake{target: target, server: server, faults: map[string]func() fakeplatform.Answer{}, mended: map[string]bool{}, sent: map[int][]byte{}}
	for _, x := range faults {
		if x.target == target {
			f.faults[x.model] = x.answer
		}
	}
	rules := fakeplatform.Rules{Keys: []string{key}}
	if platform == fakeplatform.ClaudeOnAWS {
		rules.Workspace = workspace
	}
	server.SetRules(rules)
	server.Respond(f.answer)
	return f, nil
}

func (f *fake) answer(r fakeplatform.Request) fakeplatform.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	broken, ok := f.faults[r.Model]
	var a fakeplatform.Answer
	if ok && !f.mended[r.Model] {
		a = broken()
	} else {
		a = good(f.target, r)
	}
	if r.Model == modelRestart {
		a.Mid, a.MidPart = f.gate, gatePart
	}
	f.sent[r.N] = a.Body()
	return a
}

// mend makes the platform answer the model well from now on.
func (f *fake) mend(model string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mended[model] = true
}

// breakAgain undoes every mend.
func (f *fake) breakAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.mended)
}

// hold stops streams of modelRestart after three words until gate is closed; nil
// stops none.
func (f *fake) hold(gate <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gate = gate
}

// answered is the body that request n got.
func (f *fake) answered(n int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[n]
}

// arrival is one request as a platform got it.
type arrival struct {
	fakeplatform.Request

	target string
	body   []byte // of the answer
}

// marks says how many requests each platform had at some moment.
type marks map[string]int

// platforms are the fakes by target.
type platforms map[string]*fake

func (p platforms) mark() marks {
	m := marks{}
	for target, f := range p {
		m[target] = len(f.server.Requests())
	}
	return m
}

// since is what came after the mark, in the order of arrival.
func (p platforms) since(m marks) []arrival {
	var out []arrival
	for target, f := range p {
		for _, r := range f.server.Requests()[m[target]:] {
			out = append(out, arrival{target: target, Request: r, body: f.answered(r.N)})
		}
	}
	slices.SortFunc(out, func(a, b arrival) int { return a.Headed.Compare(b.Headed) })
	return out
}

func (p platforms) close() {
	for _, target := range slices.Sorted(maps.Keys(p)) {
		p[target].server.Close()
	}
}
