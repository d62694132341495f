package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"auditproxy/cmd/internal/cli"
	"auditproxy/sink/clickhouse"
	"auditproxy/sink/clickhouse/chdb"

	"go.uber.org/zap"
)

// A config is the configuration in force, checked.
type config struct {
	values cli.Values // what follows as written, with sources, and the logger's keys

	notRead func(error) // is called when a file cannot be read again; nil: no callback

	brokers []string // none: spools are read
	topic   string
	group   string
	tenants map[string]string // topic: tenant

	spoolDirs []string

	addrs    []string // of ClickHouse; none: the local engine
	database string
	cluster  clickhouse.Cluster // the zero value: one server

	localDir string

	batchRows  int
	batchBytes int64
	batchWait  time.Duration

	deadTopic       string
	keepEvents      time.Duration
	keepTenants     map[string]time.Duration
	keepDeadLetters time.Duration
	coldAfter       time.Duration // 0: never
	metricsListen   string
	review          reviewConfig
	evidence        evidenceConfig

	ruleFiles    []string // of alerts; shippedRules is those included in the program
	allowedPaths []string // where panes may be piped to
}

// collectorKeys returns all keys of this program, in the order of the help and
// of docs/configuration.md.
func collectorKeys(localDir, spoolDir string) []cli.Key {
	return slices.Concat([]cli.Key{
		{Name: "kafka.brokers", Kind: cli.List, Usage: "host:port of Kafka brokers; none: spools are read"},
		{Name: "kafka.topic", Kind: cli.Text, Default: "mcp.audit.v1", Usage: "topic of the records"},
		{Name: "kafka.group", Kind: cli.Text, Default: "auditcollector", Usage: "consumer group"},
		{Name: "kafka.tenants", Kind: cli.List, Usage: "topic=tenant pairs: more topics, and whose records each may hold"},
	},
		cli.TLSKeys("kafka.tls", "brokers"),
		cli.LoginKeys("kafka.sasl"),
		[]cli.Key{
			{Name: "spool.dirs", Kind: cli.List, Default: spoolDir, Varies: true, Usage: "spool directories to read where there are no brokers"},
			{Name: "clickhouse.addr", Kind: cli.List, Usage: "host:port of ClickHouse servers; none: a local engine"},
			{Name: "clickhouse.protocol", Kind: cli.Choice, Default: "native", Choices: []string{"native", "http"}, Usage: "protocol of the servers"},
			{Name: "clickhouse.database", Kind: cli.Text, Default: "audit", Usage: "database of the records"},
			{Name: "clickhouse.user", Kind: cli.Text, Default: "default", Usage: "user name"},
		},
		cli.PasswordKeys("clickhouse.password"),
		cli.TLSKeys("clickhouse.tls", "servers"),
		clusterKeys(),
		[]cli.Key{
			{Name: "local.dir", Kind: cli.Path, Default: localDir, Varies: true, Usage: "directory of the local engine"},
			{Name: "local.library", Kind: cli.Path, Usage: "path of libchdb.so; by default next to the program or where libraries are"},
			{Name: "local.listen", Kind: cli.Text, Usage: "loopback host:port on which readers reach the local engine with local.password; none: no port"},
		},
		cli.PasswordKeys("local.password"),
		[]cli.Key{
			{Name: "local.memory", Kind: cli.Size, Default: "1GiB", Usage: "memory limit of the local engine"},
			{Name: "batch.rows", Kind: cli.Count, Default: "50000", Usage: "records in a batch at most"},
			{Name: "batch.bytes", Kind: cli.Size, Default: "64MB", Usage: "memory of a batch at most"},
			{Name: "batch.wait", Kind: cli.Duration, Default: "1s", Usage: "longest wait for a batch to fill"},
			{Name: "dead_letters.topic", Kind: cli.Text, Default: "mcp.audit.v1.dead", Usage: "topic of dead letters, in addition to the table; none: only the table"},
			{Name: "retention.events", Kind: cli.Duration, Default: "400d", Usage: "how long to keep records in ClickHouse"},
			{Name: "retention.tenants", Kind: cli.List, Usage: "tenant=time pairs: tenants whose records are kept for another time than retention.events"},
			{Name: "retention.dead_letters", Kind: cli.Duration, Default: "400d", Usage: "how long to keep dead letters in ClickHouse"},
			{Name: "retention.storage_policy", Kind: cli.Text, Usage: "storage policy of ClickHouse for records; none: unchanged"},
			{Name: "retention.cold_after", Kind: cli.Duration, Usage: "age at which records move to retention.cold_volume; none: never"},
			{Name: "retention.cold_volume", Kind: cli.Text, Default: "cold", Usage: "volume of the storage policy for old records"},
			{Name: "alert.rules", Kind: cli.List, Default: shippedRules, Usage: "files of alert rules; shipped: the rules of this program"},
			{Name: "alert.allowed_paths", Kind: cli.List, Usage: "directories that panes may be piped to without an alert"},
			{Name: "alert.webhooks", Kind: cli.Secrets, Usage: "addresses to which alerts are posted, separated by commas"},
			{Name: "alert.webhooks_file", Kind: cli.Path, Usage: "file with these addresses, one in each line"},
			{Name: "alert.alertmanager", Kind: cli.Secrets, Usage: "addresses of Alertmanagers, separated by commas"},
			{Name: "alert.alertmanager_file", Kind: cli.Path, Usage: "file with these addresses, one in each line"},
			{Name: "export.receivers", Kind: cli.List, Usage: "files of receivers of exports, see docs/siem.md; none: only otlp.endpoint"},
			{Name: "otlp.endpoint", Kind: cli.Text, Usage: "address of a receiver of OpenTelemetry's protocol; none: that of OTEL_EXPORTER_OTLP_ENDPOINT, or no such receiver"},
			{Name: "otlp.protocol", Kind: cli.Choice, Choices: []string{"grpc", "http/protobuf"}, Usage: "protocol of otlp.endpoint; none: that of OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf"},
			{Name: "otlp.headers_file", Kind: cli.Path, Usage: "file with headers for otlp.endpoint, a name, a colon and a value in each line"},
			{Name: "otlp.compression", Kind: cli.Choice, Choices: []string{"none", "gzip"}, Usage: "compression for otlp.endpoint; none: that of OTEL_EXPORTER_OTLP_COMPRESSION, or none"},
		},
		cli.TLSKeys("otlp.tls", "endpoint"),
		[]cli.Key{
			{Name: "review.listen", Kind: cli.Text, Default: "127.0.0.1:8686", Usage: "host:port of the review page, or unix: and the path of a socket; off: no page"},
			{Name: "review.url", Kind: cli.Text, Usage: "address for browsers, such as https://audit.example.org, if not review.listen"},
			{Name: "review.tls.cert_file", Kind: cli.Path, Usage: "certificate of the review page; none: only for this machine"},
			{Name: "review.tls.key_file", Kind: cli.Path, Usage: "key of that certificate"},
			{Name: "review.trusted_header", Kind: cli.Text, Usage: "header in which a proxy names the user"},
			{Name: "review.trusted_proxies", Kind: cli.List, Usage: "addresses or networks whose review.trusted_header is trusted"},
			{Name: "review.tenant", Kind: cli.Text, Usage: "the one tenant whose records review.user may see"},
			{Name: "review.approvals", Kind: cli.List, Usage: "directories of waiting calls that everyone who may open the review page may answer; none: no page for them"},
			{Name: "review.user", Kind: cli.Text, Usage: "user that reads clickhouse.addr for the review page, if not clickhouse.user"},
		},
		cli.PasswordKeys("review.password"),
		[]cli.Key{
			{Name: "evidence.enabled", Kind: cli.Bool, Default: "true", Usage: "keep a log of the sessions' starts and checkpoints"},
			{Name: "evidence.log", Kind: cli.Path, Varies: true, Usage: "directory of that log; default: log in local.dir"},
			{Name: "evidence.serve", Kind: cli.Bool, Default: "false", Usage: "serve the log to everyone, under /log/ of review.listen"},
			{Name: "evidence.witnesses", Kind: cli.List, Usage: "witnesses that sign the log's checkpoints: the address of each and, after a space, its verifier key"},
			{Name: "evidence.verify_every", Kind: cli.Duration, Default: "10m", Usage: "time between two verifications of the sessions with new records; 0: never"},
			{Name: "evidence.reverify", Kind: cli.Count, Default: "100000", Usage: "records that each verification checks again, of all sessions in turn"},
			{Name: "evidence.host_key_file", Kind: cli.Path, Usage: "evidence.key_file of the proxies whose spools this collector reads, to sign the end of dead sessions; none: the key in each spool"},
			{Name: "evidence.trust_file", Kind: cli.Path, Usage: "file with the keys that this verification trusts; none: only those of the spools of spool.dirs"},
		},
		[]cli.Key{
			{Name: "metrics.listen", Kind: cli.Text, Default: "127.0.0.1:8687", Usage: "host:port of /metrics, /healthz and /readyz; without a host on loopback; none: no port"},
		}, cli.LogKeys)
}

