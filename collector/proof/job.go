package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"auditproxy/internal/wait"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/schemas/evidence/verify"
	"auditproxy/sink/clickhouse"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// A JobConfig configures a Job.
type JobConfig struct {
	DB        *clickhouse.DB // Required.
	Every     time.Duration  // Required.
	Collector string         // its name in the results

	// Again is of how many records sessions that are verified already are verified
	// again in one turn: what is changed later is found too. All sessions come in
	// turn, by their ids. 0: none are.
	Again int

	// Trust returns which of the keys that were found are trusted, and the others that
	// are. nil: none is.
	Trust func(found []string) (hosts []string, err error)

	// Known returns what a central log knows of sessions, of which there is one at
	// least. nil: there is no log.
	Known func(ctx context.Context, sessions []string) (Known, error)

	// Turned is called after each turn of this job: with when turns began to fail and why
	// the last one did, or with a zero time and nil. nil: nothing is called.
	Turned func(ctx context.Context, since time.Time, err error)

	Now     func() time.Time      // nil: time.Now
	Log     *zap.Logger           // nil: none
	Metrics prometheus.Registerer // nil: none
}

// Known is what a central log knows of sessions.
type Known struct {
	Size        int64 // of the log
	Checkpoints []verify.Checkpoint
	Starts      []evidence.Entry
}

// A Job verifies sessions that got records since they were verified, see
// Source.Due, and keeps what it finds in the table of verifications.
type Job struct {
	c        JobConfig
	source   *Source
	last     time.Time         // own mark
	again    string            // the last session that was verified again; "" at the start of a round
	tampered int               // results of this turn
	unread   map[string]string // why sessions could not be read; they are tried in each turn
	resumed  bool              // again is set
	results  *prometheus.CounterVec
	success  prometheus.Gauge
	waiting  prometheus.Gauge
	reached  prometheus.Gauge
	rounds   prometheus.Counter
}

// NewJob returns a job. It does not connect.
func NewJob(c JobConfig) *Job {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Trust == nil {
		c.Trust = func([]string) ([]string, error) { return nil, nil }
	}
	if c.Turned == nil {
		c.Turned = func(context.Context, time.Time, error) {}
	}
	if c.Known == nil {
		c.Known = func(context.Context, []string) (Known, error) { return Known{}, nil }
	}
	j := &Job{c: c, source: NewSource(c.DB), unread: map[string]string{},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "auditcollector", Name: "verified_sessions_total", Help: "Sessions whose evidence was checked, by what was found. One that goes on is checked again.",
		}, []string{"state"}),
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "auditcollector", Name: "verification_success_timestamp_seconds", Help: "When this collector last verified all sessions that were due, in seconds since 1970; of several collectors one does.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "auditcollector", Name: "verification_running", Help: "1 while this collector verifies.",
		}),
		reached: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "auditcollector", Name: "reverified_until_timestamp_seconds", Help: "Start of the newest session that was verified again in this round, in seconds since 1970; it falls when a round begins.",
		}),
		rounds: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "auditcollector", Name: "reverification_rounds_total", Help: "How often all sessions were verified again.",
		}),
	}
	j.success.Set(math.NaN())
	j.reached.Set(math.NaN())
	for _, state := range []verify.State{verify.OK, verify.Tampered, verify.Incomplete, verify.Erased, verify.Unsigned, verify.Unknown, verify.Unreadable} {
		j.results.WithLabelValues(string(state))
	}
	if c.Metrics != nil {
		c.Metrics.MustRegister(j.results, j.success, j.waiting, j.reached, j.rounds)
	}
	return j
}

// Run verifies at its start and then every time, until ctx ends.
func (j *Job) Run(ctx context.Context) error {
	var since time.Time // when turns began to fail
	for {
		began := j.c.Now()
		mine, err := j.turn(ctx)
		switch {
		case ctx.Err() != nil || !mine:
		case err == nil:
			since = time.Time{}
			j.c.Turned(ctx, since, nil)
		default:
			j.c.Log.Error("verification failed; it is tried again", zap.Duration("retry_in", j.c.Every), zap.Error(err))
			if since.IsZero() {
				since = began
			}
			j.c.Turned(ctx, since, err)
		}
		if wait.For(ctx, j.c.Every) != nil {
			return nil
		}
	}
}

