package lex

// Unhex is the value of a hexadecimal digit, 255 for other bytes.
var Unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range "0123456789" {
		t[c] = byte(i)
	}
	for i, c := range "abcdef" {
		t[c], t[c-32] = byte(10+i), byte(10+i)
	}
	return t
}()

// IsEscape reports whether b starts with %41 or \u0041.
func IsEscape(b []byte) bool {
	switch {
	case len(b) < 3:
		return false
	case b[0] == '%':
		return Unhex[b[1]] < 16 && Unhex[b[2]] < 16
	}
	return b[1] == 'u'
}

// AppendBase64 appends b decoded from base64, standard or URL-safe (RFC 4648),
// up to the first byte that is neither.
func AppendBase64(dst, b []byte) []byte {
	for len(b) >= 4 {
		v0, v1, v2, v3 := base64Values[b[0]], base64Values[b[1]], base64Values[b[2]], base64Values[b[3]]
		if v0|v1|v2|v3 > 63 {
			break
		}
		dst = append(dst, v0<<2|v1>>4, v1<<4|v2>>2, v2<<6|v3)
		b = b[4:]
	}
	var bits, n uint
	for _, c := range b {
		v := base64Values[c]
		if v > 63 {
			break
		}
		bits, n = bits<<6|uint(v), n+6
		if n >= 8 {
			n -= 8
			dst = append(dst, byte(bits>>n))
		}
	}
	return dst
}

// base64Values is the value of a digit of base64, 255 for other bytes.
var base64Values = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for _, digits := range []string{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_"} {
		for i, c := range digits {
			t[c] = byte(64 - len(digits) + i)
		}
	}
	return t
}()

// AppendUnhex appends b decoded from hexadecimal, up to the first byte that is
// not hexadecimal.
func AppendUnhex(dst, b []byte) []byte {
	for len(b) >= 2 && Unhex[b[0]] < 16 && Unhex[b[1]] < 16 {
		dst = append(dst, Unhex[b[0]]<<4|Unhex[b[1]])
		b = b[2:]
	}
	return dst
}

// AppendPercent appends b without its percent-encoding (RFC 3986, 2.1).
func AppendPercent(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] == '%' && i+2 < len(b) && Unhex[b[i+1]] < 16 && Unhex[b[i+2]] < 16 {
			dst = append(dst, Unhex[b[i+1]]<<4|Unhex[b[i+2]])
			i += 2
			continue
		}
		dst = append(dst, b[i])
	}
	return dst
}
