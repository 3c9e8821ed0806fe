package fakeplatform

import (
	"net/http"
	"strconv"
	"strings"
)

// File is what GET /v1/files/{id} and its /content answer with.
type File struct {
	Name, MIME string
	Data       []byte
	// Uploaded files can't be downloaded: only what a tool has made can.
	Uploaded bool
}

// checkFile: an unknown file is refused before anything is scripted.
func checkFile(platform string, rules Rules, r *Request) (string, Answer) {
	if r.call.op != opFile && r.call.op != opFileContent {
		return "", Answer{}
	}
	f, ok := rules.Files[r.call.id]
	switch {
	case rules.Hosting == "azure":
		return inner(platform, 400, "Files are not available for models hosted on Azure")
	case platform != Anthropic && !strings.Contains(r.Get("anthropic-beta"), "files-api-"):
		return inner(platform, 400, "files need the beta files-api-2025-04-14")
	case !ok:
		return inner(platform, 404, "File not found: "+r.call.id)
	case f.Uploaded && r.call.op == opFileContent:
		return inner(platform, 400, "File '"+r.call.id+"' is not downloadable")
	}
	return "", Answer{}
}

func fileAnswer(rules Rules, c call) Answer {
	f := rules.Files[c.id]
	if c.op == opFileContent {
		a := Raw(http.StatusOK, f.MIME, f.Data, Field{"content-disposition", "attachment; filename=" + strconv.Quote(f.Name)})
		a.Name = "file"
		return a
	}
	a := jsonAnswer(http.StatusOK, map[string]any{
		"id": c.id, "type": "file", "filename": f.Name, "mime_type": f.MIME, "size_bytes": len(f.Data), "created_at": "2026-11-01T00:00:00Z", "downloadable": !f.Uploaded,
	}, nil)
	a.Name = "file metadata"
	return a
}

// batchAnswer is a batch that has not ended, whatever was asked for.
func batchAnswer() Answer {
	a := jsonAnswer(http.StatusOK, map[string]any{
		"id": "msgbatch_fake_1", "type": "message_batch", "processing_status": "in_progress", "created_at": "2026-11-01T00:00:00Z", "expires_at": "2026-11-02T00:00:00Z",
		"ended_at": nil, "results_url": nil, "request_counts": map[string]int{"processing": 1, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
	}, nil)
	a.Name = "batch"
	return a
}
