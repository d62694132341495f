package review

import (
	"cmp"
	"encoding/csv"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"auditproxy/collector/store"
	"auditproxy/schemas/escape"

	"go.uber.org/zap"
)

// exportPart is the number of records that an export reads at a time.
const exportPart = 5000

// exportHeader are the columns of an export for spreadsheets.
var exportHeader = []string{
	"ts", "record_id", "session_id", "seq", "call_no", "kind", "method", "tool", "target", "operations", "outcome", "error_type",
	"duration_ms", "tier", "host", "user", "client_id", "client", "server", "anomalies", "args",
	"risk", "detections", "decision", "rule", "approval", "approval_by", "policy_event", "policy_mode", "policy_source", "policy_detail", "policy_hash",
}

func (s *Server) exportCSV(w http.ResponseWriter, r *http.Request) {
	s.export(w, r, "text/csv; charset=utf-8; header=present", "calls.csv", false, func(out io.Writer) func([]store.Line) error {
		c := csv.NewWriter(out)
		c.UseCRLF = true // RFC 4180
		headed := false
		return func(lines []store.Line) error {
			if !headed {
				headed = true
				_ = c.Write(exportHeader) // the error stays until Flush
			}
			for _, l := range lines {
				_ = c.Write(cells(l))
			}
			c.Flush()
			return c.Error()
		}
	})
}

// cells are a record as a row of a spreadsheet.
func cells(l store.Line) []string {
	duration := ""
	if l.DurationMS != nil {
		duration = strconv.FormatFloat(*l.DurationMS, 'f', -1, 64)
	}
	row := []string{
		l.TS.UTC().Format("2006-01-02T15:04:05.000000Z"), l.RecordID.String(), l.SessionID, strconv.FormatUint(l.Seq, 10), strconv.FormatUint(l.CallNo, 10),
		l.Kind, l.Method, l.Tool, l.Target, strings.Join(l.Ops, " "), l.Outcome, l.ErrorType,
		duration, l.Tier, l.Host, l.User, l.ClientID, l.ClientName, l.ServerName, strings.Join(l.Anomalies, " "), l.Args,
		l.Category, strings.Join(l.Detections, " "), cmp.Or(l.Effect(), l.Decision), l.Rule, l.Approval, l.ApprovalBy, l.Event, l.Mode, l.Source, l.Detail, l.PolicyHash,
	}
	for i, v := range row {
		row[i] = cell(v)
	}
	return row
}

// formula matches where a spreadsheet in any language may see one begin: at the
// start, and where one that separates columns by semicolons starts a cell.
var formula = regexp.MustCompile(`(^|;)([\pZ"]*(?:[=+\-@|%＝＋－＠]|\\[trn]))`)

// cell returns text that spreadsheets do not treat as a formula: a leading
// apostrophe, which they do not show, is added to what starts like one. Control
// and hiding characters are escaped, so that none can come first.
func cell(text string) string {
	return formula.ReplaceAllString(escape.Text(text), "${1}'${2}")
}

func (s *Server) exportNDJSON(w http.ResponseWriter, r *http.Request) {
	s.export(w, r, "application/x-ndjson; charset=utf-8", "calls.ndjson", true, func(out io.Writer) func([]store.Line) error {
		var b []byte
		return func(lines []store.Line) error {
			b = b[:0]
			for _, l := range lines {
				b = append(escape.AppendJSON(b, []byte(l.Raw)), '\n')
			}
			_, err := out.Write(b)
			return err
		}
	})
}

// export streams the records of the request's filter, newest first, part by
// part, so that a slow reader holds neither memory nor a connection to the
// store. An export that breaks off ends without its last chunk, which every
// client reports.
func (s *Server) export(w http.ResponseWriter, r *http.Request, contentType, name string, raw bool, begin func(io.Writer) func([]store.Line) error) {
	f, _, err := s.filter(r.URL.Query())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := store.Page{Limit: exportPart, Raw: raw}
	write := begin(w)
	for sent := 0; ; {
		part, err := s.data.Calls(r.Context(), f, p)
		if err != nil && sent == 0 {
			s.fail(w, r, err)
			return
		}
		if err == nil && sent == 0 {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		}
		if err == nil {
			// The time limit of a slow client for each part. Some writers
			// support no deadlines.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
			err = write(part.Lines)
		}
		if err != nil {
			s.c.Log.Warn("export broken off", zap.Int("records", sent), zap.Error(err))
			panic(http.ErrAbortHandler) // a short file must not look like a whole one
		}
		if sent += len(part.Lines); !part.Older {
			return
		}
		at := part.Lines[len(part.Lines)-1].Cursor()
		p.Before = &at
	}
}
