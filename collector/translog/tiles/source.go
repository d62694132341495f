package tiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// errTooLong is a file that is longer than any of its kind.
var errTooLong = errors.New("it has more")

// A source is where the files of a log are. A file with more than most bytes is an
// error, one that is missing is fs.ErrNotExist.
type source interface {
	read(ctx context.Context, name string, most int) ([]byte, error)
}

func open(place string) (source, error) {
	if !strings.HasPrefix(place, "http://") && !strings.HasPrefix(place, "https://") {
		return directory(place), nil
	}
	prefix, err := url.Parse(place)
	if err != nil {
		return nil, err
	}
	if prefix.Host == "" {
		return nil, errors.New("the address names no host")
	}
	return &server{prefix: prefix, client: &http.Client{Timeout: 30 * time.Second}}, nil
}

// A directory has the files of a log.
type directory string

func (d directory) read(ctx context.Context, name string, most int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(string(d), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, most)
}

// A server serves the files of a log.
type server struct {
	prefix *url.URL
	client *http.Client
}

func (s *server) read(ctx context.Context, name string, most int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.prefix.JoinPath(name).String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return readAll(resp.Body, most)
	case http.StatusNotFound, http.StatusGone:
		return nil, fmt.Errorf("%s: %w", req.URL.Redacted(), fs.ErrNotExist)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%s: the server answered %s, so it gives the log to none without a login: set evidence.serve of its collector, have a proxy before it let /log/ pass, or name the log's directory", req.URL.Redacted(), resp.Status)
	}
	return nil, fmt.Errorf("%s: the server answered %s", req.URL.Redacted(), resp.Status)
}

func readAll(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > most {
		return nil, fmt.Errorf("%w than %d bytes", errTooLong, most)
	}
	return b, nil
}