// load reads the configuration: the administrator's file, the user's, the
// environment, the flags. An error names all problems and is worth cli.ExitConfig.
func (a *app) load() (config, error) {
	v, problems := cli.Load(cli.Config{
		Program:    "auditcollector",
		Keys:       a.keys,
		SystemFile: a.systemConfig,
		SystemUID:  a.systemUID,
		Env:        a.env,
		Flags:      a.flags,
	})
	c := checker{cli.Checker{Values: v, Problems: problems}}
	cfg := config{
		values:          v,
		brokers:         c.Addresses("kafka.brokers"),
		topic:           c.Topic("kafka.topic"),
		group:           v.String("kafka.group"),
		tenants:         c.tenants(),
		spoolDirs:       c.directories("spool.dirs"),
		addrs:           c.Addresses("clickhouse.addr"),
		database:        v.String("clickhouse.database"),
		localDir:        v.String("local.dir"),
		batchRows:       int(v.Count("batch.rows")),
		batchBytes:      v.Size("batch.bytes"),
		batchWait:       v.Duration("batch.wait"),
		deadTopic:       v.String("dead_letters.topic"),
		keepEvents:      c.days("retention.events"),
		keepTenants:     c.keepTenants(),
		keepDeadLetters: c.days("retention.dead_letters"),
		coldAfter:       c.cold(),
		metricsListen:   v.String("metrics.listen"),
		review:          c.review(),
		evidence:        c.evidence(),
		ruleFiles:       v.List("alert.rules"),
		allowedPaths:    c.directories("alert.allowed_paths"),
	}
	cfg.cluster = c.cluster()
	c.check(cfg)
	c.Login("kafka.sasl")
	c.TLS("kafka.tls")
	c.TLS("clickhouse.tls")
	c.TLS("otlp.tls")
	c.Password("clickhouse.password")
	c.Password("local.password")
	c.secrets("alert.webhooks")
	c.secrets("alert.alertmanager")
	if err := c.Problems.Err(); err != nil {
		return config{}, cli.ExitError{Code: cli.ExitConfig, Err: err}
	}
	return cfg, nil
}

