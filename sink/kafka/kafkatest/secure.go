package kafkatest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// extra adds a listener with TLS and a login. Kafka takes PEM in place of a
// Java key store.
const extra = `
listeners=PLAINTEXT://%[1]s,CONTROLLER://127.0.0.1:%[2]d,SECURE://%[3]s
advertised.listeners=PLAINTEXT://%[1]s,SECURE://%[3]s
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=%[4]s
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[5]s="%[6]s";
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`

func (b *Broker) secure(ports []int) error {
	b.SecureAddr = "127.0.0.1:" + strconv.Itoa(ports[2])
	b.CAFile = filepath.Join(b.dir, "ca.pem")
	keyStore := filepath.Join(b.dir, "broker.pem")
	certificate, key, err := selfSigned()
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.CAFile, certificate, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(keyStore, append(key, certificate...), 0o600); err != nil {
		return err
	}
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		b.args = append(b.args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, User, Password))
	}
	text := fmt.Sprintf(strings.TrimPrefix(extra, "\n"), b.Addr, ports[1], b.SecureAddr, keyStore, User, Password)
	return os.WriteFile(filepath.Join(b.dir, "extra.properties"), []byte(text), 0o600)
}

// selfSigned makes a certificate for 127.0.0.1 that is its own authority.
func selfSigned() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kafkatest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
