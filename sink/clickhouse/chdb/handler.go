//go:build linux || darwin

package chdb

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

const (
	maxRequests = 64               // of a role at a time; others wait
	maxReading  = 30 * time.Second // of a reader's statement in the engine
	insertChunk = 256 << 10        // bytes of an insert's data on their way

	// insertMemory is what an insert needs of a collector's full batch, with all
	// views. Inserts run only as far as half of the engine's memory has room for
	// them: the rest is for readers and merges.
	insertMemory = 128 << 20
	smallInsert  = 1 << 20 // bytes of data with which an insert waits for no other
)

// A handler serves ClickHouse's HTTP interface to one role.
type handler struct {
	engine  *engine
	role    Role
	slots   chan struct{} // one for each request that runs
	inserts chan struct{} // one for each insert that is not small
}

func newHandler(e *engine, r Role) *handler {
	return &handler{e, r, make(chan struct{}, maxRequests), make(chan struct{}, max(1, e.cfg.Memory/2/insertMemory))}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/ping":
		h.ping(w, r)
		return
	case r.URL.Path != "/":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost && r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "want GET or POST", http.StatusMethodNotAllowed)
		return
	case r.Method == http.MethodGet && r.URL.RawQuery == "":
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-r.Context().Done():
		return
	}
	q, err := readRequest(r)
	if err != nil {
		writeException(w, err)
		return
	}
	role := h.role
	if r.Method == http.MethodGet {
		role = Reader // a link changes nothing, as on the server
	}
	h.serve(r.Context(), w, q, role)
}

// ping answers once the engine itself has answered, so that the supervisor
// restarts an engine that hangs.
func (h *handler) ping(w http.ResponseWriter, r *http.Request) {
	c, err := h.engine.openPatiently(r.Context())
	if err == nil {
		_, err = c.query("SELECT 1", "TSV")
		c.close()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "Ok.\n")
}

// serve runs one statement on its own connection, which keeps settings,
// temporary tables and the remains of a statement that failed in mid-output
// from others.
func (h *handler) serve(ctx context.Context, w http.ResponseWriter, q request, role Role) {
	id := rand.Text()
	c, err := h.engine.openPatiently(ctx, "--log_comment="+id)
	if err != nil {
		writeException(w, exceptionf(codeUnknown, "%v", err))
		return
	}
	defer c.close()
	stop := h.engine.killWhenDone(ctx, id)
	defer stop()

	st, err := c.statement(q, role)
	switch {
	case err != nil:
	case role == Reader:
		err = st.readable()
	case killsQuery.MatchString(st.sql):
		err = exceptionf(codeBadArguments, "the engine cannot tell a client that KILL QUERY ended its statement, so that it would take a part for the whole: end its client instead")
	}
	if err == nil {
		err = h.prepare(c, q, role, st.kind)
	}
	if err != nil {
		writeException(w, err)
		return
	}
	format := st.format
	if format == "" {
		format = q.format
	}
	a := newAnswer(w, q, format)
	err = h.run(ctx, c, st, q, a)
	if err == nil && ctx.Err() != nil { // the library has no error for what killWhenDone ended
		err = exceptionf(codeCancelled, "the statement was ended")
	}
	a.end(err)
}

// killsQuery finds KILL QUERY, also behind comments.
var killsQuery = regexp.MustCompile(`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*KILL\s+QUERY\b`)

// statement returns the statement of q. The rest of the body is its data or,
// unless it is an INSERT, more of its text.
func (c *conn) statement(q request, role Role) (statement, error) {
	st, err := parse(c, q.sql, q.data != nil, role)
	if err != nil || q.data == nil || st.kind == inserts {
		return st, err
	}
	rest, err := readStatement(q.data)
	if err != nil {
		return statement{}, err
	}
	return parse(c, q.sql+"\n"+rest, false, role)
}

func (h *handler) run(ctx context.Context, c *conn, st statement, q request, a *answer) error {
	switch st.kind {
	case inserts:
		return h.insert(ctx, c, st, q.data)
	case selects:
		return stream(c, st, q.params, a)
	default:
		out, err := c.query(st.sql, a.format)
		if err != nil {
			return err
		}
		return a.chunk(out)
	}
}

// prepare sets the settings, those that restrict a reader last.
func (h *handler) prepare(c *conn, q request, role Role, k kind) error {
	settings, database := q.settings, q.database
	if k == inserts {
		settings = append([]param{h.share()}, settings...)
	}
	if role == Reader {
		var err error
		if settings, err = h.readerSettings(settings); err != nil {
			return err
		}
		if database == "" || database == "default" {
			database = h.engine.cfg.Database
		}
	} else {
		settings = append(settings, param{"async_insert", "0"}) // acknowledged data are stored
	}
	if database != "" && database != "default" {
		if _, err := c.query("USE "+quoteName(database), "TSV"); err != nil {
			return err
		}
	}
	sql, err := set(settings)
	if err != nil {
		return err
	}
	_, err = c.query(sql, "TSV")
	return err
}

// readerSettings returns the settings of a reader's statement.
func (h *handler) readerSettings(asked []param) ([]param, error) {
	seconds := maxReading.Seconds()
	settings := []param{{"final", "1"}, {"use_skip_indexes_if_final_exact_mode", "0"}}
	for _, s := range asked {
		switch {
		case s.name == "readonly":
			// Any requested value becomes 1.
		case s.name == "max_execution_time":
			v, err := strconv.ParseFloat(s.value, 64)
			if err != nil {
				return nil, exceptionf(codeBadArguments, "max_execution_time is %q, want seconds", s.value)
			}
			if v > 0 {
				seconds = min(seconds, v)
			}
		case !readerSettings.MatchString(s.name):
			return nil, exceptionf(codeReadonly, "a reader may not set %q", s.name)
		default:
			settings = append(settings, s)
		}
	}
	return append(settings,
		param{"max_execution_time", strconv.FormatFloat(seconds, 'f', -1, 64)},
		h.share(),
		param{"readonly", "1"}), nil
}

// share is the memory of one reader's statement, or of one insert: no statement
// takes all of it from the others.
func (h *handler) share() param {
	return param{"max_memory_usage", strconv.FormatInt(h.engine.cfg.Memory/2, 10)}
}

// insert streams the data. It is stored as a whole or not at all: a client
// that disconnects in the middle leaves nothing. Empty data is an error,
// because that is how clickhouse-go ends a batch that it could not encode.
func (h *handler) insert(ctx context.Context, c *conn, st statement, data io.Reader) error {
	in, err := c.insert(st.sql, st.format)
	if err != nil {
		return err
	}
	admitted := false
	defer func() {
		if admitted {
			<-h.inserts
		}
	}()
	buf := make([]byte, insertChunk)
	for size := 0; ; {
		n, err := data.Read(buf)
		size += n
		if size > smallInsert && !admitted {
			select {
			case h.inserts <- struct{}{}:
				admitted = true
			case <-ctx.Done():
				in.cancel()
				return errGone
			}
		}
		if failed := in.append(buf[:n]); failed != nil {
			in.cancel()
			return failed
		}
		switch {
		case errors.Is(err, io.EOF) && size > 0:
			return in.done()
		case err != nil:
			in.cancel()
			return exceptionf(codeBadArguments, "the data ended early: %v", err)
		}
	}
}

// stream streams the answer of a SELECT.
func stream(c *conn, st statement, params []param, a *answer) error {
	s, err := c.stream(st.sql, a.format, params)
	if err != nil {
		return err
	}
	defer s.close()
	return s.each(a.chunk)
}