// logger returns the log of this program's own running.
func (c config) logger(a *app) *zap.Logger { return cli.NewLogger(a.stderr, c.values) }

func (c *checker) tenants() map[string]string {
	const key = "kafka.tenants"
	tenants := map[string]string{}
	for _, s := range c.List(key) {
		topic, tenant, ok := strings.Cut(s, "=")
		err := cli.CheckTopic(topic)
		switch _, twice := tenants[topic]; {
		case !ok || tenant == "":
			c.Problem(key, "%q: want topic=tenant", s)
		case err != nil:
			c.Problem(key, "%q: %w", s, err)
		case twice:
			c.Problem(key, "%q is listed twice", topic)
		}
		tenants[topic] = tenant
	}
	if len(tenants) > 0 && len(c.List("kafka.brokers")) == 0 {
		c.Problem(key, "would not be used: there are no kafka.brokers")
	}
	return tenants
}

// days returns a time in whole days.
func (c *checker) days(key string) time.Duration {
	d := c.Duration(key)
	if err := checkDays(d); err != nil {
		c.Problem(key, "%w", err)
	}
	return d
}

// cold checks where records are stored. The names go into SQL.
func (c *checker) cold() time.Duration {
	policy, volume := c.String("retention.storage_policy"), c.String("retention.cold_volume")
	if policy != "" && !clickhouse.IsIdentifier(policy) {
		c.Problem("retention.storage_policy", "is %q, want 1 to 64 of A-Z a-z 0-9 _", policy)
	}
	if !clickhouse.IsIdentifier(volume) {
		c.Problem("retention.cold_volume", "is %q, want 1 to 64 of A-Z a-z 0-9 _", volume)
	}
	if c.Duration("retention.cold_after") == 0 {
		return 0
	}
	if len(c.List("clickhouse.addr")) == 0 {
		c.Problem("retention.cold_after", "needs clickhouse.addr: the local engine has one volume")
	}
	return c.days("retention.cold_after")
}

