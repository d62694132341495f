package kafkatest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"auditproxy/deploy/dev"
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
	root, err := dev.Root()
	if err != nil {
		return nil, err
	}
	ports, err := dev.FreePorts(3)
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
		args: []string{filepath.Join(root, "deploy/kafka/broker"), "serve", dir, strconv.Itoa(ports[0]), strconv.Itoa(ports[1])},
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
