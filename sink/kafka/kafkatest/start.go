package kafkatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// A Config configures a broker, in addition to
// deploy/kafka/server.properties.
type Config struct {
	// Secure adds a second listener, for TLS with a login.
	Secure bool
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
	if c.Secure {
		err = b.secure(ports)
	}
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a Kafka broker: %w", err), b.Stop())
	}
	return b, nil
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
