package sql

import (
	"bytes"

	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// maxColumns is how many columns of a statement count.
const maxColumns = 64

// Rows adds the values of columns with sensitive names in
//
//	INSERT INTO users (name, password) VALUES ('ann', 'SECRET'), …
//
// where the parenthesis behind VALUES is at i, to found.
func (f *Finder) Rows(found []lex.Span, i int) []lex.Span {
	t := f.values.Text
	to := i
	for to > 0 && i-to < maxGap && t[to-1] <= ' ' {
		to--
	}
	if i < f.tuples || !lex.HasFoldSuffix(t[:to], "values") && !lex.HasFoldSuffix(t[:to], "value") {
		return found
	}
	for to > 0 && lex.Classes[t[to-1]]&lex.IsAlnum != 0 {
		to--
	}
	secret := f.columns(to)
	if secret == 0 {
		f.tuples = i
		return found
	}
	for at := i + 1; ; at++ {
		found, at = f.row(found, at, secret, true)
		for at < len(t) && (t[at] <= ' ' || t[at] == ',') {
			at++
		}
		if at >= len(t) || t[at] != '(' {
			return found
		}
	}
}

// selected adds the values of such columns in
//
//	INSERT INTO users (name, password) SELECT 'ann', 'SECRET'
//
// where t[from:to] is the word SELECT.
func (f *Finder) selected(found []lex.Span, from, to int) []lex.Span {
	if from < f.tuples {
		return found
	}
	secret := f.columns(from)
	if f.tuples = to; secret != 0 {
		found, _ = f.row(found, to, secret, false)
	}
	return found
}

// columns returns which columns have sensitive names, by their numbers, in the list before to,
// behind which only white space is. It returns 0 if there is no list.
func (f *Finder) columns(to int) (secret uint64) {
	t := f.values.Text
	for n := 0; to > 0 && n < maxGap && t[to-1] <= ' '; n++ {
		to--
	}
	if to == 0 || t[to-1] != ')' {
		return 0
	}
	to--
	from := to
	for from > f.tuples && to-from < 2<<10 && t[from-1] != '(' {
		from--
	}
	for n := 0; n < maxColumns && from < to; n++ {
		end := from
		for end < to && t[end] != ',' {
			end++
		}
		if f.values.IsSensitive(&f.name, t[from:end], names.NoWhole) {
			secret |= 1 << n
		}
		from = end + 1
	}
	return secret
}

// row adds the values of secret columns among those of the row at i, and returns where it ends.
// Words without quotation marks are values only in a tuple; else they name columns.
func (f *Finder) row(found []lex.Span, i int, secret uint64, isTuple bool) (all []lex.Span, end int) {
	t := f.values.Text
	for n := 0; ; n++ {
		begin := i
		v, next := f.values.Argument(i, len(t), 2*maxOther)
		if next < 0 {
			next = begin
		}
		f.tuples = max(next, v.To)
		if n < maxColumns && secret>>n&1 != 0 {
			if v.From == v.To && next > begin && (isTuple || bytes.IndexByte(t[begin:next], '\'') >= 0) {
				v = f.values.InExpression(begin, next)
			}
			if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 && t[v.From] != ':' && !formats.IsPlaceholder(t[v.From:v.To]) {
				found = append(found, v)
			}
		}
		i = next + 1
		if next == begin || next >= len(t) || t[next] != ',' {
			return found, i
		}
	}
}

// maxStrings is how many strings of one list count.
const maxStrings = 64

// AnyOf adds the strings in token IN ('SECRET', 'SECRET'), to found, where the
// parenthesis is at i. Nothing before start is part of it.
func (f *Finder) AnyOf(found []lex.Span, start, i int) []lex.Span {
	t := f.values.Text
	to := i
	for to > start && i-to < maxGap && t[to-1] <= ' ' {
		to--
	}
	if to-4 < start || t[to-3] > ' ' || !lex.HasFoldSuffix(t[:to], "in") {
		return found
	}
	upper := t[to-2] == 'I'
	for to -= 3; to > start && t[to-1] <= ' ' && i-to < 2*maxGap; {
		to--
	}
	from := to
	for from > start && to-from <= names.MaxPairName && lex.Classes[t[from-1]]&lex.IsName != 0 {
		from--
	}
	before := bytes.TrimRight(t[max(start, from-8):from], " \n\t")
	if from == to || !upper && !lex.HasFoldSuffix(before, "where") && !lex.HasFoldSuffix(before, "and") || !f.values.IsSensitive(&f.name, t[from:to], names.NoWhole) {
		return found
	}
	for n := 0; n < maxStrings; n++ {
		v, next := f.values.Argument(i+1, maxString, maxOther)
		if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 {
			found = append(found, v)
		}
		if next < 0 || next >= len(t) || t[next] != ',' {
			return found
		}
		i = next
	}
	return found
}
