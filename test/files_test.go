package test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/crossdoor/crossdoor/internal/fakeplatform"
)

// filesBody names two files by ID.
func filesBody(model, image, document string) []byte {
	return []byte(`{"model":"` + model + `","max_tokens":10,"messages":[{"role":"user","content":[` +
		`{"type":"image","source":{"type":"file","file_id":"` + image + `"}},` +
		`{"type":"document", "source" : {"file_id":"` + document + `","type":"file"},"title":"x"},{"type":"text","text":"both"}]}]}`)
}

// A file belongs to one workspace of one platform: its owner gets the ID, the
// others the file itself, where the owner's target allows that.
func TestFilesAreSentInline(t *testing.T) {
	png, pdf := []byte("\x89PNG\r\n\x1a\n not really"), []byte("%PDF-1.7 not really")
	owner := func(fetch string) target {
		return target{yaml: []string{"fetch_files: " + fetch}, files: map[string]fakeplatform.File{
			"file_img1": {Name: "a.png", MIME: "image/png", Data: png}, "file_pdf1": {Name: "a.pdf", MIME: "application/pdf", Data: pdf},
			"file_big1": {Name: "b.png", MIME: "image/png", Data: bytes.Repeat([]byte("x"), 5<<20+1)},
		}}
	}
	const beta = "files-api-2025-04-14"
	inline := func(name string) []byte {
		body := string(filesBody(name, "file_img1", "file_pdf1"))
		body = strings.Replace(body, `"model":"`+name+`"`, `"anthropic_version":"vertex-2023-10-16"`, 1)
		body = strings.Replace(body, `{"type":"file","file_id":"file_img1"}`, `{"type":"base64","media_type":"image/png","data":"`+base64.StdEncoding.EncodeToString(png)+`"}`, 1)
		return []byte(strings.Replace(body, `{"file_id":"file_pdf1","type":"file"}`, `{"type":"base64","media_type":"application/pdf","data":"`+base64.StdEncoding.EncodeToString(pdf)+`"}`, 1))
	}
	vertex := func(name string) target {
		return target{platform: fakeplatform.Vertex, yaml: []string{`models: {"` + name + `": claude-opus-4-6}`}}
	}
	overloaded := [][]fakeplatform.Answer{{fakeplatform.Error(529, "x")}}
	var flows []flow
	for _, c := range []struct {
		name, fetch, image string
		served, skips      string
	}{
		{"files-inline", "true", "file_img1", "b", ""},
		{"files-not-allowed", "false", "file_img1", "", "feature:file_id"},
		{"files-unknown", "true", "file_none", "", "feature:file_id"},
		{"files-odd-id", "true", "../v1/organizations", "", "feature:file_id"},
		{"files-too-large", "true", "file_big1", "", "too_large"},
	} {
		f := flow{
			lane: lane{name: c.name, uncounted: true, refused: true, targets: []target{owner(c.fetch), vertex(c.name)}}, scripts: overloaded,
			call:   call{body: filesBody(c.name, c.image, "file_pdf1"), header: header("Anthropic-Beta", beta)},
			status: 200, served: c.served, outcome: "failed_over", attempts: "a overloaded failover, b ok serve",
		}
		if c.served == "" {
			f.status, f.served, f.outcome, f.attempts, f.skips = 529, "a", "exhausted", "a overloaded stop", "b "+c.skips
		} else {
			f.more = func(t testing.TB, l *laneRun, _ *answer, _ record) {
				got := l.fakes[1].Requests()
				if len(got) != 1 || !bytes.Equal(got[0].Body, inline(c.name)) {
					t.Errorf("got %s\nwant %s", got[0].Body, inline(c.name))
				}
			}
		}
		flows = append(flows, f)
	}
	runFlows(t, options{}, flows...)
}
