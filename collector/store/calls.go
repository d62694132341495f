package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// A Page asks for a part of a list, newest first.
type Page struct {
	Before *Cursor // only what is older
	After  *Cursor // only what is newer, the oldest of it
	Limit  int     // at most 5000. Required.
	Raw    bool    // with the records' bytes
}

// Lines is a part of a list, newest first.
type Lines struct {
	Lines        []Line
	Older, Newer bool // the list continues
}

const maxLimit = 5000

// firstSpan is the first time range searched for records; the next one is
// adjacent and eight times longer, and so on. A page of a long list needs
// little reading, and a short list costs little more: a fleet has millions of
// records in a few minutes, and the index of times tells that a range is empty.
const firstSpan = 10 * time.Second

// longSpan is from where on time ranges no longer grow: eight of it fit into a
// time.Duration, and a few into all of time.
const longSpan = 10 * 365 * 24 * time.Hour

// Calls returns a part of the records that match f.
func (r *Reader) Calls(ctx context.Context, f Filter, p Page) (Lines, error) {
	p.Limit = min(p.Limit, maxLimit)
	now := time.Now()
	q := newSeek(f, p, now)
	if p.Before == nil && p.After == nil {
		var err error
		var refused *ch.Exception
		if q.latest, err = r.latest(ctx, now); err != nil && !errors.As(err, &refused) {
			return Lines{}, err
		}
		// A reader who may not see the sessions has no hint, and sees the records.
	}
	var found []key
	for len(found) <= p.Limit && !q.done() {
		part, err := r.seek(ctx, &q, p.Limit+1-len(found))
		if err != nil {
			return Lines{}, err
		}
		found = append(found, part...)
	}
	more := len(found) > p.Limit
	lines, err := r.lines(ctx, found[:min(len(found), p.Limit)], p.Raw)
	if p.After != nil {
		return Lines{lines, true, more}, err
	}
	return Lines{lines, more, p.Before != nil}, err
}

// A latest has times of the newest records, zero without any.
type latest struct {
	Newest  time.Time `ch:"newest"`  // up to now
	Ahead   time.Time `ch:"ahead"`   // of all, also by clocks that are ahead
	Arrived time.Time `ch:"arrived"` // when the last record did
}

// latest reads about where the newest records are: of a fleet that sleeps, or whose
// records wait, the first time ranges from now on would be empty, and the next one
// very long. It is a hint. Nothing is left out where it is wrong.
func (r *Reader) latest(ctx context.Context, now time.Time) (l latest, err error) {
	for _, since := range []time.Time{now.Add(-24 * time.Hour), minTime} {
		l, err = askOne[latest](ctx, r, "the newest record", `
			SELECT max(last_ts) AS ahead, maxIf(last_ts, last_ts <= fromUnixTimestamp64Micro({now:Int64}, 'UTC')) AS newest, max(last_ingested) AS arrived
			FROM session_states WHERE bitXor(toUnixTimestamp64Milli(last_ingested), 0) >= {since:Int64}`, args{"now": micros(now), "since": since.UnixMilli()})
		if err != nil || l.Arrived.After(minTime) {
			break
		}
	}
	return l, err
}

// A key is the position of a record in the order of lists.
type key struct {
	TS       time.Time `ch:"ts"`
	RecordID uuid.UUID `ch:"record_id"`
	Hash     string    `ch:"hash"`
}

// lines reads the records at keys, newest first. Finding keys first is many
// times faster: most columns are then read for one page of records only.
func (r *Reader) lines(ctx context.Context, keys []key, raw bool) ([]Line, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	columns := lineColumns
	if raw {
		columns += ", raw"
	}
	times, ids, hashes := make([]int64, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		times[i], ids[i], hashes[i] = micros(k.TS), k.RecordID.String(), k.Hash
	}
	return ask[Line](ctx, r, "records", "SELECT "+columns+` FROM events FINAL
		PREWHERE ts IN (SELECT fromUnixTimestamp64Micro(arrayJoin({times:Array(Int64)}), 'UTC')) AND record_id IN {ids:Array(UUID)}
		  AND ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Micro({to:Int64}, 'UTC')
		WHERE hash IN {hashes:Array(String)}
		ORDER BY ts DESC, record_id DESC, payload_hash DESC`,
		args{"times": times, "ids": ids, "hashes": hashes, "from": slices.Min(times), "to": slices.Max(times)})
}

