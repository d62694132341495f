package kafkatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Config configures a broker, in addition to
// deploy/kafka/server.properties.
type Config struct {
	// Secure adds a second listener, for TLS with a login.
	Secure bool
	// Counted adds one whose produce requests are counted. It cannot be
	// combined with Secure.
	Counted bool
}

// Start starts a broker and waits until it answers. Its process ends with this
// one at the latest; Stop removes its data.
func Start(c Config) (*Broker, error) {
	script, err := find("deploy/kafka/broker")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kafkatest-")
	if err != nil {
		return nil, err
	}
	b := &Broker{
		Addr: "127.0.0.1:" + strconv.Itoa(ports[0]),
		dir:  dir,
		args: []string{script, "serve", dir, strconv.Itoa(ports[0]), strconv.Itoa(ports[1])},
	}
	switch {
	case c.Secure && c.Counted:
		err = errors.New("starting a broker: Config has both Secure and Counted")
	case c.Secure:
		err = b.secure(ports)
	case c.Counted:
		err = b.count(ports)
	}
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a Kafka broker: %w", err), b.Stop())
	}
	return b, nil
}

// behind adds a listener that clients are told to reach through a counter.
const behind = `
listeners=PLAINTEXT://%[1]s,CONTROLLER://127.0.0.1:%[2]d,COUNTED://%[3]s
advertised.listeners=PLAINTEXT://%[1]s,COUNTED://%[4]s
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,COUNTED:PLAINTEXT
`

func (b *Broker) count(ports []int) (err error) {
	to := "127.0.0.1:" + strconv.Itoa(ports[2])
	if b.counter, err = startCounter(to); err != nil {
		return err
	}
	b.CountedAddr = b.counter.listener.Addr().String()
	text := fmt.Sprintf(strings.TrimPrefix(behind, "\n"), b.Addr, ports[1], to, b.CountedAddr)
	return os.WriteFile(filepath.Join(b.dir, "extra.properties"), []byte(text), 0o600)
}

// find returns the path of a file of the repository.
func find(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, name), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding %q: no go.mod above the working directory", name)
		}
		dir = filepath.Dir(dir)
	}
}

// freePorts returns ports that were free a moment ago. They are below those
// that the kernel gives to clients (ip_local_port_range(7)): a client could have
// one before the broker has it, or while the broker is stopped. A client of that
// very broker then even connects to itself.
func freePorts(n int) ([]int, error) {
	const first, last, attempts = 12_000, 32_000, 1000
	var ports []int
	for range attempts {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+rand.IntN(last-first)))
		if err != nil {
			continue
		}
		defer l.Close()
		if ports = append(ports, l.Addr().(*net.TCPAddr).Port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("finding %d free ports from %d to %d: too many are taken", n, first, last)
}