// turn verifies unless another collector did within the time. Two that begin at once
// both do, and find the same. It reports whether the turn was this job's.
func (j *Job) turn(ctx context.Context) (mine bool, err error) {
	last, err := j.lastTurn(ctx)
	if err != nil {
		return true, err
	}
	now := j.c.Now()
	if age := now.Sub(last); !last.Equal(j.last) && age > -j.c.Every && age < j.c.Every*9/10 {
		return false, nil
	}
	j.waiting.Set(1)
	defer j.waiting.Set(0)
	j.tampered = 0
	defer j.tellOthers()
	j.last = now.UTC().Truncate(time.Millisecond)
	if err := j.c.DB.Exec(ctx, "taking the turn to verify", "INSERT INTO ${database}.alert_marks (name, kind, upto, closed, at) VALUES ('all', 'verification', %[1]s, false, %[1]s)", millis(j.last)); err != nil {
		return true, err
	}
	_, err = j.Once(ctx)
	if err = errors.Join(err, j.reverify(ctx), j.Chains(ctx)); err != nil {
		return true, err
	}
	if ids := slices.Sorted(maps.Keys(j.unread)); len(ids) > 0 {
		n := fmt.Sprint(len(ids))
		if len(ids) == mostUnread {
			n += " or more"
		}
		return true, fmt.Errorf("of the sessions, %s cannot be read; the first is %s: %s", n, ids[0], j.unread[ids[0]])
	}
	j.success.Set(float64(now.Unix()))
	return true, nil
}

// tellOthers logs how many sessions of a turn were tampered with beyond mostLogged. A writer to
// the topic can forge any number, and each is found again in each round.
func (j *Job) tellOthers() {
	if others := j.tampered - mostLogged; others > 0 {
		j.c.Log.Error("records of more sessions were tampered with", zap.Int("verifications", others))
	}
}

// lastTurn returns when a collector last began to verify.
func (j *Job) lastTurn(ctx context.Context) (at time.Time, err error) {
	err = j.source.query(ctx, "reading who verifies", "SELECT max(at) FROM "+j.c.DB.Name()+".alert_marks WHERE kind = 'verification'", func(rows driver.Rows) error {
		return rows.Scan(&at)
	})
	return at, err
}

// mostUnread is how many sessions that could not be read are tried in each turn, and
// mostLogged how many of them, and of those that were tampered with, are named in the log.
// Further ones are found again if no verification is stored of them, or by the next round.
const (
	mostUnread = 1000
	mostLogged = 100
)

// sessionsAtOnce is how many sessions are verified before what was found is stored.
const sessionsAtOnce = 1000

// Once verifies the sessions that are due and those that could not be read before, and
// returns how many sessions it found in each state.
func (j *Job) Once(ctx context.Context) (map[verify.State]int, error) {
	found := map[verify.State]int{}
	now := j.c.Now()
	ids := slices.Sorted(maps.Keys(j.unread))
	due, err := j.source.Due(ctx, now)
	for _, id := range due {
		if _, unread := j.unread[id]; !unread {
			ids = append(ids, id)
		}
	}
	for len(ids) > 0 && err == nil {
		n := min(len(ids), sessionsAtOnce)
		err = j.some(ctx, now, ids[:n], found)
		ids = ids[n:]
	}
	return found, err
}

// missedFor is how long a session that is missing is looked for.
const missedFor = 8 * 24 * time.Hour

