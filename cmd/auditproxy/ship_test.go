package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/schemas/audit"
	"auditproxy/schemas/evidence"
	"auditproxy/sink/kafka/kafkatest"
	"auditproxy/sink/spool"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"
)

// TestShip ships sessions to a real broker.
func TestShip(t *testing.T) {
	t.Parallel()
	kafkatest.Require(t)
	broker, err := kafkatest.Start(kafkatest.Config{Secure: true})
	must(t, err)
	t.Cleanup(func() { broker.Stop() })
	for name, test := range map[string]func(*shipping){
		"Beside":        (*shipping).testBeside,
		"ShipperKilled": (*shipping).testShipperKilled,
		"SilentBroker":  (*shipping).testSilentBroker,
		"RefusedRecord": (*shipping).testRefusedRecord,
		"NoAccess":      (*shipping).testNoAccess,
		"LostTopic":     (*shipping).testLostTopic,
		"BadLines":      (*shipping).testBadLines,
		"ReadAgain":     (*shipping).testReadAgain,
		"Authorities":   (*shipping).testAuthorities,
	} {
		t.Run(name, func(t *testing.T) {
			s := &shipping{T: t, broker: broker, proxy: program(t), spool: filepath.Join(t.TempDir(), "spool"), topic: "topic-" + name}
			s.createTopic(nil)
			test(s)
		})
	}
}

// A shipping is a spool and a topic.
type shipping struct {
	*testing.T
	broker              *kafkatest.Broker
	proxy, spool, topic string
}

func (s *shipping) createTopic(settings map[string]string) {
	s.Helper()
	must(s, s.broker.CreateTopic(s.Context(), kafkatest.Topic{Name: s.topic, Partitions: 3, Config: settings}))
}

// flags make a proxy ship its own session.
func (s *shipping) flags() []string {
	return []string{"--kafka-brokers", s.broker.Addr, "--kafka-topic", s.topic, "--drain", ceiling.String()}
}

// record runs a proxy for some calls.
func (s *shipping) record(calls int, flags ...string) {
	s.Helper()
	w := wrap(s.T, setup{proxy: s.proxy, spool: s.spool, flags: flags})
	for id := range calls {
		w.answered(id+1, 300)
	}
	if status := w.end(); !status.Exited() || status.ExitStatus() != 0 {
		s.Fatalf("the proxy ended with %#x: %s", status, &w.stderr)
	}
}

// command is auditproxy ship.
func (s *shipping) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.proxy, append([]string{"ship", "--spool-dir", s.spool, "--kafka-topic", s.topic, "--log-format", "json"}, args...)...)
	cmd.Env = []string{"HOME=" + s.TempDir(), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// ship ships the present records, and returns the exit code and the output.
func (s *shipping) ship(args ...string) (code int, output string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 3*ceiling)
	defer cancel()
	out, err := s.command(ctx, append([]string{"--kafka-brokers", s.broker.Addr}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, string(out)
}

// recorded are the record lines in the spool, by session, in order.
func (s *shipping) recorded() map[string][]string {
	s.Helper()
	all := map[string][]string{}
	entries, err := spool.List(s.spool)
	must(s, err)
	for _, e := range entries {
		r, err := spool.OpenReader(spool.ReaderConfig{Dir: s.spool, Session: e.ID})
		must(s, err)
		for {
			item, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(s, err)
			if item.Record() {
				all[e.ID] = append(all[e.ID], string(item.Line))
			}
		}
		must(s, r.Close())
	}
	return all
}

// delivered is the content of the topic, by session, in order, repeats
// included.
func (s *shipping) delivered() map[string][]string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 3*ceiling)
	defer cancel()
	messages, err := s.broker.Messages(ctx, s.topic)
	must(s, err)
	all := map[string][]string{}
	for _, m := range messages {
		all[string(m.Key)] = append(all[string(m.Key)], string(m.Value))
	}
	return all
}

