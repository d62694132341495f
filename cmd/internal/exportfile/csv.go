package exportfile

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"auditproxy/collector/export/receiver"
)

// csvColumns are the columns without the record's own bytes, which would be all of
// them once more.
var csvColumns = sync.OnceValue(func() []column {
	list := columns()
	return list[:len(list)-1]
})

func csvHeader() string {
	var names []string
	for _, c := range csvColumns() {
		names = append(names, c.name)
	}
	return strings.Join(names, ",") + "\n"
}

// appendCSV appends the line of a record (RFC 4180). Line breaks in it are within
// quotes; a value that is missing is empty.
func appendCSV(dst []byte, r *receiver.Record) ([]byte, error) {
	for i, c := range csvColumns() {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v := c.value(r).(type) {
		case nil:
		case string:
			dst = appendCell(dst, v)
		case []string:
			if len(v) == 0 {
				continue
			}
			text, err := json.Marshal(v)
			if err != nil {
				return dst, refusedError{fmt.Errorf("encoding column %q: %w", c.name, err)}
			}
			dst = appendCell(dst, string(text))
		case bool:
			dst = strconv.AppendBool(dst, v)
		case int64:
			dst = strconv.AppendInt(dst, v, 10)
		case uint64:
			dst = strconv.AppendUint(dst, v, 10)
		case float64:
			dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
		case time.Time:
			dst = v.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
		}
	}
	return dst, nil
}

// appendCell appends a text that a stranger may have chosen. A spreadsheet
// calculates a cell that begins as a formula does, which can send other cells
// away or run programs. So such a text gets an apostrophe before it, and so does
// one that begins with an apostrophe: removing one gives the text.
func appendCell(dst []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if formula(s) {
		s = "'" + s
	}
	if !strings.ContainsAny(s, "\",;\t\r\n") && s == strings.TrimSpace(s) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}

// formula reports whether s begins as a formula does, for a spreadsheet in any
// language, or with white space, which some leave out.
func formula(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	switch first {
	case '=', '+', '-', '@', '\t', '\r', '\n', '\'', '＝', '＋', '－', '＠':
		return true
	}
	trimmed := strings.TrimSpace(s)
	return trimmed != s && trimmed != "" && formula(trimmed)
}