// Chains looks for sessions that are missing among those of a host, and for two in
// one place, of the last week. It reads the first record of each session only.
func (j *Job) Chains(ctx context.Context) error {
	now := j.c.Now()
	since := now.Add(-missedFor)
	to := verify.New(verify.Config{Complete: since.Add(24 * time.Hour), Until: now.Add(-OnTheWay), Now: now})
	unread := []string{"''"} // no session that cannot be read is a missing one
	for id, why := range j.unread {
		unread = append(unread, quote(id))
		s := to.Session(id, verify.About{Live: true, Gone: true})
		s.Fail(errors.New(why))
		s.End()
	}
	sql := strings.NewReplacer("${database}", j.c.DB.Name(), "${first}", quote(firstID(since)), "${since}", millis(since), "${unread}", strings.Join(unread, ", ")).Replace(`
SELECT session_id, raw, leaf, evidence FROM (
    SELECT session_id, raw, toFixedString('', 32) AS leaf, '' AS evidence FROM ${database}.events
    WHERE kind = 'session_start' AND seq = 0 AND session_id >= ${first} AND session_id NOT IN (${unread}) AND ts >= ${since}
    UNION ALL
    SELECT session_id, '', hash, evidence FROM ${database}.leaves FINAL WHERE seq = 0 AND session_id >= ${first} AND session_id NOT IN (${unread}))
ORDER BY session_id`)
	var id string
	var current *verify.Session
	err := j.source.query(ctx, "reading starts of sessions", sql, func(rows driver.Rows) error {
		var session, raw, leaf, kept string
		if err := rows.Scan(&session, &raw, &leaf, &kept); err != nil {
			return err
		}
		if current == nil || session != id {
			if current != nil {
				current.End()
			}
			id, current = session, to.Session(session, verify.About{Live: true, Gone: true})
		}
		if raw != "" {
			current.Add(verify.Row{Line: []byte(raw)})
		} else {
			current.Add(verify.Row{HasSeq: true, Leaf: evidence.Hash([]byte(leaf)), Evidence: audit.JSON(kept)})
		}
		return nil
	})
	if current != nil {
		current.End()
	}
	if err != nil {
		return err
	}
	// Sessions of other keys count too, but not against those of these. That these cannot be
	// read, the verification of sessions says; what is missing is missing without them.
	if hosts, err := j.c.Trust(to.Unknown()); err == nil {
		to.Trust(hosts...)
	}
	return j.keep(ctx, now, to.Finish().Results, nil, 0)
}

// reverify verifies the next sessions again, of j.c.Again records together and at
// least one. A crash before the mark is written has them verified twice.
func (j *Job) reverify(ctx context.Context) error {
	if j.c.Again == 0 {
		return nil
	}
	if !j.resumed {
		if err := j.resume(ctx); err != nil {
			return err
		}
	}
	ids, err := j.nextAgain(ctx)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		if j.again != "" {
			j.rounds.Inc()
		}
		j.again = ""
	} else {
		if err := j.some(ctx, j.c.Now(), ids, map[verify.State]int{}); err != nil {
			return err
		}
		j.again = ids[len(ids)-1]
	}
	upto := time.UnixMilli(0)
	if started := (Session{ID: j.again}).Started(); !started.IsZero() {
		upto = started
	}
	j.reached.Set(float64(upto.Unix()))
	return j.c.DB.Exec(ctx, "storing what was verified again", "INSERT INTO ${database}.alert_marks (name, kind, upto, closed, at) VALUES ('all', 'reverification', %s, true, %s)", millis(upto), millis(j.c.Now()))
}

// resume reads where another process was. It returns to the first session of that
// millisecond.
func (j *Job) resume(ctx context.Context) error {
	var upto time.Time
	err := j.source.query(ctx, "reading what was verified again", "SELECT argMax(upto, at) FROM "+j.c.DB.Name()+".alert_marks WHERE kind = 'reverification'", func(rows driver.Rows) error {
		return rows.Scan(&upto)
	})
	if err != nil {
		return err
	}
	j.resumed = true
	if upto.Unix() > 0 {
		j.again = firstID(upto)
	}
	return nil
}

// nextAgain returns the sessions to verify again, from the table of sessions: a scan
// of all records each time would be more work than the verification.
func (j *Job) nextAgain(ctx context.Context) (ids []string, err error) {
	sql := strings.NewReplacer("${after}", quote(j.again), "${most}", fmt.Sprint(sessionsAtOnce), "${database}", j.c.DB.Name()).Replace(`
SELECT session_id, groupBitmapMerge(seqs) FROM ${database}.session_states WHERE session_id IN (
    SELECT DISTINCT session_id FROM ${database}.session_states WHERE session_id > ${after} ORDER BY session_id LIMIT ${most})
GROUP BY session_id ORDER BY session_id`)
	left := int64(j.c.Again)
	err = j.source.query(ctx, "looking for sessions to verify again", sql, func(rows driver.Rows) error {
		var id string
		var records uint64
		if err := rows.Scan(&id, &records); err != nil {
			return err
		}
		if left > 0 {
			ids = append(ids, id)
			left -= int64(records)
		}
		return nil
	})
	return ids, err
}

