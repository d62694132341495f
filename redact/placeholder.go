package redact

// isPlaceholder reports whether b stands for a credential that is elsewhere or
// nowhere: a variable of a shell or template, "<password>", "xxxxxxxx", "***".
// Defaults, as in ${NAME:-SECRET}, are none of it.
func isPlaceholder(b []byte) bool {
	n := len(b)
	if n == 0 || n > 64 {
		return false
	}
	only := func(b []byte, extra string) bool {
	bytes:
		for _, c := range b {
			if 'A' <= c && c <= 'Z' || c == '_' {
				continue
			}
			for _, e := range []byte(extra) {
				if c == e || e == 'a' && 'a' <= c && c <= 'z' || e == '0' && isDigit(c) {
					continue bytes
				}
			}
			return false
		}
		return true
	}
	switch {
	case b[0] == '$' && n == 2 && isDigit(b[1]):
		return true
	case b[0] == '$' && n > 2 && b[1] == '{':
		return b[n-1] == '}' && only(b[2:n-1], "a0.{} ")
	case b[0] == '$' && n > 1 && b[1] == '(':
		return only(b[2:], "a-")
	case b[0] == '$' && n > 3:
		return !isDigit(b[1]) && only(b[1:], "0")
	case b[0] == '{' && n > 1 && b[1] == '{':
		return only(b[2:], "a.{} ")
	case b[0] == '%' && b[n-1] == '%' && n > 4:
		return only(b[1:n-1], "a")
	case b[0] == '<':
		return n > 3 && only(b[1:], "a:> -")
	case b[0] == '[' && b[n-1] == ']':
		return only(b[1:n-1], " ")
	}
	for _, c := range b {
		if c != 'x' && c != 'X' && c != '*' && c != '.' && c != '#' {
			return false
		}
	}
	return n > 2
}
