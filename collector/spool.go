package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"auditproxy/collector/ingest"
	"auditproxy/internal/wait"
	"auditproxy/sink/spool"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	chunkRows  = 1000
	chunkBytes = 1 << 20

	pollSpools = 250 * time.Millisecond
	// A directory of many sessions takes long to list, so it is listed less
	// often: listing takes at most this part of the time, up to pollLast.
	pollShare = 20
	pollLast  = 5 * time.Second
	// A session that could not be read is tried again after this time.
	retrySession = time.Minute
	// Another process that has a session reads some of it within this time.
	stuckAfter = 5 * time.Minute
	// A dead session is read again once it is recovered, or after this time if
	// another process recovers it.
	lookDead = 15 * time.Second
	// Sessions are closed when the store has what was read of them. Open ones have three
	// files each, of which a process may have few; a second's batch has fewer sessions.
	maxOpen   = 2000
	fewFiles  = 1024 // where the limit of this process is not known
	freeFiles = 256  // of that limit: for the store, the engine and readers of the page
	waitOpen  = 20 * time.Millisecond
)

// A cursor is the position of a session.
type cursor struct {
	session *session
	at      spool.Position
}

// A session is one that is being read.
type session struct {
	dir, id string

	// The reading goroutine alone calls the consumer's Next, the committing
	// one alone its Commit; Close when pending is zero and reading has ended.
	consumer *spool.Consumer

	mu      sync.Mutex
	pending int   // chunks that are not committed; guarded by mu
	failed  error // of the last commit; guarded by mu
}

func (s *session) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending += n
}

func (s *session) idle() (idle bool, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending == 0, s.failed
}

// A spoolSource reads all sessions of its directories. One goroutine owns it.
type spoolSource struct {
	source
	dirs     []string
	hostKey  string // a file; "" for the key in each of dirs
	pipeline *pipeline[cursor]
	out      chan chunk[cursor]
	open     map[string]*session      // by directory and id
	finished map[string]struct{}      // by directory and id: complete
	next     map[string]attempt       // by directory and id
	said     map[string]loggedProblem // by directory: the last logged problem
	room     int                      // how many sessions may be in open
	busy     map[string]struct{}      // directories of which it was logged that another process reads them too
	stuck    map[string]stuck         // by directory and id: those that another process has
	listing  time.Duration            // spent on listing in the current scan

	mu        sync.Mutex
	recovered []string // directory and id, since the last scan; guarded by mu
}

// A stuck is how far a session was shipped when it was found that another process has
// it, or has gone on with it.
type stuck struct {
	shipped spool.Position
	since   time.Time
}

// An attempt is the time of the next attempt at a session, its last logged problem, and
// why what was read of it is not committed.
type attempt struct {
	at          time.Time
	text        string
	uncommitted error
}

// key names a session of several directories.
func key(dir, id string) string { return dir + "\x00" + id }

// A loggedProblem is the last logged problem and its time.
type loggedProblem struct {
	text string
	at   time.Time
}

func newSpoolSource(c *Collector) *spoolSource {
	return &spoolSource{
		source: c.source(), dirs: c.config.Spools, hostKey: c.config.HostKey, pipeline: newPipeline(c, newWriter(c, nil), commitCursors),
		out: make(chan chunk[cursor]), open: map[string]*session{},
		finished: map[string]struct{}{}, next: map[string]attempt{}, said: map[string]loggedProblem{}, busy: map[string]struct{}{}, stuck: map[string]stuck{}, room: openable(),
	}
}

// openable returns how many sessions may be open at once.
func openable() int {
	limit := unix.Rlimit{Cur: fewFiles}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return int(min(maxOpen, max(1, (max(limit.Cur, freeFiles)-freeFiles)/3)))
}

// run reads the directories until ctx ends.
func (s *spoolSource) run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.pipeline.run(ctx, s.out) })
	for _, dir := range s.dirs {
		wg.Go(func() { s.recover(ctx, dir) })
		wg.Go(func() { watchBacklog(ctx, dir, s.metrics) })
		if _, err := os.Stat(filepath.Join(dir, "sessions")); errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("there is no spool yet; the first session makes it, unless spool.dirs names another place than the proxy does", zap.String("dir", dir))
		}
	}
	for ctx.Err() == nil {
		s.listing = 0
		s.scan(ctx)
		wait.For(ctx, min(max(pollSpools, pollShare*s.listing), pollLast))
	}
	wg.Wait()
	for _, open := range s.open {
		open.consumer.Close() // records that were not committed are read again
	}
	return nil
}

