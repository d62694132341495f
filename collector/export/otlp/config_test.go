package otlp

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func noTLS() *tls.Config { return &tls.Config{} }

func noFiles(string, string, string) (func() *tls.Config, error) { return nil, fs.ErrNotExist }

// TestValidate reports all problems at once, and no secret.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Config
		want []string // parts of the error, none if it is valid
	}{
		{"HTTP is the default", Config{Name: "a", Target: Target{Endpoint: "https://otel:4318/base"}}, nil},
		{"gRPC may have no scheme", Config{Name: "a", Target: Target{Endpoint: "otel:4317", Protocol: GRPC}}, nil},
		{"gRPC may have a slash", Config{Name: "a", Target: Target{Endpoint: "http://otel:4317/", Protocol: GRPC, Insecure: true}}, nil},
		{"each signal has its own", Config{Name: "a", Signals: []Signal{Logs}, PerSignal: map[Signal]Target{Logs: {Endpoint: "http://otel/logs"}}}, nil},
		{"nothing is set", Config{}, []string{"name is empty", "endpoint is empty"}},
		{"all at once", Config{
			Name: "a", Signals: []Signal{"profiles", Logs, Logs}, Target: Target{
				Endpoint: "otel:4318", Protocol: "http/json", Compression: "zstd", Timeout: -1, Headers: map[string]string{"a b": "canary", "c": "canary\n", "grpc-timeout": "canary"},
			},
		}, []string{`signals[0] is "profiles"`, `signals[2] repeats "logs"`, "has no scheme", `protocol is "http/json"`, `compression is "zstd"`, "timeout is negative", `"a b" cannot be`, `the value of "c"`, `"grpc-timeout"`}},
		{"a password", Config{Name: "a", Target: Target{Endpoint: "https://ann:canary@otel"}}, []string{"give credentials as a header"}},
		{"a password without a scheme", Config{Name: "a", Target: Target{Endpoint: "ann:canary@otel:4318"}}, []string{"give credentials as a header"}},
		{"a password in what is no URL", Config{Name: "a", Target: Target{Endpoint: "https://ann:canary@otel:x\x00"}}, []string{"not a URL"}},
		{"a query", Config{Name: "a", Target: Target{Endpoint: "https://otel?key=canary"}}, []string{"query"}},
		{"headers in clear to another host", Config{Name: "a", Target: Target{Endpoint: "http://otel:4318", Headers: map[string]string{"a": "canary"}}}, []string{"in clear: use https, or set insecure"}},
		{"headers in clear by gRPC", Config{Name: "a", Target: Target{Endpoint: "http://otel", Protocol: GRPC, Headers: map[string]string{"a": "canary"}}}, []string{"in clear"}},
		{"headers in clear, as it was set", Config{Name: "a", Target: Target{Endpoint: "http://otel", Insecure: true, Headers: map[string]string{"a": "canary"}}}, nil},
		{"headers in clear to this host", Config{Name: "a", Target: Target{Endpoint: "http://[::1]:4318", Headers: map[string]string{"a": "canary"}}}, nil},
		{"another scheme", Config{Name: "a", Target: Target{Endpoint: "unix:///run/otel"}}, []string{`scheme "unix"`}},
		{"no host", Config{Name: "a", Target: Target{Endpoint: "https://:4318"}}, []string{"no host"}},
		{"gRPC with a path", Config{Name: "a", Target: Target{Endpoint: "https://otel/v1", Protocol: GRPC}}, []string{`path "/v1"`}},
		{"https and insecure", Config{Name: "a", Target: Target{Endpoint: "https://otel", Insecure: true}}, []string{"insecure is set"}},
		{"http and TLS", Config{Name: "a", Target: Target{Endpoint: "http://otel", TLS: noTLS}}, []string{"TLS is configured"}},
	} {
		_, err := tt.c.targets()
		if (err == nil) != (tt.want == nil) || strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, part := range tt.want {
			if !strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("%s: %v, want %q", tt.name, err, part)
			}
		}
	}
}