// check compares the topic with the spool. Repeats must be the same bytes; it
// returns their number.
func (s *shipping) check() (records, repeats int) {
	s.Helper()
	want, got := s.recorded(), s.delivered()
	for session, lines := range got {
		seen := map[string]bool{}
		once := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			again := seen[l]
			seen[l] = true
			return again
		})
		records, repeats = records+len(once), repeats+len(lines)-len(once)
		got[session] = once
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("the topic is not the spool (-spool +topic):\n%.2000s", diff)
	}
	return records, repeats
}

// testBeside checks that a proxy ships its own session to the last record, and
// the secure way.
func (s *shipping) testBeside() {
	s.record(20, s.flags()...)
	password := filepath.Join(s.TempDir(), "password")
	must(s, os.WriteFile(password, []byte(kafkatest.Password+"\n"), 0o600))
	s.record(20, "--kafka-brokers", s.broker.SecureAddr, "--kafka-topic", s.topic, "--drain", ceiling.String(),
		"--kafka-tls-enabled", "--kafka-tls-ca-file", s.broker.CAFile, "--kafka-sasl-mechanism", "scram-sha-256",
		"--kafka-sasl-username", kafkatest.User, "--kafka-sasl-password-file", password)
	if records, repeats := s.check(); records != 46 || repeats != 0 {
		s.Errorf("%d records and %d repeats, want 46 and none", records, repeats)
	}
	code, out := s.ship()
	if code != 0 || !strings.Contains(out, "shipped 0 records of 0 sessions") {
		s.Errorf("ship after that: exit code %d, %s", code, out)
	}
}

// testShipperKilled kills the shipper of the host at random times while proxies write, and
// one of them too.
func (s *shipping) testShipperKilled() {
	kills := 10
	if soak() {
		kills = 50
	}
	random := rand.New(rand.NewPCG(seed(s.T), 0))
	k := &killing{t: s.T, random: random}
	var proxies []*wrapped
	var loads []*loading
	for range 2 {
		w := wrap(s.T, setup{proxy: s.proxy, spool: s.spool, flags: []string{"--durability", "interval"}})
		l := k.load(w, 1, 200)
		<-l.begun
		proxies, loads = append(proxies, w), append(loads, l)
	}
	for n := range kills {
		cmd := s.command(s.Context(), "--follow", "--kafka-brokers", s.broker.Addr)
		must(s, cmd.Start())
		time.AfterFunc(50*time.Millisecond+time.Duration(random.ExpFloat64()*200e6), func() { cmd.Process.Kill() })
		if err := cmd.Wait(); cmd.ProcessState.Exited() {
			s.Fatalf("the shipper ended by itself: %v", err)
		}
		if n == kills/2 {
			proxies[0].cmd.Process.Kill()
			proxies[0].wait()
		}
	}
	proxies[1].in.Close()
	loads[0].wait.Wait()
	loads[1].wait.Wait()
	proxies[1].wait()
	if code, out := s.ship(); code != 0 {
		s.Fatalf("ship: exit code %d, %s", code, out)
	}
	records, repeats := s.check()
	s.Logf("%d records, %d repeats", records, repeats)
	if records < 100 {
		s.Errorf("only %d records: the kills hit no load", records)
	}
}

// testSilentBroker gives a proxy a broker that accepts connections and never
// answers: calls are forwarded, the proxy ends, and everything is left for
// another to ship.
func (s *shipping) testSilentBroker() {
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	must(s, err)
	defer hole.Close()
	s.record(50, "--kafka-brokers", hole.Addr().String(), "--kafka-topic", s.topic, "--drain", "1ms")
	if got := s.delivered(); len(got) > 0 {
		s.Fatalf("the topic has %d sessions, want none", len(got))
	}
	code, out := s.ship()
	if code != 0 || !strings.Contains(out, "shipped 53 records of 1 session\n") {
		s.Errorf("ship: exit code %d, %s", code, out)
	}
	s.check()
}

