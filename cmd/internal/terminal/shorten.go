package terminal

// Shorten shortens s, which must be escaped, to 40 bytes.
func Shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return s[:most] + "…" // escaped, so no character is cut
}
