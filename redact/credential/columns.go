package credential

import (
	"auditproxy/redact/formats"
	"auditproxy/redact/lex"
	"auditproxy/redact/names"
)

// maxColumns is how many columns of a statement count.
const maxColumns = 64

// columns adds the values of columns with sensitive names in
//
//	INSERT INTO users (name, password) VALUES ('ann', 'SECRET'), …
//
// where the parenthesis behind VALUES is at i.
func (s *Scanner) columns(i int) {
	t := s.text
	to := i
	for to > 0 && i-to < maxGap && t[to-1] <= ' ' {
		to--
	}
	if i < s.tuples || !lex.HasFoldSuffix(t[:to], "values") && !lex.HasFoldSuffix(t[:to], "value") {
		return
	}
	for to > 0 && lex.Classes[t[to-1]]&lex.IsAlnum != 0 {
		to--
	}
	for n := 0; to > 0 && n < maxGap && t[to-1] <= ' '; n++ {
		to--
	}
	if to == 0 || t[to-1] != ')' {
		return
	}
	to--
	from := to
	for from > 0 && to-from < 2<<10 && t[from-1] != '(' {
		from--
	}
	var secret uint64
	for n := 0; n < maxColumns && from < to; n++ {
		end := from
		for end < to && t[end] != ',' {
			end++
		}
		if s.sensitiveName(t[from:end], names.NoWhole) {
			secret |= 1 << n
		}
		from = end + 1
	}
	if secret == 0 {
		s.tuples = i
		return
	}
	for at := i + 1; ; {
		for n := 0; ; n++ {
			begin := at
			v, next := s.values.Argument(at, len(t), 2*maxOther)
			if next < 0 {
				next = begin
			}
			s.tuples = max(next, v.To)
			if n < maxColumns && secret>>n&1 != 0 {
				if v.From == v.To && next > begin {
					v = s.values.InExpression(begin, next)
				}
				if v.From < v.To && lex.MarkLen(t[v.From:]) == 0 && t[v.From] != ':' && !formats.IsPlaceholder(t[v.From:v.To]) {
					s.found, s.unordered = append(s.found, v), true
				}
			}
			at = next + 1
			if next == begin || next >= len(t) || t[next] != ',' {
				break
			}
		}
		for at < len(t) && (t[at] <= ' ' || t[at] == ',') {
			at++
		}
		if at >= len(t) || t[at] != '(' {
			return
		}
		at++
	}
}