// TestTargets compares where each signal is sent.
func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name string
		own  Target
		std  bool
		env  map[string]string
		want []string // by signal: URL, protocol, headers, compression, timeout, whether it uses TLS
	}{
		{
			"its own endpoint", Target{Endpoint: "http://own:1/base/"}, false, nil,
			[]string{"http://own:1/base/v1/logs http map[] none 10s", "http://own:1/base/v1/traces http map[] none 10s", "http://own:1/base/v1/metrics http map[] none 10s"},
		},
		{
			"its own endpoint takes no connection of the environment's", Target{Endpoint: "http://own:1"}, false,
			map[string]string{
				"ENDPOINT": "http://env:2", "HEADERS": "api-key=canary", "PROTOCOL": "grpc", "TRACES_ENDPOINT": "http://env:3", "CERTIFICATE": "/none", "INSECURE": "true",
				"COMPRESSION": "gzip", "TIMEOUT": "2500",
			},
			[]string{"http://own:1/v1/logs http map[] gzip 2.5s", "http://own:1/v1/traces http map[] gzip 2.5s", "http://own:1/v1/metrics http map[] gzip 2.5s"},
		},
		{
			"its own keys are before the environment's", Target{Protocol: HTTP, Headers: map[string]string{"A": "own"}, Compression: NoCompression, Timeout: time.Second}, true,
			map[string]string{"ENDPOINT": "http://env:2", "HEADERS": "a=env", "PROTOCOL": "grpc", "COMPRESSION": "gzip", "TIMEOUT": "2500"},
			[]string{"http://env:2/v1/logs http map[a:own] none 1s", "http://env:2/v1/traces http map[a:own] none 1s", "http://env:2/v1/metrics http map[a:own] none 1s"},
		},
		{
			"the standard receiver has its own endpoint, and the rest of the environment", Target{Endpoint: "https://own:1/base"}, true,
			map[string]string{
				"ENDPOINT": "http://env:2", "HEADERS": "a=1", "TRACES_ENDPOINT": "http://env:3", "TRACES_HEADERS": "c=3", "LOGS_PROTOCOL": "http/protobuf", "METRICS_COMPRESSION": "gzip", "INSECURE": "true",
			},
			[]string{"https://own:1/base/v1/logs http map[a:1] none 10s TLS", "https://own:1/base/v1/traces http map[c:3] none 10s TLS", "https://own:1/base/v1/metrics http map[a:1] gzip 10s TLS"},
		},
		{
			"the standard receiver has the protocol of the environment", Target{Endpoint: "http://own"}, true, map[string]string{"PROTOCOL": "grpc"},
			[]string{"http://own:4317 grpc map[] none 10s", "http://own:4317 grpc map[] none 10s", "http://own:4317 grpc map[] none 10s"},
		},
		{
			"INSECURE is for each endpoint without a scheme, and 0 is no timeout", Target{Protocol: GRPC}, true,
			map[string]string{"ENDPOINT": "https://env", "INSECURE": "true", "LOGS_ENDPOINT": "logs:1", "TRACES_ENDPOINT": "traces:2", "TRACES_INSECURE": "false", "TIMEOUT": "0", "TRACES_TIMEOUT": "7"},
			[]string{"http://logs:1 grpc map[] none " + unlimited.String(), "https://traces:2 grpc map[] none 7ms TLS", "https://env:4317 grpc map[] none " + unlimited.String() + " TLS"},
		},
		{
			"the scheme of the environment is its own will", Target{}, true, map[string]string{"ENDPOINT": "http://env", "HEADERS": "a=1"},
			[]string{"http://env/v1/logs http map[a:1] none 10s", "http://env/v1/traces http map[a:1] none 10s", "http://env/v1/metrics http map[a:1] none 10s"},
		},
		{
			"variables of a signal are before the general ones", Target{}, true,
			map[string]string{
				"ENDPOINT": "https://env:2/base", "HEADERS": "a=1,b=x%20y,", "TRACES_ENDPOINT": "http://traces:3", "TRACES_HEADERS": "c=3",
				"METRICS_ENDPOINT": "metrics:4317", "METRICS_PROTOCOL": "grpc", "METRICS_INSECURE": "TRUE", "LOGS_TIMEOUT": "1",
			},
			[]string{"https://env:2/base/v1/logs http map[a:1 b:x y] none 1ms TLS", "http://traces:3 http map[c:3] none 10s", "http://metrics:4317 grpc map[a:1 b:x y] none 10s"},
		},
		{
			"gRPC for all", Target{}, true, map[string]string{"ENDPOINT": "https://env", "PROTOCOL": " grpc "},
			[]string{"https://env:4317 grpc map[] none 10s TLS", "https://env:4317 grpc map[] none 10s TLS", "https://env:4317 grpc map[] none 10s TLS"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			getenv := func(name string) string { return tt.env[strings.TrimPrefix(name, "OTEL_EXPORTER_OTLP_")] }
			c, err := Config{Name: "a", Target: tt.own, Standard: tt.std}.FromEnv(getenv, noFiles)
			if err != nil {
				t.Fatal(err)
			}
			targets, err := c.targets()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, to := range targets {
				protocol := "http"
				if to.grpc {
					protocol = "grpc"
				}
				s := fmt.Sprint(to.url.String(), " ", protocol, " ", to.headers, " ", to.compression, " ", to.timeout)
				if to.tls != nil {
					s += " TLS"
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error("-want +got:\n" + diff)
			}
		})
	}
}

