package kafka_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"auditproxy/deploy/dev"
	"auditproxy/sink/kafka"
	"auditproxy/sink/kafka/kafkatest"
)

// TestLogin writes through TLS by every mechanism.
func TestLogin(t *testing.T) {
	topic := newTopic(t, 1, nil)
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		access := trusted(t)
		access.Login.Mechanism = mechanism
		p, _ := newProducer(t, kafka.Config{Access: access, Topic: topic})
		if err := p.Write(t.Context(), mechanism, [][]byte{[]byte(mechanism)}); err != nil {
			t.Errorf("Write by %s: %v", mechanism, err)
		}
		if got := values(t, topic)[mechanism]; len(got) != 1 || got[0] != mechanism {
			t.Errorf("the topic has %q, want what was written by %s", got, mechanism)
		}
	}
}

// TestNoAccess takes each way on which Kafka does not let us in: it is said in words,
// tried again, and nothing reaches the topic.
func TestNoAccess(t *testing.T) {
	topic := newTopic(t, 1, nil)
	closed := dev.FreeAddr(t)
	for _, tt := range []struct {
		name    string
		change  func(*kafka.Config)
		because string
	}{
		{"wrong password", func(c *kafka.Config) { c.Login.Password = always("wrong") }, "Kafka does not take this user name and password"},
		{"wrong password in plain", func(c *kafka.Config) {
			c.Login = kafka.Login{Mechanism: "plain", User: kafkatest.User, Password: always("wrong")}
		},
			"Kafka does not take this user name and password"},
		{"wrong CA", func(c *kafka.Config) { c.TLS = func() *tls.Config { return &tls.Config{} } }, "the broker's certificate is not signed by an authority that is trusted here: set ca_file, as kafka.tls.ca_file, to that authority"},
		{"certificate that has ended", func(c *kafka.Config) { c.TLS().Time = func() time.Time { return time.Now().AddDate(1000, 0, 0) } }, "the broker's certificate is not valid now: renew it, or correct the clock of this host"},
		{"wrong host", func(c *kafka.Config) { c.TLS().ServerName = "elsewhere.example" }, "the broker's certificate is for another host"},
		{"TLS at a plain port", func(c *kafka.Config) { c.Brokers = []string{cluster.Broker(t).Addr} }, "the broker closes the connection, as it does when one side speaks TLS or logs in and the other does not"},
		{"plain text at a TLS port", func(c *kafka.Config) { c.TLS = nil }, "the broker closes the connection, as it does when one side speaks TLS or logs in and the other does not"},
		{"no login", func(c *kafka.Config) { c.Login = kafka.Login{} }, "the broker closes the connection, as it does when one side speaks TLS or logs in and the other does not"},
		{"login at a port without", func(c *kafka.Config) { c.Brokers, c.TLS = []string{cluster.Broker(t).Addr}, nil }, "the broker has no login on this port: name the port that has, or no kafka.sasl"},
		{"no topic", func(c *kafka.Config) { c.Topic = "absent" }, "the topic does not exist, and is not created here"},
		{"no broker", func(c *kafka.Config) { c.Brokers = []string{closed} }, "no broker can be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := kafka.Config{Access: trusted(t), Topic: topic}
			tt.change(&c)
			p, logs := newProducer(t, c)
			done := write(t, p, "s", [][]byte{[]byte("x")})
			waitFor(t, logs, tt.because)
			select {
			case err := <-done:
				t.Errorf("Write ended with %v, want it to try on", err)
			default:
			}
		})
	}
	if got := values(t, topic); len(got) > 0 {
		t.Errorf("the topic has %q, want nothing", got)
	}
}

// TestNothingInClear gives a producer a port where somebody listens who is no
// broker: of the password and the records nothing may arrive.
func TestNothingInClear(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 64<<10)
		c.SetReadDeadline(time.Now().Add(time.Minute)) // of the first bytes, on a busy machine
		var all []byte
		for {
			n, err := c.Read(b)
			all = append(all, b[:n]...)
			c.SetReadDeadline(time.Now().Add(time.Second))
			if err != nil {
				break
			}
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}
		heard <- string(all)
	}()
	access := trusted(t)
	access.Brokers = []string{l.Addr().String()}
	access.Login.Mechanism = "plain"
	p, logs := newProducer(t, kafka.Config{Access: access, Topic: "t"})
	write(t, p, "s", [][]byte{[]byte("the record")})
	waitFor(t, logs, "the broker does not speak TLS on this port")
	text := <-heard
	if text == "" {
		t.Error("nothing was sent at all, so this shows nothing")
	}
	for _, secret := range []string{kafkatest.Password, kafkatest.User, "the record"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q was sent in clear", secret)
		}
	}
}

// TestNew checks that all mistakes are named at once, and that no password is.
func TestNew(t *testing.T) {
	_, err := kafka.New(kafka.Config{Access: kafka.Access{
		Brokers: []string{"host", "kafka://u:s3cret@broker", "h:1?password=s3cret", "i:1;s3cret", "j:1#s3cret"},
		Login:   kafka.Login{Mechanism: "plain", User: "u", Password: always("s3cret")},
	}})
	if err == nil {
		t.Fatal("New succeeded")
	}
	for _, want := range []string{"no topic", "no source", `broker "host": want host:port`, `broker "broker": want host:port`, `broker "h:1": want host:port`, `broker "i:1": want`, `broker "j:1": want`, "would send the password in clear"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want it to say %q", err, want)
		}
	}
	l := kafka.Login{Mechanism: "plain", User: "u", Password: always("s3cret")}
	if text := fmt.Sprintf("%v %+v %#v %v", l, l, l, err); strings.Contains(text, "s3cret") {
		t.Errorf("the password is printed: %s", text)
	}
}
