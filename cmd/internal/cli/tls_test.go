package cli_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/cmd/internal/cli"

	"github.com/spf13/pflag"
)

var tlsKeys = []cli.Key{
	{Name: "k.tls.enabled", Kind: cli.Bool},
	{Name: "k.tls.ca_file", Kind: cli.Path},
	{Name: "k.tls.cert_file", Kind: cli.Path},
	{Name: "k.tls.key_file", Kind: cli.Path},
	{Name: "k.tls.server_name", Kind: cli.Text},
	{Name: "k.password", Kind: cli.Password},
	{Name: "k.password_file", Kind: cli.Path},
}

func tlsValues(t *testing.T, env ...string) cli.Values {
	t.Helper()
	flags := pflag.NewFlagSet("p", pflag.ContinueOnError)
	cli.AddFlags(flags, tlsKeys)
	v, problems := cli.Load(cli.Config{Program: "p", Keys: tlsKeys, Env: env, Flags: flags})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRenewTLS(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	renewed := func(v cli.Values) (func() *tls.Config, error) {
		return cli.RenewTLS(cli.TLSOf(v, "k.tls"), "k.tls.", nil)
	}
	for _, tt := range []struct {
		name string
		env  []string
		want string // in the error; "" for none
	}{
		{"it says which file is missing", []string{"P_K_TLS_ENABLED=true", "P_K_TLS_CA_FILE=/absent"}, "reading k.tls.ca_file"},
		{"it wants a certificate in the file", []string{"P_K_TLS_ENABLED=true", "P_K_TLS_CA_FILE=" + empty}, "no certificate in PEM"},
		{"it says which pair is missing", []string{"P_K_TLS_ENABLED=true", "P_K_TLS_CERT_FILE=/absent", "P_K_TLS_KEY_FILE=/absent"}, "reading k.tls.cert_file and key_file"},
		{"it reads nothing when it is not enabled", []string{"P_K_TLS_CA_FILE=/absent"}, ""},
	} {
		c, err := renewed(tlsValues(t, tt.env...))
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: RenewTLS: %v, want %q", tt.name, err, tt.want)
		}
		if c != nil {
			t.Errorf("%s: RenewTLS returned a configuration", tt.name)
		}
	}
	get, err := renewed(tlsValues(t, "P_K_TLS_ENABLED=true", "P_K_TLS_SERVER_NAME=kafka.example"))
	if err != nil {
		t.Fatal(err)
	}
	if c := get(); c.ServerName != "kafka.example" || c.RootCAs != nil {
		t.Errorf("RenewTLS: %+v, want the system's certificates and kafka.example", c)
	}
}

func TestLoadPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(" p w\n\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		env        []string
	}{
		{"it takes one line end off", " p w\n", []string{"P_K_PASSWORD_FILE=" + file}},
		{"it takes the value as it is", "v\n", []string{"P_K_PASSWORD=v\n", "P_K_PASSWORD_FILE=" + file}},
		{"it returns nothing for nothing", "", nil},
	} {
		s, err := cli.LoadPassword(tlsValues(t, tt.env...), "k.password")
		if err != nil || s.Reveal() != tt.want {
			t.Errorf("%s: LoadPassword = %q, %v, want %q", tt.name, s.Reveal(), err, tt.want)
		}
	}
	if _, err := cli.LoadPassword(tlsValues(t, "P_K_PASSWORD_FILE=/absent"), "k.password"); err == nil {
		t.Error("LoadPassword of a file that is not there succeeded")
	}
}
