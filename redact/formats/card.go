package formats

import (
	"bytes"

	"auditproxy/redact/lex"
)

// Lengths of the number of a payment card (ISO/IEC 7812), in digits.
const (
	MinCard = 14
	maxCard = 19
)

// StartsCard reports whether the run of letters and digits t[from:to] may start the number
// of a card: all of it, or its first group of four.
func StartsCard(t []byte, from, to int) bool {
	if t[from]-'2' > '6'-'2' || !lex.IsDigit(t[from+1]) || !lex.IsDigit(t[to-1]) {
		return false
	}
	return cardAt(t, from).To > 0
}

// Cards adds the numbers of cards in t to found, with the date and the code behind them.
func Cards(t []byte, found []lex.Span) []lex.Span {
	for i := 0; i < len(t); {
		if !lex.IsDigit(t[i]) {
			i++
			continue
		}
		if i == 0 || lex.Classes[t[i-1]]&lex.IsAlnum == 0 {
			if c := cardAt(t, i); c.To > 0 {
				found = append(found, c)
				i = c.To
				continue
			}
		}
		for i < len(t) && lex.Classes[t[i]]&lex.IsAlnum != 0 {
			i++
		}
	}
	return found
}

// cardAt returns the number of a card that starts at i. In groups it is one by its check
// digit, alone only beside words or a date that say so: each tenth number has that digit.
func cardAt(t []byte, i int) (c lex.Span) {
	if i > 1 && (t[i-1] == ' ' || t[i-1] == '-' || t[i-1] == '.') && lex.IsDigit(t[i-2]) || i > 0 && (t[i-1] == '-' || t[i-1] == '.' || t[i-1] == '_' || t[i-1] == '+') {
		return c // of a longer number
	}
	var digits [maxCard]byte
	n, group, at := 0, byte(0), i
	var groups [5]int
	k := 0
	for at < len(t) {
		if lex.IsDigit(t[at]) {
			if n == maxCard {
				return c
			}
			digits[n] = t[at] - '0'
			n++
			groups[k]++
			at++
			continue
		}
		if (t[at] != ' ' && t[at] != '-') || group != 0 && t[at] != group || at+1 == len(t) || !lex.IsDigit(t[at+1]) || n >= MinCard+1 || k == len(groups)-1 || groups[k] > 6 {
			break
		}
		group = t[at]
		k++
		at++
	}
	if n < MinCard || !isIssued(digits[:n]) || !checks(digits[:n]) ||
		at < len(t) && (lex.Classes[t[at]]&lex.IsAlnum != 0 || t[at] == '_' || at+1 < len(t) && (t[at] == '-' || t[at] == '.') && lex.Classes[t[at+1]]&lex.IsAlnum != 0) {
		return c
	}
	behind := cardEnd(t, at)
	switch {
	case k == 0 && behind == at && !speaksOfCard(t[max(0, i-maxCardWords):i]) && !speaksOfCard(t[at:min(len(t), at+maxCardWords/2)]):
		return c
	case k > 0 && (groups[0] != 4 || groups[1] != 4 && (k != 2 || groups[1] != 6)):
		return c
	case k > 0 && at+1 < len(t) && t[at] == ' ' && lex.IsDigit(t[at+1]) && behind == at:
		return c // more groups, as an IBAN has
	case k > 0 && i > 4 && t[i-1] == ' ' && lex.IsDigit(t[i-2]):
		return c
	}
	return lex.Span{From: i, To: behind}
}

// IsCard reports whether b is the number of a card and nothing else, in groups or not.
func IsCard(b []byte) bool {
	var digits [maxCard]byte
	n := 0
	for _, c := range bytes.TrimSpace(b) {
		switch {
		case lex.IsDigit(c) && n < maxCard:
			digits[n] = c - '0'
			n++
		case c != ' ' && c != '-' || n == 0:
			return false
		}
	}
	return n >= MinCard && isIssued(digits[:n]) && checks(digits[:n])
}

// isIssued reports whether a number starts as those of the large networks.
func isIssued(d []byte) bool {
	first := int(d[0])*1000 + int(d[1])*100 + int(d[2])*10 + int(d[3])
	switch {
	case d[0] == 4:
		return len(d) == 16 || len(d) == 19
	case 5100 <= first && first < 5600, 2221 <= first && first < 2721:
		return len(d) == 16
	case 3400 <= first && first < 3500, 3700 <= first && first < 3800:
		return len(d) == 15
	case 3600 <= first && first < 3700, 3800 <= first && first < 3900, 3000 <= first && first < 3060:
		return len(d) == 14
	case first == 6011, 6440 <= first && first < 6600, 3528 <= first && first < 3590, 6200 <= first && first < 6300, 5000 <= first && first < 5100,
		5600 <= first && first < 5900:
		return len(d) >= 16
	}
	return false
}

// checks reports whether the last digit is the check digit (ISO/IEC 7812-1, annex B).
func checks(d []byte) bool {
	sum := 0
	for i := range d {
		n := int(d[len(d)-1-i])
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// cardEnd returns where the date and the code end that follow a card's number at i, i if
// none does: 4111 1111 1111 1111 12/27 123, 4111111111111111|12|27|123.
func cardEnd(t []byte, i int) int {
	rest := t[i:min(len(t), i+maxCardWords/2)]
	part := func(at, least, most int) int {
		for at < len(rest) && (rest[at] == ' ' || rest[at] == '|' || rest[at] == '/' || rest[at] == ',' || rest[at] == ';' || rest[at] == ':') {
			at++
		}
		n := lex.CountDigits(rest[at:])
		if at == 0 || n < least || n > most {
			return 0
		}
		return at + n
	}
	month := part(0, 1, 2)
	if month == 0 || month == len(rest) || rest[month] != '/' && rest[month] != '|' && rest[month] != '-' {
		return i
	}
	if rest[month] == '-' {
		rest = bytes.Clone(rest)
		rest[month] = '/'
	}
	year := part(month, 2, 4)
	if year == 0 {
		return i
	}
	if code := part(year, 3, 4); code > 0 {
		return i + code
	}
	return i + year
}

// speaksOfCard reports whether b has a word for a card, for its number or its code.
func speaksOfCard(b []byte) bool {
	for _, word := range [...]string{"card", "Card", "CARD", "visa", "Visa", "VISA", "cvv", "CVV", "cvc", "CVC", "amex", "Amex", "AMEX", "PAN", "\"pan\"", "exp_", "karte", "Karte", "tarjeta", "carte ", "carta "} {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return false
}

// maxCardWords is how far before a number a word for a card may be, in bytes.
const maxCardWords = 48
