package mcpproxy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"auditproxy/mcpproxy/risk/detector"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/jsontext"
)

// showDetections returns detections for a call's record: the place of each, as far
// as the record's arguments show it. Names below a hidden value are hidden too.
func showDetections(list []audit.Detection, r *facts) audit.JSON {
	shown := list[:0:0]
	for _, d := range list {
		d.At = shownAt(&d, r)
		if !slices.Contains(shown, d) {
			shown = append(shown, d)
		}
	}
	return audit.DetectionsJSON(shown)
}

// shownAt returns the part of a place whose names are in the record.
func shownAt(d *audit.Detection, r *facts) string {
	const root = "args"
	rest, ok := strings.CutPrefix(d.At, root)
	if !ok {
		return ""
	}
	if r.Method != "tools/call" { // its params were assessed; the record has their arguments
		if rest == ".uri" || rest == ".name" || rest == ".…" {
			return d.At
		}
		if rest, ok = strings.CutPrefix(rest, ".arguments"); !ok {
			return root
		}
	}
	left := shownBelow(d, rest, r.Args, r.Anomalies)
	for i := range r.Candidates {
		left = min(left, shownBelow(d, rest, r.Candidates[i].Args, r.Anomalies))
	}
	return d.At[:len(d.At)-left]
}

// shownBelow returns how much of a place below arguments they do not show.
func shownBelow(d *audit.Detection, rest string, args audit.JSON, anomalies []string) (left int) {
	value := []byte(args)
	for rest != "" {
		n, next := nextShown(rest, value)
		if n == 0 {
			break
		}
		rest, value = rest[n:], next
	}
	if d.Detector == detector.MissingArgument.Words()[0] && isObject(value) && !replacesValue(value) && !slices.Contains(anomalies, "args_cut") {
		return 0 // the name is that of the definition
	}
	return len(rest)
}

// nextShown returns the length of the first part of a place below a value, 0 if
// the value does not show it, and the value there, nil if that is unknown.
func nextShown(rest string, value []byte) (n int, next []byte) {
	const omitted = ".…"
	if end := strings.IndexByte(rest, ']'); rest[0] == '[' && end > 0 && strings.Trim(rest[1:end], "0123456789") == "" {
		return end + 1, element(value, rest[1:end])
	}
	if isObject(value) {
		_ = jsontext.Members(value, func(name, v []byte) bool { // the proxy wrote it
			text := "." + string(jsontext.AppendUnquote(nil, name))
			if len(text) > n && strings.HasPrefix(rest, text) && isEnd(rest[len(text):]) {
				n, next = len(text), v
			}
			return true
		})
	}
	if n == 0 && strings.HasPrefix(rest, omitted) {
		n = len(omitted)
	}
	return n, next
}

func isEnd(rest string) bool { return rest == "" || rest[0] == '.' || rest[0] == '[' }

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// replacesValue reports whether an object of a record's arguments may be in the
// place of a hidden value.
func replacesValue(object []byte) (is bool) {
	_ = jsontext.Members(object, func(name, _ []byte) bool {
		is = string(name) == "redacted" || bytes.HasSuffix(name, []byte("sha256_prefix"))
		return !is
	})
	return is
}

// element returns the element of a list with an index, nil if there is none.
func element(list []byte, index string) (found []byte) {
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	n, _ := strconv.Atoi(index)
	_ = jsontext.Elements(list, func(v []byte) bool {
		if n--; n < 0 {
			found = v
		}
		return n >= 0
	})
	return found
}
