package translog

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"auditproxy/collector/translog/tiles"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/tlog"
)

// Handler serves the log for reading, below the path that its requests have been
// stripped of: the checkpoints, and the tiles that the newest checkpoint covers.
// Nothing else is served, and no directory is listed.
func (l *Log) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		path := strings.TrimPrefix(r.URL.Path, "/")
		var err error
		if tile, ok := tiles.ParsePath(path); ok {
			err = l.serveTile(w, r, tile)
		} else {
			err = l.serveCheckpoint(w, r, path)
		}
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			http.NotFound(w, r)
		default:
			l.config.Log.Error("log file not served", zap.String("path", path), zap.Error(err))
			http.Error(w, "the log is not readable", http.StatusInternalServerError)
		}
	})
}

func (l *Log) serveCheckpoint(w http.ResponseWriter, r *http.Request, path string) error {
	var b []byte
	var err error
	switch path {
	case tiles.CheckpointFile:
		b, err = l.Checkpoint()
	case tiles.WitnessedFile:
		b, err = l.reader.Witnessed(r.Context())
	default:
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	return nil
}

// serveTile serves a tile for good, so only one that the checkpoint covers: after a
// crash others may get other contents.
func (l *Log) serveTile(w http.ResponseWriter, r *http.Request, t tlog.Tile) error {
	// The tile ends with hash N*256+W of its level; each covers 256^L entries.
	level := max(t.L, 0)
	covered := func(size int64) bool { return t.N <= size && t.N<<8+int64(t.W) <= size>>(8*level) }
	l.statusMu.Lock()
	known := l.status.Published
	l.statusMu.Unlock()
	if !covered(known) {
		size, err := l.published()
		if err != nil {
			return err
		}
		if !covered(size) {
			return fs.ErrNotExist
		}
	}
	f, err := os.Open(filepath.Join(l.config.Dir, filepath.FromSlash(tiles.Path(t))))
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}
