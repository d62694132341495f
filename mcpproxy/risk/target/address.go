package target

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// IsPrivateURL reports whether the host of a URL, as it is written, is private:
// no name is looked up. bare means that the value may also lack a scheme.
//
// Hosts are read as browsers and fetch do (WHATWG URL), which accept more than
// RFC 3986: backslashes, missing slashes, tabs, encoded and full-width digits,
// octal and hexadecimal numbers. Where Python's urlparse reads another host, behind a
// backslash, that counts too. A socket of this host is private.
func IsPrivateURL(s string, bare bool) bool {
	s = strings.TrimSpace(s)
	if len(s) > 8<<10 {
		s = s[:8<<10]
	}
	if strings.ContainsAny(s, "\t\r\n") {
		s = breaks.Replace(s)
	}
	rest, ok := cutScheme(s)
	switch {
	case isSocket(s):
		return true
	case ok:
	case !bare:
		return false
	case len(s) < len("16777216") && strings.Trim(s, "0123456789") == "":
		return false // a number, but no address
	default:
		rest = s
	}
	rest = strings.TrimLeft(rest, `/\`)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	browser, _, both := strings.Cut(rest, `\`)
	return isPrivateHost(withoutUser(browser)) || both && isPrivateHost(withoutUser(rest))
}

// withoutUser returns the host and the port of an authority.
func withoutUser(authority string) string { return authority[strings.LastIndexByte(authority, '@')+1:] }

// What URLs lose, and what is a dot in a host. Making a replacer takes longer than
// most texts.
var (
	breaks = strings.NewReplacer("\t", "", "\r", "", "\n", "")
	dots   = strings.NewReplacer("。", ".", "．", ".", "｡", ".")
)

// isSocket reports whether an address is that of a socket or a pipe in this host's files.
func isSocket(s string) bool {
	scheme, rest, _ := strings.Cut(s[:min(len(s), 16)], ":")
	if strings.Trim(rest, "/") == "" || rest[0] != '/' {
		return false
	}
	switch strings.ToLower(scheme) {
	case "unix", "http+unix", "https+unix", "unix+http", "npipe":
		return true
	}
	return false
}

// cutScheme cuts the scheme of a URL that names a host.
func cutScheme(s string) (rest string, ok bool) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" {
		return s, false
	}
	for i := range len(scheme) {
		c := scheme[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return s, false
		}
	}
	if strings.HasPrefix(rest, "//") {
		return rest, true
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "ftp": // "special": the slashes may be missing or reversed
		return rest, true
	}
	return s, false
}

// isPrivateHost judges a host, with or without a port.
func isPrivateHost(host string) bool {
	host, _, _ = strings.Cut(unescape(host), "\x00") // where strings of C end
	for i := range len(host) {
		if host[i] >= 0x80 {
			host = norm.NFKC.String(dots.Replace(host))
			break
		}
	}
	if rest, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(rest, "]")
		return isPrivateIPv6(host)
	}
	if strings.Count(host, ":") > 1 {
		return isPrivateIPv6(host)
	}
	host, _, _ = strings.Cut(host, ":")
	host = strings.ToLower(strings.TrimRight(host, "."))
	if addr, ok := parseIPv4(host, true); ok {
		// Some programs read 010 as 10.
		decimal, ok := parseIPv4(host, false)
		return isPrivate(addr) || ok && isPrivate(decimal)
	}
	switch host {
	case "localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback", "broadcasthost",
		"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "metadata.azure.com",
		"metadata.packet.net", "metadata.platformequinix.com",
		"host.docker.internal", "gateway.docker.internal", "kubernetes.docker.internal", "host.containers.internal",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc":
		return true
	}
	for _, suffix := range [...]string{".localhost", ".internal", ".cluster.local", ".local", ".localdomain"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

func isPrivateIPv6(host string) bool {
	host, _, _ = strings.Cut(host, "%")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		// An address with a port, without brackets.
		i := strings.LastIndexByte(host, ':')
		if i < 0 {
			return false
		}
		if addr, err = netip.ParseAddr(host[:i]); err != nil {
			return false
		}
	}
	return isPrivate(addr)
}

// isPrivate reports whether an address is not on the public Internet.
func isPrivate(addr netip.Addr) bool {
	addr = addr.Unmap()
	if addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() ||
		addr.IsInterfaceLocalMulticast() || addr.IsLinkLocalMulticast() {
		return true
	}
	b := addr.As16()
	if addr.Is4() {
		v4 := addr.As4()
		switch {
		case v4[0] == 0, // this network (RFC 1122)
			v4[0] == 100 && v4[1]&0xc0 == 64,         // shared by carriers (RFC 6598)
			v4[0] == 192 && v4[1] == 0 && v4[2] == 0, // IETF protocols (RFC 6890)
			v4[0] == 198 && v4[1]&0xfe == 18,         // benchmarks (RFC 2544)
			v4 == [4]byte{255, 255, 255, 255}:
			return true
		}
		return false
	}
	in := func(i int) bool { return isPrivate(netip.AddrFrom4([4]byte(b[i : i+4]))) }
	zero := func(from, to int) bool {
		for _, c := range b[from:to] {
			if c != 0 {
				return false
			}
		}
		return true
	}
	switch {
	case b[0] == 0xfe && b[1]&0xc0 == 0xc0: // site-local (RFC 3879)
		return true
	case zero(0, 12): // IPv4-compatible (RFC 4291)
		return in(12)
	case zero(0, 8) && b[8] == 0xff && b[9] == 0xff && zero(10, 12): // IPv4-translated (RFC 2765)
		return in(12)
	case b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b: // NAT64 (RFC 6052, RFC 8215)
		return in(12)
	case b[0] == 0x20 && b[1] == 0x02: // 6to4 (RFC 3056)
		return in(2)
	case b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0: // Teredo (RFC 4380): the client's address is inverted
		return isPrivate(netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	return false
}

// parseIPv4 reads an IPv4 address in the forms of inet_aton: one to four numbers,
// decimal, octal where that is true, or hexadecimal, of which the last fills the rest.
func parseIPv4(host string, octal bool) (addr netip.Addr, ok bool) {
	if host == "" || host[0] < '0' || host[0] > '9' || strings.Count(host, ".") > 3 {
		return addr, false
	}
	var sum uint64
	n := 0
	for part := range strings.SplitSeq(host, ".") {
		v, err := number(part, octal)
		if err != nil {
			return addr, false
		}
		n++
		if last := strings.Count(host, ".") + 1; n == last {
			if v >= 1<<(8*(5-last)) {
				return addr, false
			}
			sum = sum<<(8*(5-last)) | v
		} else if v > 255 {
			return addr, false
		} else {
			sum = sum<<8 | v
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

func number(s string, octal bool) (uint64, error) {
	switch {
	case s == "0x" || s == "0X":
		return 0, nil
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0X"):
		return strconv.ParseUint(s[2:], 16, 33)
	case octal && len(s) > 1 && s[0] == '0':
		if v, err := strconv.ParseUint(s[1:], 8, 33); err == nil {
			return v, nil
		}
	}
	return strconv.ParseUint(s, 10, 33)
}
