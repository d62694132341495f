package translog

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"auditproxy/collector/translog/tiles"

	f_note "github.com/transparency-dev/formats/note"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	witnessTimeout = 5 * time.Second // of one request
	witnessDelay   = time.Second     // before a request is repeated; it doubles
	witnessLongest = 5 * time.Minute // such a delay
	maxAnswer      = 16 << 10        // bytes of a witness's answer
)

// A WitnessStatus is what is known of a witness.
type WitnessStatus struct {
	Name, URL string
	Size      int64     // entries that the newest checkpoint covers that it has signed
	Succeeded time.Time // last; zero: not since the start
	Failing   time.Time // since when no request has succeeded; zero: the last one has
	Err       error     // of the last request
	Refused   error     // ErrRolledBack, if the witness answered that and has signed nothing since
}

// witnesses brings checkpoints to witnesses and keeps their signatures.
//
// They are asked in rounds, all for the same checkpoint, so that it collects
// their signatures although the log grows. A witness that failed is left out of
// rounds for a while, so that it delays the others rarely.
type witnesses struct {
	config  Config
	key     *key
	reader  *tiles.Reader
	list    []*witness
	client  *http.Client
	changed chan struct{} // there is a new checkpoint
	delay   time.Duration // witnessDelay

	mu     sync.Mutex // held by rounds when they write, by others when they read
	best   []byte     // the checkpoint in tiles.WitnessedFile
	tree   tlog.Tree
	signed int // witnesses that have signed it
}

type witness struct {
	url string
	key note.Verifier

	// Owned by the round that asks it.
	known int64         // entries that it has signed, as far as we know
	delay time.Duration // zero: the last request succeeded
	due   time.Time     // not to be asked before

	// Guarded by the mutex of witnesses.
	last   tlog.Tree
	status WitnessStatus
}