// testRefusedRecord makes the topic too small for one record: the rest is
// shipped, a substitute is sent for it, and it is kept in the place that the log
// names. The evidence is not clear then, and is once the record itself is there too.
func (s *shipping) testRefusedRecord() {
	s.topic += "-small"
	s.createTopic(map[string]string{"max.message.bytes": "3000"})
	w := wrap(s.T, setup{proxy: s.proxy, spool: s.spool})
	var long strings.Builder
	for x := range 400 {
		fmt.Fprintf(&long, `"name%d":%d,`, x*7919, x*104729)
	}
	must(s, w.send([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long","arguments":{`+long.String()+`"a":1}}}`+"\n")))
	w.next(1)
	w.answered(2, 100)
	w.end()
	code, out := s.ship()
	if code != cli.ExitFound || !strings.Contains(out, "record refused and set aside") || !strings.Contains(out, "1 record not delivered as it is") {
		s.Errorf("ship: exit code %d, %s", code, out)
	}
	var kept []byte
	names, err := filepath.Glob(filepath.Join(s.spool, "quarantine", "*"))
	must(s, err)
	if len(names) == 1 && strings.Contains(out, names[0]) {
		kept, err = os.ReadFile(names[0])
		must(s, err)
	}
	sessions, small := s.recorded(), s.delivered()
	for session, lines := range sessions {
		got := small[session]
		if len(got) != len(lines) {
			s.Fatalf("%d records in the topic, %d in the spool", len(got), len(lines))
		}
		start, err := audit.Parse([]byte(lines[0]))
		must(s, err)
		signed, err := evidence.ReadSession(&start)
		must(s, err)
		host, err := note.NewVerifier(signed.HostKey)
		must(s, err)
		for i, line := range lines {
			want, err := audit.Parse([]byte(line))
			must(s, err)
			if want.Tool == "long" {
				if string(kept) != line+"\n" {
					s.Errorf("%q keeps %.100q, want the record", names, kept)
				}
				want.Args, want.Annotations, want.Anomalies = "", "", []string{"undeliverable"}
			}
			have, err := audit.Parse([]byte(got[i]))
			must(s, err)
			if want.Tool == "long" {
				if leaf, ok := evidence.OpenStandIn([]byte(got[i]), host); !ok || leaf != evidence.Leaf([]byte(line)) {
					s.Errorf("the host's signature does not make %s the stand-in of the record", got[i])
				}
				have.Evidence = ""
			}
			if diff := cmp.Diff(want, have); diff != "" {
				s.Errorf("record %d (-want +got):\n%s", i, diff)
			}
		}
	}
	if code, out := s.verify(small); code != cli.ExitUnclear || !strings.Contains(out, "Kafka refused the whole record, and its host signed the short one in its place") {
		s.Errorf("verify: exit code %d, %s", code, out)
	}
	s.topic += "-large"
	s.createTopic(nil)
	if code, out := s.ship("--from", "2020-01-01"); code != 0 {
		s.Errorf("ship --from: exit code %d, %s", code, out)
	}
	if code, out := s.verify(small, s.delivered()); code != 0 {
		s.Errorf("verify with the record too: exit code %d, %s", code, out)
	}
}

// verify checks what is in topics with the trusted key of the host.
func (s *shipping) verify(topics ...map[string][]string) (code int, output string) {
	s.Helper()
	var file strings.Builder
	for _, topic := range topics {
		for _, lines := range topic {
			file.WriteString(strings.Join(lines, "\n") + "\n")
		}
	}
	dir := s.TempDir()
	export, trust := filepath.Join(dir, "export.ndjson"), filepath.Join(dir, "trust")
	must(s, os.WriteFile(export, []byte(file.String()), 0o600))
	key, err := os.ReadFile(filepath.Join(s.spool, "evidence", "host.key.pub"))
	must(s, err)
	must(s, os.WriteFile(trust, append([]byte("host "), key...), 0o600))
	cmd := exec.CommandContext(s.Context(), s.proxy, "verify", "--file", export, "--trust", trust)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// testNoAccess starts proxies that cannot reach Kafka: their calls are
// recorded, they log why nothing is shipped, and nothing is lost.
func (s *shipping) testNoAccess() {
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--kafka-tls-enabled", "--kafka-tls-ca-file", "/absent"}, "nothing is shipped to Kafka; the records stay in the spool"},
		{[]string{"--kafka-tls-enabled"}, "the broker closes the connection"},
	} {
		w := wrap(s.T, setup{proxy: s.proxy, spool: s.spool, flags: slices.Concat(
			[]string{"--kafka-brokers", s.broker.Addr, "--kafka-topic", s.topic, "--drain", "2s"}, tt.flags)})
		w.answered(1, 100)
		if status := w.end(); status.ExitStatus() != 0 || !strings.Contains(w.stderr.String(), tt.want) {
			s.Errorf("%v: status %#x, %s, want %q", tt.flags, status, &w.stderr, tt.want)
		}
	}
	if got := s.delivered(); len(got) > 0 {
		s.Errorf("the topic has %d sessions, want none", len(got))
	}
	if code, out := s.ship(); code != 0 {
		s.Errorf("ship: exit code %d, %s", code, out)
	}
	s.check()
}

// testReadAgain replaces the password and the authority while they are not right.
func (s *shipping) testReadAgain() {
	s.record(3)
	dir := s.TempDir()
	password, ca := filepath.Join(dir, "password"), filepath.Join(dir, "ca")
	other := httptest.NewTLSServer(nil)
	defer other.Close()
	must(s, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}), 0o600))
	must(s, os.WriteFile(password, []byte("old"), 0o600))
	cmd := s.command(s.Context(), "--kafka-brokers", s.broker.SecureAddr, "--kafka-tls-enabled", "--kafka-tls-ca-file", ca,
		"--kafka-sasl-mechanism", "scram-sha-512", "--kafka-sasl-username", kafkatest.User, "--kafka-sasl-password-file", password)
	stderr, err := cmd.StderrPipe()
	must(s, err)
	must(s, cmd.Start())
	lines := bufio.NewScanner(stderr)
	for _, step := range []struct {
		said string
		then func() error
	}{
		{"is not signed by an authority that is trusted here", func() error { return os.Truncate(ca, 0) }}, // as while it is written
		{"a file cannot be read again", func() error {
			text, err := os.ReadFile(s.broker.CAFile)
			return errors.Join(err, os.WriteFile(ca, text, 0o600))
		}},
		{"Kafka does not take this user name and password", func() error { return os.WriteFile(password, []byte(kafkatest.Password), 0o600) }},
	} {
		for !strings.Contains(lines.Text(), step.said) {
			if !lines.Scan() {
				s.Fatalf("ship ended before it said %q: %v", step.said, cmd.Wait())
			}
		}
		must(s, step.then())
	}
	for lines.Scan() { // until it ends
	}
	must(s, cmd.Wait())
	if records, _ := s.check(); records != 6 {
		s.Errorf("%d records, want 6", records)
	}
}

