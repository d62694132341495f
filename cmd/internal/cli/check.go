package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"auditproxy/internal/hostport"
)

// A Checker finds problems in combinations of values that are valid one by one.
type Checker struct {
	Values
	Problems Problems
}

// Problem adds a problem with key, naming the source of its value. Texts in it lose the
// login that an address may have: the message goes to a log.
func (c *Checker) Problem(key, format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = withoutLogin(s)
		}
	}
	c.Problems = append(c.Problems, Problem{Key: key, Source: c.Source(key), Err: fmt.Errorf(format, args...)})
}

// withoutLogin returns an address without the user, the password and the query of it.
func withoutLogin(addr string) string {
	if at := strings.LastIndexByte(addr, '@'); at >= 0 && strings.Contains(addr[:at], ":") {
		scheme, _, ok := strings.Cut(addr[:at], "://")
		if ok {
			scheme += "://"
		} else {
			scheme = ""
		}
		addr = scheme + masked + addr[at:]
	}
	if before, query, ok := strings.Cut(addr, "?"); ok && (strings.Contains(before, "://") || strings.Contains(query, "=")) {
		return before + "?" + masked
	}
	return addr
}

// NoDirectory reports a directory that is not set, whose default depends on the
// user. An empty value overrides a default that there may be.
func (c *Checker) NoDirectory(key string) {
	if c.Source(key).Layer != Default {
		c.Problem(key, "is empty: name a directory, or leave it out")
		return
	}
	c.Problem(key, "is not set, and there is no home directory for a default; set it")
}

// Addresses returns a List of host:port, of which the port may be a service's name.
func (c *Checker) Addresses(key string) []string {
	list := c.List(key)
	for _, addr := range list {
		if !hostport.Is(addr) {
			addr = withoutLogin(addr)
			if at := strings.IndexAny(addr, "?#&; "); at >= 0 { // parameters, which may have a secret
				addr = addr[:at+1] + masked
			}
			c.Problem(key, "%q: want host:port", addr)
		} else if n, err := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:]); err == nil && (n < 1 || n > 65535) {
			c.Problem(key, "%q: want a port from 1 to 65535", addr)
		}
	}
	return list
}

// Topic returns a Text that names a topic of Kafka.
func (c *Checker) Topic(key string) string {
	topic := c.String(key)
	if err := CheckTopic(topic); err != nil {
		c.Problem(key, "%w", err)
	}
	return topic
}

// CheckTopic checks that Kafka accepts the name of a topic.
func CheckTopic(topic string) error {
	if topic == "" || len(topic) > 249 || strings.ContainsFunc(topic, notInTopic) {
		return fmt.Errorf("is %q, want 1 to 249 of A-Z a-z 0-9 . _ -", topic)
	}
	return nil
}

func notInTopic(r rune) bool {
	return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("._-", r))
}

// TLSKeys are the keys below prefix, such as "kafka.tls", that TLSOf reads.
// peers is the word for the other side in --help: "brokers".
func TLSKeys(prefix, peers string) []Key {
	return []Key{
		{Name: prefix + ".enabled", Kind: Bool, Usage: "use TLS to connect to the " + peers},
		{Name: prefix + ".ca_file", Kind: Path, Usage: "certificates to trust instead of the system's"},
		{Name: prefix + ".cert_file", Kind: Path, Usage: "client certificate"},
		{Name: prefix + ".key_file", Kind: Path, Usage: "key of the client certificate"},
		{Name: prefix + ".server_name", Kind: Text, Usage: "name in the certificates of the " + peers + ", if not the host's"},
	}
}

// authorities are the variables of the environment in which crypto/x509 looks for the
// authorities of the system.
var authorities = []string{"SSL_CERT_FILE", "SSL_CERT_DIR"}

// TLS finds settings of TLSKeys that nothing would use, halves of a pair, and an
// environment that says who is trusted where the administrator enforces that.
func (c *Checker) TLS(prefix string) {
	for _, name := range []string{".ca_file", ".cert_file", ".key_file", ".server_name"} {
		if c.String(prefix+name) != "" && !c.Bool(prefix+".enabled") {
			c.Problem(prefix+name, "would not be used: %s.enabled is false", prefix)
		}
	}
	if (c.String(prefix+".cert_file") == "") != (c.String(prefix+".key_file") == "") {
		c.Problem(prefix+".cert_file", "goes with %s.key_file: want both or none", prefix)
	}
	if ca := prefix + ".ca_file"; c.Bool(prefix+".enabled") && c.String(ca) == "" && c.Enforced(ca) {
		for _, name := range authorities {
			if os.Getenv(name) != "" {
				c.Problems = append(c.Problems, Problem{Key: ca, Source: Source{Variable, name},
					Err: errors.New("is enforced, and the variable would change who is trusted: unset it for this program, or have the administrator name the file")})
			}
		}
	}
}

// LoginKeys are the keys below prefix, such as "kafka.sasl", that configure the
// login to Kafka.
func LoginKeys(prefix string) []Key {
	return append([]Key{
		{Name: prefix + ".mechanism", Kind: Choice, Choices: []string{"plain", "scram-sha-256", "scram-sha-512"}, Usage: "login mechanism; none: no login"},
		{Name: prefix + ".username", Kind: Text, Usage: "user name"},
	}, PasswordKeys(prefix+".password")...)
}

// Login reports settings of LoginKeys that would have no effect, and settings
// that the login lacks.
func (c *Checker) Login(prefix string) {
	user, file := c.String(prefix+".username"), c.String(prefix+".password_file")
	password := c.Secret(prefix + ".password").Reveal()
	mechanism := prefix + ".mechanism"
	switch login := c.String(mechanism) != ""; {
	case !login && user+password+file != "":
		c.Problem(mechanism, "is not set, so the login is not used; want plain, scram-sha-256 or scram-sha-512")
	case login && (user == "" || password+file == ""):
		c.Problem(mechanism, "needs %[1]s.username, and %[1]s.password or %[1]s.password_file", prefix)
	}
	c.Password(prefix + ".password")
}

// PasswordKeys are name and name_file, which LoadPassword reads.
func PasswordKeys(name string) []Key {
	return []Key{
		{Name: name, Kind: Password, Usage: "password"},
		{Name: name + "_file", Kind: Path, Usage: "file with the password; a trailing newline is ignored"},
	}
}

// Password finds a password of PasswordKeys that is given in two ways.
func (c *Checker) Password(name string) {
	if c.Secret(name).Reveal() != "" && c.String(name+"_file") != "" {
		c.Problem(name+"_file", "there is %s too: want one of them", name)
	}
}

// Listen listens at the addr of a setting, on loopback unless it names a host.
func Listen(ctx context.Context, addr, setting string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q: want host:port", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	return l, InUse(err, setting)
}

// InUse says in an error about an address that is in use which setting chooses another.
func InUse(err error, setting string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: stop what listens there, or choose another %s", err, setting)
	}
	return err
}