func newWitnesses(c Config, k *key, r *tiles.Reader, keys []note.Verifier) *witnesses {
	w := &witnesses{config: c, key: k, reader: r, changed: make(chan struct{}, 1), delay: witnessDelay}
	// An answer is never elsewhere: a redirected POST is not one.
	w.client = &http.Client{
		Timeout:       witnessTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for i, theirs := range keys {
		url := strings.TrimSuffix(c.Witnesses[i].URL, "/")
		w.list = append(w.list, &witness{url: url, key: theirs, status: WitnessStatus{Name: theirs.Name(), URL: url}})
	}
	w.load()
	return w
}

// load reads the signatures that are there from before.
func (w *witnesses) load() {
	best, err := w.reader.Witnessed(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var tree tlog.Tree
	var sigs []note.Signature
	if err == nil {
		if tree, err = w.key.tree(best); err == nil {
			sigs, err = w.signatures(best)
		}
	}
	if err != nil {
		w.config.Log.Warn("log checkpoint with witnesses not readable", zap.Error(err))
		return
	}
	w.best, w.tree, w.signed = best, tree, len(sigs)
	for _, it := range w.list {
		for _, s := range sigs {
			if s.Name == it.key.Name() && s.Hash == it.key.KeyHash() {
				it.known, it.last, it.status.Size = tree.N, tree, tree.N
			}
		}
	}
}

// signatures returns those of our witnesses on a checkpoint.
func (w *witnesses) signatures(signed []byte) ([]note.Signature, error) {
	keys := make([]note.Verifier, len(w.list))
	for i, it := range w.list {
		keys[i] = it.key
	}
	n, err := note.Open(signed, note.VerifierList(keys...))
	if errors.As(err, new(*note.UnverifiedNoteError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return n.Sigs, nil
}

// notify says that there may be a new checkpoint.
func (w *witnesses) notify() {
	select {
	case w.changed <- struct{}{}:
	default: // it has not been seen yet
	}
}

func (w *witnesses) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		case <-timer.C:
		}
		timer.Stop()
		if wait := w.round(ctx); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// round asks the witnesses that are due for signatures on the newest checkpoint,
// and returns when another round is; zero: after the next checkpoint.
func (w *witnesses) round(ctx context.Context) time.Duration {
	signed, err := w.reader.Checkpoint(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	var tree tlog.Tree
	if err == nil {
		tree, err = w.key.tree(signed)
	}
	if err != nil {
		w.config.Log.Error("log checkpoint not readable for witnesses", zap.Error(err))
		return witnessLongest
	}
	if tree.N == 0 {
		return 0
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	var found []note.Signature
	now := time.Now()
	for _, it := range w.list {
		if it.last == tree || now.Before(it.due) {
			continue
		}
		group.Go(func() {
			sig, err := w.ask(ctx, it, signed, tree)
			w.result(ctx, it, tree, err)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, sig)
			}
		})
	}
	group.Wait()
	if err := w.keep(signed, tree, found); err != nil {
		w.config.Log.Error("log checkpoint with witnesses not written", zap.Error(err))
	}
	var wait time.Duration
	for _, it := range w.list {
		if left := time.Until(it.due); it.delay > 0 && (wait == 0 || left < wait) {
			wait = max(left, time.Millisecond)
		}
	}
	return wait
}

// result records how a request ended.
func (w *witnesses) result(ctx context.Context, it *witness, tree tlog.Tree, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.config.Log.With(zap.String("witness", it.key.Name()), zap.String("url", it.url))
	it.status.Err = err
	if err == nil {
		if !it.status.Failing.IsZero() {
			log.Info("witness signs again")
		}
		it.known, it.last, it.delay = tree.N, tree, 0
		it.status.Size, it.status.Succeeded, it.status.Failing, it.status.Refused = tree.N, time.Now(), time.Time{}, nil
		return
	}
	if ctx.Err() != nil {
		return
	}
	refused := errors.Is(err, ErrRolledBack)
	switch {
	case refused && it.status.Refused == nil:
		log.Error("witness has signed another history of the log", zap.Error(err))
	case it.status.Failing.IsZero():
		log.Warn("witness does not sign", zap.Error(err))
	}
	if it.status.Failing.IsZero() {
		it.status.Failing = time.Now()
	}
	if refused {
		it.status.Refused = err
	}
	it.delay = min(max(2*it.delay, w.delay), witnessLongest)
	it.due = time.Now().Add(it.delay)
}

// ask returns a witness's signature on a checkpoint.
func (w *witnesses) ask(ctx context.Context, it *witness, signed []byte, tree tlog.Tree) (note.Signature, error) {
	if it.known > tree.N {
		it.known = 0
	}
	for again := true; ; again = false {
		proof, err := w.reader.ConsistencyProof(ctx, tree, it.known, tree.N)
		if err != nil {
			return note.Signature{}, err
		}
		body := fmt.Appendf(nil, "old %d\n", it.known)
		for _, hash := range proof {
			body = fmt.Appendf(body, "%s\n", base64.StdEncoding.EncodeToString(hash[:]))
		}
		status, answer, err := w.post(ctx, it.url+"/add-checkpoint", append(append(body, '\n'), signed...))
		if err != nil {
			return note.Signature{}, err
		}
		switch status {
		case http.StatusOK:
			return checkAnswer(signed, answer, it.key)
		case http.StatusConflict:
			size, err := strconv.ParseInt(strings.TrimSuffix(string(answer), "\n"), 10, 64)
			switch {
			case len(answer) == 0:
				// transparency-dev's witness answers so if it has signed another tree of this size.
				return note.Signature{}, errors.New("the witness has seen another history of this log, or names no size")
			case err != nil || size < 0 || size == it.known:
				return note.Signature{}, fmt.Errorf("the witness has another size, but answers %.80q", answer)
			case size > tree.N:
				return note.Signature{}, fmt.Errorf("%w: it has a checkpoint of %d entries, the witness has signed one of %d", ErrRolledBack, tree.N, size)
			case !again:
				return note.Signature{}, fmt.Errorf("the witness names another size each time, last %d", size)
			}
			it.known = size
		case http.StatusUnprocessableEntity:
			return note.Signature{}, fmt.Errorf("%w: the witness has seen another history of it: %.200q", ErrRolledBack, answer)
		case http.StatusNotFound, http.StatusForbidden:
			return note.Signature{}, fmt.Errorf("the witness does not know this log or its key %s: %d: %.200q", w.key.public, status, answer)
		default:
			return note.Signature{}, fmt.Errorf("the witness answered %d: %.200q", status, answer)
		}
	}
}

func (w *witnesses) post(ctx context.Context, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the witness's answer has more than %d bytes", maxAnswer)
	}
	return resp.StatusCode, answer, err
}

// checkAnswer returns the signature by a key in a witness's answer, which is lines of
// signatures on the checkpoint.
func checkAnswer(signed, answer []byte, key note.Verifier) (note.Signature, error) {
	var none note.Signature
	for line := range strings.Lines(string(answer)) {
		if !strings.HasPrefix(line, "— ") || !strings.HasSuffix(line, "\n") {
			return none, fmt.Errorf("the witness answered %.80q, which is not a signature", line)
		}
	}
	// Without an empty line the answer cannot change the text that is signed.
	n, err := note.Open(append(append([]byte(nil), signed...), answer...), note.VerifierList(key))
	if err != nil {
		return none, fmt.Errorf("checking the witness's signature: %w", err)
	}
	at, err := f_note.CoSigV1Timestamp(n.Sigs[0])
	if err != nil || at.Unix() <= 0 {
		return none, errors.New("checking the witness's signature: it has no time")
	}
	return n.Sigs[0], nil
}

// keep adds signatures to a checkpoint. It prefers a newer checkpoint, unless that
// has fewer signatures than the quorum and than the older one.
func (w *witnesses) keep(signed []byte, tree tlog.Tree, found []note.Signature) error {
	if len(found) == 0 {
		return nil
	}
	// Only rounds change what this reads, so the mutex is not held while it writes.
	best, n := append([]byte(nil), signed...), len(found)
	if w.best != nil && tree == w.tree {
		best, n = append([]byte(nil), w.best...), w.signed+len(found)
	} else if n < min(w.signed, w.config.Quorum) {
		return nil
	}
	for _, s := range found {
		best = fmt.Appendf(best, "— %s %s\n", s.Name, s.Base64)
	}
	if err := replacePublic(filepath.Join(w.config.Dir, tiles.WitnessedFile), best); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.best, w.tree, w.signed = best, tree, n
	return nil
}

// merged returns a checkpoint with the signatures of witnesses, if there are any
// on this one.
func (w *witnesses) merged(signed []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, _, _ := bytes.Cut(signed, []byte("\n\n"))
	if with, _, _ := bytes.Cut(w.best, []byte("\n\n")); w.best != nil && bytes.Equal(text, with) {
		return append([]byte(nil), w.best...)
	}
	return signed
}

func (w *witnesses) status() (size int64, each []WitnessStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.best != nil && w.signed >= w.config.Quorum {
		size = w.tree.N
	}
	for _, it := range w.list {
		each = append(each, it.status)
	}
	return size, each
}
