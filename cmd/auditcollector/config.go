package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/sink/clickhouse"

	"go.uber.org/zap"
)

// A config is the configuration in force, checked.
type config struct {
	values cli.Values // what follows as it was written, with sources, and the logger's keys

	brokers []string // none: spools are read
	topic   string
	group   string
	tenants map[string]string // topic: tenant

	spoolDirs []string

	addrs    []string // of ClickHouse; none: the local engine
	database string

	localDir string

	batchRows  int
	batchBytes int64
	batchWait  time.Duration

	deadTopic       string
	keepEvents      time.Duration
	keepDeadLetters time.Duration
	metricsListen   string
}

// collectorKeys are all keys of this program. What they mean stands in README.md.
func collectorKeys(localDir, spoolDir string) []cli.Key {
	return append([]cli.Key{
		{Name: "kafka.brokers", Kind: cli.List, Usage: "host:port of Kafka brokers; none: spools are read"},
		{Name: "kafka.topic", Kind: cli.Text, Default: "mcp.audit.v1", Usage: "topic of the records"},
		{Name: "kafka.group", Kind: cli.Text, Default: "auditcollector", Usage: "consumer group"},
		{Name: "kafka.tenants", Kind: cli.List, Usage: "topic=tenant pairs: more topics, and whose records each may hold"},
		{Name: "kafka.tls.enabled", Kind: cli.Bool, Usage: "speak TLS to the brokers"},
		{Name: "kafka.tls.ca_file", Kind: cli.Path, Usage: "certificates to trust instead of the system's"},
		{Name: "kafka.tls.cert_file", Kind: cli.Path, Usage: "our certificate"},
		{Name: "kafka.tls.key_file", Kind: cli.Path, Usage: "key of our certificate"},
		{Name: "kafka.tls.server_name", Kind: cli.Text, Usage: "name in the brokers' certificates, if not their host's"},
		{Name: "kafka.sasl.mechanism", Kind: cli.Choice, Choices: []string{"plain", "scram-sha-256", "scram-sha-512"}, Usage: "how to log in; by default not at all"},
		{Name: "kafka.sasl.username", Kind: cli.Text, Usage: "who to log in as"},
		{Name: "kafka.sasl.password", Kind: cli.Password},
		{Name: "kafka.sasl.password_file", Kind: cli.Path, Usage: "file with the password; a line feed at its end does not count"},
		{Name: "spool.dirs", Kind: cli.List, Default: spoolDir, Varies: true, Usage: "spool directories to read where there are no brokers"},
		{Name: "clickhouse.addr", Kind: cli.List, Usage: "host:port of ClickHouse servers; none: an engine of our own"},
		{Name: "clickhouse.protocol", Kind: cli.Choice, Default: "native", Choices: []string{"native", "http"}, Usage: "how to speak to them"},
		{Name: "clickhouse.database", Kind: cli.Text, Default: "audit", Usage: "database of the records"},
		{Name: "clickhouse.user", Kind: cli.Text, Default: "default", Usage: "who to log in as"},
		{Name: "clickhouse.password", Kind: cli.Password},
		{Name: "clickhouse.password_file", Kind: cli.Path, Usage: "file with the password; a line feed at its end does not count"},
		{Name: "clickhouse.tls.enabled", Kind: cli.Bool, Usage: "speak TLS to the servers"},
		{Name: "clickhouse.tls.ca_file", Kind: cli.Path, Usage: "certificates to trust instead of the system's"},
		{Name: "clickhouse.tls.cert_file", Kind: cli.Path, Usage: "our certificate"},
		{Name: "clickhouse.tls.key_file", Kind: cli.Path, Usage: "key of our certificate"},
		{Name: "clickhouse.tls.server_name", Kind: cli.Text, Usage: "name in the servers' certificates, if not their host's"},
		{Name: "local.dir", Kind: cli.Path, Default: localDir, Varies: true, Usage: "directory of the local engine"},
		{Name: "local.library", Kind: cli.Path, Usage: "libchdb.so; by default it is looked for"},
		{Name: "local.listen", Kind: cli.Text, Usage: "loopback host:port at which the local engine can be read with local.password; none: nowhere"},
		{Name: "local.password", Kind: cli.Password},
		{Name: "local.password_file", Kind: cli.Path, Usage: "file with the password of local.listen"},
		{Name: "local.memory", Kind: cli.Size, Default: "1GiB", Usage: "how much memory the local engine may take"},
		{Name: "batch.rows", Kind: cli.Count, Default: "50000", Usage: "records after which a batch is inserted"},
		{Name: "batch.bytes", Kind: cli.Size, Default: "32MB", Usage: "memory after which a batch is inserted"},
		{Name: "batch.wait", Kind: cli.Duration, Default: "1s", Usage: "time after which a batch is inserted"},
		{Name: "dead_letters.topic", Kind: cli.Text, Default: "mcp.audit.v1.dead", Usage: "topic of what could not be inserted, beside the table; none: the table alone"},
		{Name: "retention.events", Kind: cli.Duration, Default: "400d", Usage: "how long records stay in ClickHouse"},
		{Name: "retention.dead_letters", Kind: cli.Duration, Default: "400d", Usage: "how long dead letters stay in ClickHouse"},
		{Name: "metrics.listen", Kind: cli.Text, Default: "127.0.0.1:8687", Usage: "host:port of /metrics, /healthz and /readyz; none: nowhere"},
	}, cli.LogKeys...)
}