// some verifies sessions and stores what it finds.
func (j *Job) some(ctx context.Context, now time.Time, ids []string, found map[verify.State]int) error {
	log, err := j.c.Known(ctx, ids)
	if err != nil {
		return fmt.Errorf("reading the central log: %w", err)
	}
	to := verify.New(verify.Config{Checkpoints: log.Checkpoints, Starts: log.Starts, Partial: true, Now: now})
	sessions := map[string]Session{}
	check := Check{Selection: Selection{IDs: ids}, Now: now, Begin: func(one Session) { sessions[one.ID] = one }}
	if err := j.source.Check(ctx, check, to); err != nil {
		return err
	}
	hosts, err := j.c.Trust(to.Unknown())
	if err != nil {
		return err
	}
	to.Trust(hosts...)
	results := to.Finish().Results
	for _, r := range results {
		found[r.State]++
	}
	for _, id := range ids {
		delete(j.unread, id)
	}
	logged := 0
	// Nothing is stored of a session that could not be read: what is stored says until
	// when its records were verified.
	results = slices.DeleteFunc(results, func(r verify.Result) bool {
		unread := r.State == verify.Unreadable && r.SessionID != ""
		if unread {
			if len(j.unread) < mostUnread {
				j.unread[r.SessionID] = r.Note
			}
			j.results.WithLabelValues(string(r.State)).Inc()
			if logged++; logged > mostLogged {
				return true
			}
			j.c.Log.Error("a session cannot be read to verify it", zap.String("session", r.SessionID), zap.String("because", r.Note))
		}
		return unread
	})
	return j.keep(ctx, now, results, sessions, log.Size)
}

// keep counts and stores results.
func (j *Job) keep(ctx context.Context, now time.Time, results []verify.Result, sessions map[string]Session, size int64) error {
	for _, r := range results {
		j.results.WithLabelValues(string(r.State)).Inc()
		if r.State != verify.Tampered {
			continue
		}
		if j.tampered++; j.tampered <= mostLogged {
			j.c.Log.Error("records were tampered with", zap.String("session", r.SessionID), zap.Any("findings", r.Findings))
		}
	}
	if len(results) == 0 {
		return nil
	}
	return j.store(ctx, now, results, sessions, size)
}

// store stores results. An insert that is repeated changes nothing.
func (j *Job) store(ctx context.Context, now time.Time, results []verify.Result, sessions map[string]Session, size int64) error {
	sum := fnv.New128a()
	fmt.Fprint(sum, now.UnixNano(), j.c.Collector)
	for _, r := range results {
		fmt.Fprint(sum, r)
	}
	err := j.c.DB.Insert(ctx, "INSERT INTO "+j.c.DB.Name()+".verifications (tenant, session_id, state, at, host, user, first_ts, ingested, records, verified, findings, log_size, collector, subtrees)", sum.Sum(nil), func(b driver.Batch) error {
		for _, r := range results {
			one := sessions[r.SessionID]
			one.ID = r.SessionID
			list := append([]verify.Finding{}, r.Findings...)
			if r.Unclear { // for the page: the state alone does not tell it from a session that is running
				list = append(list, verify.Finding{What: "unclear", Detail: r.Note})
			}
			findings, err := json.Marshal(list)
			if err != nil {
				return err
			}
			ingested := one.Ingested
			if latest := now.Add(-settles); ingested.After(latest) {
				ingested = latest // what is on its way is looked at again
			}
			subtrees := make([]string, len(r.Subtrees))
			for i, root := range r.Subtrees {
				subtrees[i] = string(root[:])
			}
			err = b.Append(one.Tenant, r.SessionID, string(r.State), now, one.Host, one.User, one.Started(), ingested, uint64(r.Records), uint64(r.Verified), string(findings), uint64(size), j.c.Collector, subtrees)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return clickhouse.Classify("storing verifications", err)
}
