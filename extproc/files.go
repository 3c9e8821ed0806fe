package extproc

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossdoor/crossdoor/policy/config"
	"github.com/crossdoor/crossdoor/rewrite"
)

const (
	// planWaits is how long a plan waits for the files that its request names. One
	// that takes longer is there for the next request.
	planWaits = 2 * time.Second
	// fetchFilesFor bounds a fetch.
	fetchFilesFor = 30 * time.Second
	// failedFor is how long a file that could not be had is not asked for again.
	failedFor = 30 * time.Second
	// maxFile is the largest file that is fetched; no platform takes more inline.
	maxFile = 32 << 20
	// fileCacheBytes is what the cache of files may take.
	fileCacheBytes = 128 << 20
)

// fileID is the form of the IDs that are fetched: they become part of a path.
var fileID = regexp.MustCompile(`^file_[A-Za-z0-9]{1,64}$`)

// fileSet is what is known of the files that a request names. A file belongs to
// one workspace of one platform: nobody else knows it.
type fileSet struct {
	owner *config.Target // nil where no target of the chain has files
	// inline are the sources to send to others, in the order of Facts.Files; nil
	// where they cannot be had.
	inline []inlined
}

// inlined is the source of one file as JSON, and what limits are held against.
type inlined struct {
	source []byte
	image  int64 // bytes of base64; 0 is no image
}

// filesOf finds out whose the files of a request are: those of the first target
// of the chain that has them and may give them to others (`fetch_files`), else of
// the first whose platform has files at all. It waits for the network, so no lock
// may be held. nil: the request names none.
func (s *Server) filesOf(ctx context.Context, route *config.Route, facts *rewrite.Facts) *fileSet {
	if len(facts.Files) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, planWaits)
	defer stop()
	var set fileSet
	for _, e := range route.Chain {
		host := rewrite.Host{Platform: e.Target.Platform, Hosting: string(e.Target.Hosting)}
		if set.owner == nil && host.Takes(rewrite.FileID) {
			set.owner = e.Target
		}
		if !e.Target.FetchFiles {
			continue
		}
		if list := s.inlineAll(ctx, e.Target, facts.Files); list != nil {
			return &fileSet{owner: e.Target, inline: list}
		}
	}
	return &set
}

// inlineAll fetches every file from its owner; nil when one of them cannot be
// had or sent inline.
func (s *Server) inlineAll(ctx context.Context, owner *config.Target, files []rewrite.FileRef) []inlined {
	list := make([]inlined, 0, len(files))
	for _, ref := range files {
		if !fileID.MatchString(ref.ID) || ref.Kind == "container_upload" {
			return nil
		}
		f, err := s.files.get(ctx, s, owner, ref.ID)
		if err != nil {
			s.log.Warn("a file could not be fetched", "target", owner.Name, "error", err)
			return nil
		}
		one, ok := f.as(ref.Kind)
		if !ok {
			return nil
		}
		list = append(list, one)
	}
	return list
}

// fit adds to a placement what its target makes of the request's files: nothing
// for their owner, the files inline for others, where they can be had. tooLarge:
// one of them is larger than the target takes. x.mu is held.
func (f *fileSet) fit(x *exchange, t *config.Target, p *placement, change *rewrite.Change) (tooLarge bool) {
	switch {
	case f == nil, f.owner == t, p.host.Kept(rewrite.FileID):
		return false
	case f.inline == nil:
		p.fit.Refuse(rewrite.FileID)
		return false
	}
	p.fit.Replace(rewrite.FileID)
	for i, ref := range x.facts.Files {
		change.Replace = append(change.Replace, rewrite.Edit{Span: ref.Source, New: f.inline[i].source})
		tooLarge = tooLarge || (t.Limits.Image > 0 && f.inline[i].image > t.Limits.Image)
	}
	return tooLarge
}

// imageTypes are those that every platform takes inline.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// file is one file as its owner gave it.
type file struct {
	mime string
	text []byte // base64, without anything that JSON would have to escape
}

// as is the file as the source of a block.
func (f *file) as(kind string) (inlined, bool) {
	media := strings.ToLower(strings.TrimSpace(f.mime))
	if i := strings.IndexByte(media, ';'); i >= 0 {
		media = strings.TrimSpace(media[:i])
	}
	image := slices.Contains(imageTypes, media)
	if image != (kind == "image") || (!image && media != "application/pdf") {
		return inlined{}, false
	}
	name, err := json.Marshal(media)
	if err != nil { // cannot be, of a string
		return inlined{}, false
	}
	out := inlined{source: slices.Concat([]byte(`{"type":"base64","media_type":`), name, []byte(`,"data":"`), f.text, []byte(`"}`))}
	if image {
		out.image = int64(len(f.text))
	}
	return out, true
}

// fileCache keeps files by target, key and ID, the newest first to stay. It is
// safe for concurrent use; a file that several requests want at once is fetched
// once.
type fileCache struct {
	mu      sync.Mutex
	files   map[string]*cached
	order   []string // oldest first
	bytes   int
	clients fileClients
}

// cached is one file, there once done is closed, or why it is not.
type cached struct {
	done  chan struct{}
	file  *file
	err   error
	until time.Time // of an error; zero while it is fetched
}

// get returns a file, from the cache or its owner.
func (c *fileCache) get(ctx context.Context, s *Server, owner *config.Target, id string) (*file, error) {
	key := owner.Name + "\x00" + owner.Keys[0].Place() + "\x00" + id
	c.mu.Lock()
	have, ok := c.files[key]
	if ok && !have.until.IsZero() && time.Now().After(have.until) {
		ok = false
	}
	if !ok {
		have = &cached{done: make(chan struct{})}
		if c.files == nil {
			c.files = map[string]*cached{}
		}
		c.files[key] = have
		go c.fetch(s, owner, id, key, have) //nolint:gosec // it is for the next request, too
	}
	c.mu.Unlock()
	select {
	case <-have.done:
		return have.file, have.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch gets a file for whoever waits, keeps it, and makes room.
func (c *fileCache) fetch(s *Server, owner *config.Target, id, key string, have *cached) {
	ctx, stop := context.WithTimeout(context.Background(), fetchFilesFor)
	defer stop()
	have.file, have.err = c.clients.fetch(ctx, s, owner, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(have.done)
	c.forgetErrors()
	if have.err != nil {
		have.until = time.Now().Add(failedFor)
		return
	}
	c.order = append(c.order, key)
	c.bytes += len(have.file.text)
	for c.bytes > fileCacheBytes && len(c.order) > 1 {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.bytes -= len(c.files[oldest].file.text)
		delete(c.files, oldest)
	}
}

// forgetErrors drops those that are over. c.mu is held.
func (c *fileCache) forgetErrors() {
	now := time.Now()
	maps.DeleteFunc(c.files, func(_ string, one *cached) bool { return !one.until.IsZero() && now.After(one.until) })
}