// load reads the configuration: the administrator's file, the user's, the
// environment, the flags. An error names all problems and is worth exitConfig.
func (a *app) load() (config, error) {
	v, problems := cli.Load(cli.Config{
		Program:    "auditcollector",
		Keys:       a.keys,
		SystemFile: a.systemConfig,
		Env:        a.env,
		Flags:      a.flags,
	})
	c := checker{v, problems}
	cfg := config{
		values:          v,
		brokers:         c.addresses("kafka.brokers"),
		topic:           c.topic("kafka.topic"),
		group:           v.String("kafka.group"),
		tenants:         c.tenants(),
		spoolDirs:       c.directories("spool.dirs"),
		addrs:           c.addresses("clickhouse.addr"),
		database:        v.String("clickhouse.database"),
		localDir:        v.String("local.dir"),
		batchRows:       int(v.Count("batch.rows")),
		batchBytes:      v.Size("batch.bytes"),
		batchWait:       v.Duration("batch.wait"),
		deadTopic:       v.String("dead_letters.topic"),
		keepEvents:      c.days("retention.events"),
		keepDeadLetters: c.days("retention.dead_letters"),
		metricsListen:   v.String("metrics.listen"),
	}
	c.check(cfg)
	c.login("kafka.sasl.", "kafka.sasl.mechanism")
	c.tls("kafka.")
	c.tls("clickhouse.")
	c.onePassword("clickhouse.")
	c.onePassword("local.")
	if err := c.problems.Err(); err != nil {
		return config{}, exitError{exitConfig, err}
	}
	return cfg, nil
}

// logger returns the log of this program's own running.
func (c config) logger(a *app) *zap.Logger { return cli.NewLogger(a.stderr, c.values) }

// A checker finds what is wrong with values that are right one by one.
type checker struct {
	cli.Values
	problems cli.Problems
}

func (c *checker) problem(key, format string, args ...any) {
	c.problems = append(c.problems, cli.Problem{Key: key, Source: c.Source(key), Err: fmt.Errorf(format, args...)})
}

func (c *checker) addresses(key string) []string {
	list := c.List(key)
	for _, addr := range list {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			c.problem(key, "%q: want host:port", addr)
		}
	}
	return list
}

func (c *checker) directories(key string) []string {
	list := c.List(key)
	for _, dir := range list {
		if !filepath.IsAbs(dir) {
			c.problem(key, "%q: want an absolute path", dir)
		}
	}
	return list
}

// notInTopic reports whether Kafka refuses r in the name of a topic.
func notInTopic(r rune) bool {
	return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune("._-", r))
}

func checkTopic(topic string) error {
	if topic == "" || len(topic) > 249 || strings.ContainsFunc(topic, notInTopic) {
		return fmt.Errorf("is %q, want 1 to 249 of A-Z a-z 0-9 . _ -", topic)
	}
	return nil
}

func (c *checker) topic(key string) string {
	topic := c.String(key)
	if err := checkTopic(topic); err != nil {
		c.problem(key, "%w", err)
	}
	return topic
}

func (c *checker) tenants() map[string]string {
	const key = "kafka.tenants"
	tenants := map[string]string{}
	for _, s := range c.List(key) {
		topic, tenant, ok := strings.Cut(s, "=")
		err := checkTopic(topic)
		switch _, twice := tenants[topic]; {
		case !ok || tenant == "":
			c.problem(key, "%q: want topic=tenant", s)
		case err != nil:
			c.problem(key, "%q: %w", s, err)
		case twice:
			c.problem(key, "%q stands there twice", topic)
		}
		tenants[topic] = tenant
	}
	return tenants
}