// TestEnvironmentProblems reports all at once, and no header.
func TestEnvironmentProblems(t *testing.T) {
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://env", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/json",
		"OTEL_EXPORTER_OTLP_HEADERS": "ok=1,canary,x=canary%zz", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": "/none",
	}
	_, err := Config{Name: "a"}.FromEnv(func(name string) string { return env[name] }, noFiles)
	text := fmt.Sprint(err)
	for _, part := range []string{"_COMPRESSION is", "_TIMEOUT is", "_LOGS_PROTOCOL is", "_HEADERS has no name=value at number 2", "at number 3", "_OTLP_CERTIFICATE names a file", "_TRACES_CLIENT_KEY names a file"} {
		if !strings.Contains(text, part) {
			t.Errorf("%v\nwant %q", err, part)
		}
	}
	if strings.Contains(text, "canary") || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestEnvironmentOfTheLibrary sends as configured, although the library itself
// reads variables that say otherwise.
func TestEnvironmentOfTheLibrary(t *testing.T) {
	elsewhere := &fake{}
	other := elsewhere.serve(t, HTTP)
	secure := httptest.NewTLSServer(nil)
	defer secure.Close()
	certificate := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"ENDPOINT": other, "TRACES_ENDPOINT": other, "HEADERS": "canary=1", "TRACES_HEADERS": "canary=2", "PROTOCOL": "http/json", "TRACES_PROTOCOL": "http/json",
		"COMPRESSION": "gzip", "TIMEOUT": "1", "INSECURE": "false", "CERTIFICATE": certificate, "TRACES_INSECURE": "false",
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
	}
	protocols(t, func(t *testing.T, protocol string) {
		f := &fake{}
		if err := start(t, f, protocol).Send(t.Context(), records(t, call(1))); err != nil {
			t.Fatal(err)
		}
		if list, _ := f.logRecords(); len(list) != 1 || len(f.allSpans()) != 1 || len(f.metrics) != 1 || f.headers["canary"] != "" || f.headers["content-encoding"] != "" {
			t.Errorf("%d log records, %d spans, %d metrics, headers %q", len(list), len(f.allSpans()), len(f.metrics), f.headers)
		}
	})
	if len(elsewhere.sizes) != 0 {
		t.Error("it sent to the environment's endpoint")
	}
}
