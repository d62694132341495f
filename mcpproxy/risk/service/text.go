package service

import "auditproxy/schemas/jsontext"

// text returns the text of a string literal, "" for anything else.
func text(lit []byte) string {
	if len(lit) == 0 || lit[0] != '"' {
		return ""
	}
	return string(jsontext.AppendUnquote(nil, lit))
}