// days returns a time that ClickHouse's TTL can hold.
func (c *checker) days(key string) time.Duration {
	const day = 24 * time.Hour
	d := c.Duration(key)
	if d < day || d%day != 0 || d > clickhouse.MaxRetention {
		c.problem(key, "is %v, want whole days, 1d to %dd", d, clickhouse.MaxRetention/day)
	}
	return d
}

func (c *checker) check(cfg config) {
	if len(cfg.brokers) == 0 && len(cfg.spoolDirs) == 0 {
		c.problem("spool.dirs", "there are no brokers and no home directory to look for a spool in; write where the records are")
	}
	if len(cfg.addrs) == 0 && cfg.localDir == "" {
		c.problem("local.dir", "there is no home directory to keep the local engine's data in; write where it goes")
	}
	if cfg.group == "" {
		c.problem("kafka.group", "must not be empty")
	}
	if !identifier(cfg.database) {
		c.problem("clickhouse.database", "is %q, want 1 to 64 of A-Z a-z 0-9 _", cfg.database)
	}
	if cfg.deadTopic != "" {
		c.topic("dead_letters.topic")
	}
	if _, mapped := cfg.tenants[cfg.deadTopic]; mapped || cfg.deadTopic == cfg.topic {
		c.problem("dead_letters.topic", "is %q, which holds records; want another", cfg.deadTopic)
	}
	if cfg.batchRows > 1_000_000 { // more would be split into two blocks of one token each
		c.problem("batch.rows", "is %d, want at most 1000000", cfg.batchRows)
	}
	if cfg.batchBytes < 1<<20 || cfg.batchBytes > 256<<20 {
		c.problem("batch.bytes", "is %s, want 1MiB to 256MiB", cli.FormatSize(cfg.batchBytes))
	}
	if cfg.batchWait <= 0 || cfg.batchWait > time.Minute {
		c.problem("batch.wait", "is %v, want more than 0 and at most 1m", cfg.batchWait)
	}
	c.listen(cfg)
}

func (c *checker) listen(cfg config) {
	if _, _, err := net.SplitHostPort(cfg.metricsListen); err != nil && cfg.metricsListen != "" {
		c.problem("metrics.listen", "%q: want host:port", cfg.metricsListen)
	}
	listen := c.String("local.listen")
	if listen == "" {
		return
	}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.problem("local.listen", "%q: want host:port of this machine's loopback", listen)
	}
	if c.Secret("local.password").Reveal() == "" && c.String("local.password_file") == "" {
		c.problem("local.listen", "needs local.password or local.password_file")
	}
}

func identifier(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && !('0' <= r && r <= '9') && !('a' <= r|0x20 && r|0x20 <= 'z')
	})
}

// tls finds settings of TLS that nothing would use.
func (c *checker) tls(prefix string) {
	for _, name := range []string{"ca_file", "cert_file", "key_file", "server_name"} {
		if key := prefix + "tls." + name; c.String(key) != "" && !c.Bool(prefix+"tls.enabled") {
			c.problem(key, "would not be used: %stls.enabled is false", prefix)
		}
	}
	if (c.String(prefix+"tls.cert_file") == "") != (c.String(prefix+"tls.key_file") == "") {
		c.problem(prefix+"tls.cert_file", "goes with %stls.key_file: want both or none", prefix)
	}
}

func (c *checker) login(prefix, mechanism string) {
	user, file := c.String(prefix+"username"), c.String(prefix+"password_file")
	password := c.Secret(prefix + "password").Reveal()
	switch login := c.String(mechanism) != ""; {
	case !login && user+password+file != "":
		c.problem(mechanism, "is not set, so nobody logs in; want plain, scram-sha-256 or scram-sha-512")
	case login && (user == "" || password+file == ""):
		c.problem(mechanism, "needs %[1]susername, and %[1]spassword or %[1]spassword_file", prefix)
	}
	c.onePassword(prefix)
}

func (c *checker) onePassword(prefix string) {
	if c.Secret(prefix+"password").Reveal() != "" && c.String(prefix+"password_file") != "" {
		c.problem(prefix+"password_file", "there is %spassword too: want one of them", prefix)
	}
}

// topics are those to read.
func (c config) topics() []string {
	topics := []string{c.topic}
	for topic := range c.tenants {
		if topic != c.topic {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}