func checkDays(d time.Duration) error {
	const day = 24 * time.Hour
	if d < day || d%day != 0 || d > clickhouse.MaxRetention {
		return fmt.Errorf("is %v, want whole days, 1d to %dd", d, clickhouse.MaxRetention/day)
	}
	return nil
}

func (c *checker) keepTenants() map[string]time.Duration {
	const key = "retention.tenants"
	keep := map[string]time.Duration{}
	for _, s := range c.List(key) {
		i := strings.LastIndexByte(s, '=') // the tenant may contain one
		if i <= 0 {
			c.Problem(key, "%q: want tenant=time", s)
			continue
		}
		tenant := s[:i]
		d, err := cli.ParseDuration(s[i+1:])
		if err == nil {
			err = checkDays(d)
		}
		switch _, twice := keep[tenant]; {
		case err != nil:
			c.Problem(key, "%q: %w", s, err)
		case twice:
			c.Problem(key, "%q is listed twice", tenant)
		}
		keep[tenant] = d
	}
	return keep
}

func (c *checker) check(cfg config) {
	if len(cfg.brokers) == 0 && len(cfg.spoolDirs) == 0 {
		c.NoDirectory("spool.dirs")
	}
	if cfg.evidence.serve && cfg.review.off() {
		c.Problem("evidence.serve", "would not be used: review.listen is off")
	}
	if len(cfg.addrs) == 0 && cfg.localDir == "" {
		c.NoDirectory("local.dir")
	}
	c.apart("local.dir", cfg.localDir, cfg.spoolDirs)
	c.apart("evidence.log", cfg.evidence.log, cfg.spoolDirs)
	if cfg.group == "" {
		c.Problem("kafka.group", "must not be empty")
	}
	if !clickhouse.IsIdentifier(cfg.database) {
		c.Problem("clickhouse.database", "is %q, want 1 to 64 of A-Z a-z 0-9 _", cfg.database)
	}
	if cfg.deadTopic != "" {
		c.Topic("dead_letters.topic")
	}
	if _, mapped := cfg.tenants[cfg.deadTopic]; mapped || cfg.deadTopic == cfg.topic {
		c.Problem("dead_letters.topic", "is %q, which holds records; want another", cfg.deadTopic)
	}
	if cfg.batchRows > 1_000_000 { // more would be split into two blocks of one token each
		c.Problem("batch.rows", "is %d, want at most 1000000", cfg.batchRows)
	}
	if cfg.batchBytes < 1<<20 || cfg.batchBytes > 256<<20 {
		c.Problem("batch.bytes", "is %s, want 1MiB to 256MiB", cli.FormatSize(cfg.batchBytes))
	}
	if cfg.batchWait <= 0 || cfg.batchWait > time.Minute {
		c.Problem("batch.wait", "is %v, want more than 0 and at most 1m", cfg.batchWait)
	}
	if m := c.Size("local.memory"); len(cfg.addrs) == 0 && m != 0 && m < chdb.MinMemory {
		c.Problem("local.memory", "is %s, want at least %s", cli.FormatSize(m), cli.FormatSize(chdb.MinMemory))
	}
	c.listen(cfg)
}

func (c *checker) listen(cfg config) {
	if _, _, err := net.SplitHostPort(cfg.metricsListen); err != nil && cfg.metricsListen != "" {
		c.Problem("metrics.listen", "%q: want host:port", cfg.metricsListen)
	}
	listen := c.String("local.listen")
	if listen == "" {
		return
	}
	if !loopback(listen) {
		c.Problem("local.listen", "%q: want host:port of this machine's loopback", listen)
	}
	if c.Secret("local.password").Reveal() == "" && c.String("local.password_file") == "" {
		c.Problem("local.listen", "needs local.password or local.password_file")
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

// configured loads the configuration and calls do with a context that ends with
// SIGINT or SIGTERM.
func (a *app) configured(ctx context.Context, do func(context.Context, config) error) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	ctx, cancel := cli.Interruptible(ctx)
	defer cancel()
	return do(ctx, cfg)
}

// shippedRules is the value in alert.rules for the rules included in this
// program.
const shippedRules = "shipped"

// tellNotRead returns what is called when a file with secrets cannot be read again.
func tellNotRead(log *zap.Logger) func(error) {
	return func(err error) {
		log.Warn("a file cannot be read again; what was read of it before counts", zap.Error(err))
	}
}