// testAuthorities has the environment, which the agent's client chooses, say who is
// trusted: not where the administrator enforces that.
func (s *shipping) testAuthorities() {
	s.record(3)
	password := filepath.Join(s.TempDir(), "password")
	must(s, os.WriteFile(password, []byte(kafkatest.Password), 0o600))
	for _, tt := range []struct {
		caFile, enforce, trusted string // trusted is by the environment
		code                     int
		want                     string
	}{
		{"", "[kafka.brokers, kafka.tls.enabled, kafka.tls.ca_file]", s.broker.CAFile, 78, `variable SSL_CERT_FILE: kafka.tls.ca_file: is enforced, and the variable would change who is trusted: unset it for this program, or have the administrator name the file`},
		{s.broker.CAFile, "[kafka.brokers, kafka.tls.enabled, kafka.tls.ca_file]", "/absent", 0, "shipped 6 records"},
		{"", "[kafka.brokers]", s.broker.CAFile, 0, "shipped 0 records"}, // as with kafka.tls.ca_file
	} {
		file := filepath.Join(s.TempDir(), "config.yaml")
		must(s, os.WriteFile(file, fmt.Appendf(nil, "enforce: %s\nkafka:\n  brokers: [%q]\n  tls: {enabled: true, ca_file: %q}\n", tt.enforce, s.broker.SecureAddr, tt.caFile), 0o644))
		cmd := s.command(s.Context(), "--kafka-sasl-mechanism", "scram-sha-512", "--kafka-sasl-username", kafkatest.User, "--kafka-sasl-password-file", password)
		cmd.Env = append(cmd.Env, "SYSTEM_CONFIG="+file, "SSL_CERT_FILE="+tt.trusted)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) {
			s.Errorf("enforcing %s: exit code %d, %s, want %d and %q", tt.enforce, code, out, tt.code, tt.want)
		}
	}
	if records, repeats := s.check(); records != 6 || repeats != 0 {
		s.Errorf("%d records and %d repeats, want 6 and none", records, repeats)
	}
}

