package literal

import (
	"bytes"

	"auditproxy/redact/lex"
)

// maxBare and maxBefore limit a value without quotes, and what is looked at before a name,
// in bytes.
const (
	maxBare   = 64
	maxBefore = 256
)

// Tuple reads as many values as there are variables, from i on: "ann", "SECRET" and
// %w[ann SECRET]. Those that are neither strings nor numbers are empty, and one is a
// string.
func (r *Reader) Tuple(values []lex.Span, i int) bool {
	t := r.Text
	for i < len(t) && (t[i] == '=' || t[i] == ' ') {
		i++
	}
	words := bytes.HasPrefix(t[i:], []byte("%w")) || bytes.HasPrefix(t[i:], []byte("qw"))
	if words {
		i += len("%w")
	}
	if i < len(t) && (t[i] == '(' || t[i] == '[' || t[i] == '{') {
		i++
	} else if words {
		return false
	}
	quoted := words
	for k := range values {
		for i < len(t) && t[i] == ' ' {
			i++
		}
		at := i
		if !words {
			at += lex.PrefixLen(t[i:])
		}
		switch {
		case i == len(t):
			return false
		case words:
			for i < len(t) && t[i] > ' ' && t[i] != ')' && t[i] != ']' && t[i] != '}' {
				i += max(1, lex.MarkLen(t[i:]))
			}
			r.spend(i - at)
			values[k] = lex.Span{From: at, To: i}
			continue
		case at < len(t) && lex.Classes[t[at]]&lex.IsQuote != 0:
			values[k], quoted = r.Quoted(at, 0), true
			i = min(len(t), r.Closing(at, 0)+1)
		default:
			for from := i; i < len(t) && t[i] > ' ' && t[i] != ','; i++ {
				if i-from > maxBare || t[i] == '=' { // the arguments of a function
					return false
				}
				if t[i] == '(' {
					r.Text = t[:min(len(t), i+maxBare)]
					to, closed := r.parenthesis(i)
					r.Text = t
					if !closed {
						return false
					}
					if inner := bytes.Trim(t[i+1:to], "\"'`"); bytes.ContainsAny(t[i+1:to], "\"'`") && !r.Names.IsPairName(&r.name, inner) {
						values[k] = lex.Span{From: i + 1, To: to}
					}
					i = to
				}
			}
			if at < i && lex.CountDigits(t[at:i]) == i-at {
				values[k] = lex.Span{From: at, To: i}
			}
		}
		for i < len(t) && t[i] == ' ' {
			i++
		}
		if k+1 < len(values) {
			if i == len(t) || t[i] != ',' {
				return false
			}
			i++
		}
	}
	return words || quoted && (i == len(t) || t[i] != ',')
}

// Before returns the string before the comma before i, without a mark in it.
func (r *Reader) Before(i int) lex.Span {
	before := bytes.TrimRight(r.Text[max(0, i-maxBefore):i], " \n")
	before, ok := bytes.CutSuffix(before, []byte(","))
	n := len(before) - 1
	if !ok || n < 1 || lex.Classes[before[n]]&lex.IsQuote == 0 {
		return lex.Span{}
	}
	open := bytes.LastIndexByte(before[:n], before[n])
	from := max(0, i-maxBefore) + open + 1
	if open < 0 || lex.MarkLen(r.Text[from:]) > 0 {
		return lex.Span{}
	}
	return lex.Span{From: from, To: max(0, i-maxBefore) + n}
}