func commitCursors(marks []cursor) error {
	last := map[*session]cursor{}
	count := map[*session]int{}
	for _, m := range marks { // ascending in each session
		last[m.session] = m
		count[m.session]++
	}
	var errs []error
	for s, m := range last {
		err := s.consumer.Commit(m.at)
		if err != nil {
			errs = append(errs, fmt.Errorf("session %q: %w", s.id, err))
		}
		s.mu.Lock()
		s.failed = err
		s.pending -= count[s]
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// say logs a problem of a directory that is new, or was logged long ago.
func (s *spoolSource) say(dir string, err error) {
	now := loggedProblem{err.Error(), time.Now()}
	if was := s.said[dir]; was.text != now.text || now.at.Sub(was.at) >= sayEvery {
		s.said[dir] = now
		s.log.Warn("spool not read", zap.String("dir", dir), zap.Error(err))
	}
}

// recover ends the sessions of a directory whose proxies died, so that their
// last calls are stored although no other proxy starts. It has its own
// goroutine, so that a long recovery does not delay reading.
func (s *spoolSource) recover(ctx context.Context, dir string) {
	left := s.metrics.unrecovered.WithLabelValues(dir)
	r := spool.NewRecoverer(spool.RecoverConfig{Dir: dir, KeyFile: s.hostKey, Log: s.log})
	r.Run(ctx, func(done []spool.Recovered, failed int) {
		left.Set(float64(failed))
		s.metrics.recovered.Add(float64(len(done)))
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, d := range done {
			s.recovered = append(s.recovered, key(dir, d.Session))
		}
	})
}

// sessionsOf is the key of what concerns sessions of a directory, which itself is read,
// and cursorsOf that of their cursors, which cannot be written where they can be read.
type (
	sessionsOf string
	cursorsOf  string
)

// scan reads the records of every session, and closes those that are
// complete.
func (s *spoolSource) scan(ctx context.Context) {
	s.mu.Lock()
	for _, name := range s.recovered {
		delete(s.next, name)
	}
	s.recovered = nil
	s.mu.Unlock()
	there := 0
	for _, dir := range s.dirs {
		began := time.Now()
		ids, err := spool.Names(dir)
		s.listing += time.Since(began)
		s.health.tell(dir, fmt.Sprintf("reading spool %q", dir), err)
		if err != nil {
			s.metrics.sourceErrors.Inc()
			s.say(dir, err)
		} else {
			delete(s.said, dir)
		}
		var failing, uncommitted error // of the first session
		for _, id := range ids {
			if ctx.Err() != nil {
				return
			}
			if _, finished := s.finished[key(dir, id)]; !finished {
				s.look(ctx, dir, id)
			}
			if failing == nil {
				failing = s.failing(dir, id)
			}
			if uncommitted == nil {
				uncommitted = s.uncommitted(dir, id)
			}
		}
		s.health.tell(sessionsOf(dir), fmt.Sprintf("reading sessions of spool %q", dir), failing)
		s.health.tell(cursorsOf(dir), fmt.Sprintf("writing cursors of spool %q", dir), uncommitted)
		there += len(ids)
	}
	if len(s.finished)+len(s.next) > 2*there {
		// Retention removed many. Sessions that still exist are opened once
		// more.
		clear(s.finished)
		clear(s.next)
		clear(s.stuck)
	}
	s.health.tell(wholeSource, "", nil)
}

// failing returns why nothing of a session is read, nil if it is. Another process that
// has it and reads nothing may be stopped, or be the agent's, which owns the files.
func (s *spoolSource) failing(dir, id string) error {
	if text := s.next[key(dir, id)].text; text != "" {
		return fmt.Errorf("session %q: %s", id, text)
	}
	if since := s.stuck[key(dir, id)].since; !since.IsZero() && time.Since(since) > stuckAfter {
		return fmt.Errorf("session %q: another process has locked it, and has read nothing since %s: end that process, see fuser ship.lock", id, since.UTC().Format(time.RFC3339))
	}
	return nil
}

// uncommitted returns why what was read of a session is not committed, nil if it is: it
// is read again by each start, and never removed from the spool.
func (s *spoolSource) uncommitted(dir, id string) error {
	err := s.next[key(dir, id)].uncommitted
	if open := s.open[key(dir, id)]; open != nil {
		_, err = open.idle()
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("session %q: %w", id, err)
}

// look reads more of one session. A problem with it does not affect others.
func (s *spoolSource) look(ctx context.Context, dir, id string) {
	name := key(dir, id)
	open, last := s.open[name], s.next[name]
	waits := time.Now().Before(last.at)
	if open == nil && waits {
		return
	}
	began := time.Now()
	e, there := spool.Look(dir, id)
	s.listing += time.Since(began)
	err := e.Err
	if open == nil && err == nil && !e.Unshipped() {
		delete(s.stuck, name)
		switch {
		case !there:
			delete(s.next, name)
		case e.Finished():
			s.finished[name] = struct{}{}
			delete(s.next, name)
		case e.State != spool.Live:
			s.next[name] = attempt{at: time.Now().Add(lookDead)}
		default:
			delete(s.next, name)
		}
		return
	}
	if open == nil && err == nil {
		if !s.makeRoom(ctx) {
			return
		}
		if open, err = s.begin(dir, id); err == nil {
			open.failed = last.uncommitted // until a commit succeeds
			s.open[name] = open
		}
	}
	if err == nil && !waits {
		err = s.read(ctx, open)
	}
	if !waits && (err == nil || errors.Is(err, spool.ErrBusy)) {
		delete(s.next, name)
	}
	if !errors.Is(err, spool.ErrBusy) {
		delete(s.stuck, name)
	} else if was := s.stuck[name]; was.since.IsZero() || was.shipped != e.Shipped {
		s.stuck[name] = stuck{e.Shipped, time.Now()}
	}
	if _, told := s.busy[dir]; errors.Is(err, spool.ErrBusy) && !told {
		s.busy[dir] = struct{}{}
		s.log.Warn("another process reads this spool too, and has what it reads in its own store or in Kafka; let only one do so",
			zap.String("dir", dir), zap.String("session", id))
	}
	if err != nil && !waits && !errors.Is(err, spool.ErrBusy) && ctx.Err() == nil {
		s.metrics.sourceErrors.Inc()
		if err.Error() != last.text {
			s.log.Warn("session not read", zap.String("session", id), zap.Error(err))
		}
		s.next[name] = attempt{time.Now().Add(retrySession), err.Error(), last.uncommitted}
	}
	if open != nil {
		s.closeIdle(name, open)
	}
}

// makeRoom waits until another session may be opened. It returns false if ctx ends
// before.
func (s *spoolSource) makeRoom(ctx context.Context) bool {
	for len(s.open) >= s.room {
		s.health.tell(wholeSource, "", nil) // the first scan of a long history lasts
		for name, open := range s.open {
			s.closeIdle(name, open)
		}
		if len(s.open) >= s.room && wait.For(ctx, waitOpen) != nil {
			return false
		}
	}
	return true
}

// closeIdle closes a session of which nothing is under way to the store.
func (s *spoolSource) closeIdle(name string, open *session) {
	idle, failed := open.idle()
	if !idle {
		return
	}
	delete(s.open, name)
	if failed != nil { // all of it is read again
		s.next[name] = attempt{at: time.Now().Add(retrySession), uncommitted: failed}
	}
	if err := open.consumer.Close(); err != nil {
		s.log.Warn("session not closed", zap.String("session", open.id), zap.Error(err))
	}
}

func (s *spoolSource) begin(dir, id string) (*session, error) {
	c, err := spool.OpenConsumer(spool.ReaderConfig{Dir: dir, Session: id})
	if err != nil {
		return nil, err
	}
	return &session{dir: dir, id: id, consumer: c}, nil
}

// read gives the session's new records to the pipeline.
func (s *spoolSource) read(ctx context.Context, open *session) error {
	for {
		var c chunk[cursor]
		var end error
		for end == nil && len(c.rows)+len(c.letters) < chunkRows && c.bytes < chunkBytes {
			var item spool.Item
			if item, end = open.consumer.Next(); end == nil {
				s.take(&c, open, item)
			}
		}
		if c.len() > 0 {
			open.add(1)
			select {
			case s.out <- c:
				s.health.tell(wholeSource, "", nil) // a first session of a million records lasts
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch {
		case errors.Is(end, io.EOF):
			return nil
		case end != nil:
			return end
		}
	}
}

// take decodes one item into c.
func (s *spoolSource) take(c *chunk[cursor], open *session, item spool.Item) {
	c.mark = cursor{open, item.End()}
	m := ingest.Message{
		Source: ingest.Source{Topic: ingest.SpoolTopic, Partition: item.Pos.Segment, Offset: uint64(item.Pos.Offset)},
		Key:    []byte(open.id),
		Value:  item.Line,
	}
	switch {
	case item.Damage == spool.Missing:
		// End would be an offset; segments are counted here.
		c.mark.at = spool.Position{Segment: item.Pos.Segment + uint32(item.Length)}
		c.gaps = append(c.gaps, ingest.Gap{
			Topic: ingest.SpoolTopic, Partition: item.Pos.Segment, From: uint64(item.Pos.Segment), To: uint64(item.Pos.Segment) + uint64(item.Length) - 1,
			Session: open.id, Reason: item.Damage.String(), Seen: time.Now(),
		})
		s.log.Error("segments are missing", zap.String("session", open.id), zap.Uint32("from", item.Pos.Segment), zap.Int64("segments", item.Length))
	case item.Damage == spool.Intact || item.Damage == spool.Conflicted:
		// A record that contradicts another has its own hash and shows as a
		// conflict.
		c.add(s.decoder, m)
	default:
		c.letter(s.decoder.Damaged(m, fmt.Sprintf("%s, %d bytes", item.Damage, item.Length)))
	}
}