// testLostTopic loses the topic after all was shipped, and ships again.
func (s *shipping) testLostTopic() {
	s.record(30, s.flags()...)
	must(s, s.broker.DeleteTopic(s.Context(), s.topic))
	s.topic += "-again"
	s.createTopic(nil)
	if code, out := s.ship(); code != 0 || len(s.delivered()) > 0 {
		s.Fatalf("ship: exit code %d, %s, want nothing to ship", code, out)
	}
	if code, out := s.ship("--from", "-1h"); code != 0 || !strings.Contains(out, "shipped 33 records of 1 session\n") {
		s.Errorf("ship --from: exit code %d, %s", code, out)
	}
	if records, repeats := s.check(); records != 33 || repeats != 0 {
		s.Errorf("%d records and %d repeats, want 33 and none", records, repeats)
	}
}

// testBadLines damages a line: it is kept next to the spool and logged, and the
// lines after it are shipped. Another session cannot be read at all.
func (s *shipping) testBadLines() {
	s.record(3)
	entries, err := spool.List(s.spool)
	must(s, err)
	file := filepath.Join(s.spool, "sessions", entries[0].ID, "00000001.jsonl")
	text, err := os.ReadFile(file)
	must(s, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	bad := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte(`"outcome"`)) })
	damaged := bytes.Replace(lines[bad], []byte(`"outcome"`), []byte(`"OUTCOME"`), 1)
	lines[bad] = damaged
	must(s, os.WriteFile(file, bytes.Join(lines, nil), 0o600))

	s.record(1)
	entries, err = spool.List(s.spool)
	must(s, err)
	other := filepath.Join(s.spool, "sessions", entries[1].ID)
	must(s, os.Chmod(other, 0o777)) // writable by other users

	code, out := s.ship()
	if code != cli.ExitUnclear || !strings.Contains(out, "1 session not shipped") || !strings.Contains(out, "a place in the spool cannot be delivered") {
		s.Errorf("ship: exit code %d, %s", code, out)
	}
	names, err := filepath.Glob(filepath.Join(s.spool, "quarantine", "*"))
	must(s, err)
	if len(names) != 1 || !strings.Contains(out, names[0]) {
		s.Fatalf("set aside: %q, want one file, named in %s", names, out)
	}
	if kept, err := os.ReadFile(names[0]); err != nil || !bytes.Equal(kept, damaged) {
		s.Errorf("%q holds %q, %v, want the damaged line", names[0], kept, err)
	}
	must(s, os.Chmod(other, 0o700))
	if code, out := s.ship(); code != 0 {
		s.Errorf("ship: exit code %d, %s", code, out)
	}
	s.check()
}