// A seek walks through time away from its start.
type seek struct {
	where     string
	args      args
	rare      bool // where holds for few records
	ascending bool
	at, end   time.Time // what is left
	now       time.Time
	latest    latest        // the first time range reaches to them
	span      time.Duration // of the next time range
}

func newSeek(f Filter, p Page, now time.Time) seek {
	q := seek{ascending: p.After != nil, rare: f.Rule != "" || f.Detector != "" || f.Risk != "", now: now, latest: latest{Newest: maxTime, Ahead: maxTime}, span: firstSpan}
	q.where, q.args = f.where()
	w := f.Window.bounded()
	var from *Cursor
	if q.ascending {
		from = p.After
		q.at, q.end = later(w.From, from.TS), w.To
		q.where += " AND (ts, record_id, payload_hash) > "
	} else {
		// Records a day ahead are not accepted.
		q.at, q.end = earlier(w.To, now.Add(25*time.Hour)), w.From
		if from = p.Before; from != nil {
			q.at = earlier(q.at, from.TS.Add(time.Microsecond))
			q.where += " AND (ts, record_id, payload_hash) < "
		}
	}
	if from != nil {
		q.where += "(fromUnixTimestamp64Micro({at:Int64}, 'UTC'), {at_id:UUID}, toFixedString(unhex({at_hash:String}), 16))"
		q.args["at"], q.args["at_id"], q.args["at_hash"] = micros(from.TS), from.RecordID.String(), from.Hash
	}
	return q
}

func (q *seek) done() bool {
	if q.ascending {
		return !q.at.Before(q.end)
	}
	return !q.at.After(q.end)
}

// next moves q on and returns the time between.
func (q *seek) next() (w Window) {
	span := q.span
	q.span = 8 * min(q.span, longSpan)
	if q.ascending {
		w = Window{q.at, earlier(q.at.Add(span), q.end)}
		q.at = w.To
		return w
	}
	newest, end := q.latest.Newest, q.end
	if q.at.After(q.now) { // of clocks that are ahead there may be any number: they are searched apart
		newest, end = q.latest.Ahead, later(q.now, q.end)
	}
	w = Window{later(earlier(q.at, newest).Add(-span), end), q.at}
	if w.From.Equal(q.now) {
		q.span = firstSpan
	}
	q.at = w.From
	return w
}

// seek returns the first keys in the next time range. PREWHERE filters copies of a
// record before FINAL merges them; they are equal in all filtered columns.
func (r *Reader) seek(ctx context.Context, q *seek, limit int) ([]key, error) {
	w := q.next()
	a := maps.Clone(q.args)
	a["from"], a["to"], a["limit"] = micros(w.From), micros(w.To), limit
	order := "DESC"
	if q.ascending {
		order = "ASC"
	}
	// Parts and granules are chosen by all conditions; then each column is read only
	// where the conditions before it hold.
	where := "ts >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND ts < fromUnixTimestamp64Micro({to:Int64}, 'UTC')"
	if q.rare {
		where = q.where + " AND " + where
	} else {
		where += " AND " + q.where
	}
	return ask[key](ctx, r, "records", "SELECT ts, record_id, lower(hex(payload_hash)) AS hash FROM events FINAL PREWHERE "+where+
		" ORDER BY ts "+order+", record_id "+order+", payload_hash "+order+" LIMIT {limit:UInt32}", a)
}
