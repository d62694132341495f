package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"auditproxy/deploy/dev"

	"go.yaml.in/yaml/v3"
)

// siemFiles are files of deploy/siem whose names have a prefix.
func siemFiles(t *testing.T, prefix string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join("..", "..", "deploy", "siem", prefix))
	if err != nil || len(list) == 0 {
		t.Fatalf("no files %q: %v", prefix, err)
	}
	return list
}

// TestOpenTelemetryCollectors starts an OpenTelemetry Collector with each of our
// configurations for one. Exporters and extensions that it does not have are
// replaced by one to a file, so their parts are not checked.
func TestOpenTelemetryCollectors(t *testing.T) {
	t.Parallel()
	otelcol := dev.Fetched(t, "otelcol")
	for _, name := range siemFiles(t, "otelcol-*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var config struct {
				Receivers  map[string]any
				Exporters  map[string]any
				Extensions map[string]any `yaml:",omitempty"`
				Service    struct {
					Extensions []string `yaml:",omitempty"`
					Pipelines  map[string]struct{ Receivers, Exporters []string }
				}
			}
			d := yaml.NewDecoder(strings.NewReader(string(text)))
			d.KnownFields(true)
			if err := d.Decode(&config); err != nil {
				t.Fatal(err)
			}
			for _, e := range config.Service.Extensions {
				if _, has := config.Extensions[e]; !has {
					t.Errorf("extension %q is not configured", e)
				}
			}
			dir := t.TempDir()
			for signal, p := range config.Service.Pipelines {
				for _, e := range p.Exporters {
					if _, has := config.Exporters[e]; !has {
						t.Errorf("exporter %q is not configured", e)
					}
				}
				p.Exporters = []string{"file"}
				config.Service.Pipelines[signal] = p
			}
			config.Exporters = map[string]any{"file": map[string]any{"path": filepath.Join(dir, "out")}}
			config.Extensions, config.Service.Extensions = nil, nil
			changed, err := yaml.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			addr := dev.FreeAddr(t)
			changed = []byte(strings.ReplaceAll(string(changed), "127.0.0.1:4317", addr))
			file := filepath.Join(dir, "config.yaml")
			if err := os.WriteFile(file, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			startsAndEnds(t, exec.Command(otelcol, file), addr)
		})
	}
}

// startsAndEnds waits until a program listens at an address, and kills it.
func startsAndEnds(t *testing.T, cmd *exec.Cmd, address string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		var all strings.Builder
		for s := bufio.NewScanner(stderr); s.Scan(); {
			fmt.Fprintln(&all, s.Text())
		}
		said <- all.String()
	}()
	ready := func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}
	eventually(t, "it listens", func() bool {
		select {
		case text := <-said:
			_ = cmd.Wait()
			t.Fatalf("it ended:\n%s", text)
		default:
		}
		return ready()
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-said
	_ = cmd.Wait() // killed
}
